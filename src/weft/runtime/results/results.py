"""A matcher whose matches come as rows of results: it keeps the events that they may show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weft.algebra.query import AnyQuery
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.data.shape import MATCH_SCHEMA, Shape
from weft.runtime.execution.matcher import Matcher
from weft.runtime.limits.guarding import Guard
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import shape_of
from weft.runtime.results.typed import typed_rows
from weft.runtime.store.event_buffer import EventBuffer
from weft.runtime.store.pages import WORTH_FORGETTING, Paging, pages_below, pages_under
from weft.runtime.writing.match_rows import Finish, to_record_batches

_KEPT = "kept"


class Results:
    """Events in, rows out: of the shape, or of MATCH_SCHEMA when there is none. They come as the matcher gives them.

    `told`: those of the matches that come out; of queries in
    `counted` they are only counted.
    """

    def __init__(
        self,
        matcher: Matcher,
        query_names: Sequence[str],
        shape: Shape | None,
        guard: Guard | None = None,
        told: Callable[[Iterable[MatchBatch]], Iterator[MatchBatch]] | None = None,
        counted: Collection[str] = (),
    ) -> None:
        self.matcher = matcher
        self.guard = guard
        self._told, self._counted = told, counted
        self._counts: Counter[str] = Counter()
        self.query_names = query_names
        self.shape = shape
        self._kept, self._paging = EventBuffer(), Paging()

    def keep(self, events: EventBatch) -> None:
        """Keep events, in order, that later matches may show."""
        self._kept.add(events)

    def rows_at(self, positions: Int64s) -> pa.RecordBatch:
        """The events at these positions as the input has them."""
        return self._kept.shown(positions).at(positions)

    def push(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The matches that a batch makes certain, piece by piece: there may be more than fit into memory."""
        self.keep(batch)
        yield from self._rows(self.matcher.push(replace(batch, rows=None)))
        self._kept.forget(self.matcher.oldest)

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """The matches that waited to know that no event ends before this time."""
        return self._rows(self.matcher.advance(time))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The matches that waited for the end."""
        return self._rows(self.matcher.finish())

    def _rows(self, matches: Iterable[MatchBatch]) -> Iterator[pa.RecordBatch]:
        if self._told is not None:
            matches = self._told(matches)
        if self._counted:
            matches = self._heard(matches)
        for piece in matches if self.guard is None else self.guard.matches(iter(matches)):
            for rows in to_record_batches([piece], self.query_names):
                yield rows if self.shape is None else self._typed(rows, self.shape)

    def _heard(self, matches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """Matches without those that are only counted."""
        for piece in matches:
            heard = np.array([name not in self._counted for name in piece.query_names])
            self._counts.update({name: count for name, count in piece.counts.items() if name in self._counted})
            rows = np.flatnonzero(heard[piece.query_codes])
            if len(rows):
                yield piece if heard.all() else piece.take(rows)

    def newly_counted(self) -> dict[str, int]:
        """By name, the matches that were only counted since this was asked last."""
        found = dict(self._counts)
        self._counts.clear()
        return found

    def _typed(self, rows: pa.RecordBatch, shape: Shape) -> pa.RecordBatch:
        return typed_rows(rows, self._kept.shown(np.asarray(rows.column("positions").values)), shape)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        self._kept.forget(self.matcher.oldest, least=WORTH_FORGETTING)
        kept = self._paging.changes({}, growing=[self._kept.growing(_KEPT)])
        return {**self.matcher.snapshot(), **kept}

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Take the events that were kept; the matcher has taken its own pages."""
        own = pages_under(f"{_KEPT}/", pages_below(f"{_KEPT}/", pages))
        self._kept.load(own, _KEPT)
        self._paging.load(own, [self._kept.growing(_KEPT)])


def shaping(kept: EventBuffer, queries: Sequence[AnyQuery], reading: Reading) -> Finish:
    """Makes results of rows of MATCH_SCHEMA, while the events that they show are kept."""
    shapes: dict[pa.Schema, Shape] = {}

    def finish(rows: pa.RecordBatch) -> pa.RecordBatch:
        shown = kept.shown(np.asarray(rows.column("positions").values))
        schema = shown.rows.schema
        if schema not in shapes:
            shapes[schema] = shape_of(queries, schema, reading)
        return typed_rows(rows, shown, shapes[schema])

    return finish


def at_least_one(results: Iterable[pa.RecordBatch], finish: Finish) -> Iterator[pa.RecordBatch]:
    """The results; one without rows if there are none."""
    rows = None
    for rows in results:
        yield rows
    if rows is None:
        yield finish(pa.RecordBatch.from_pylist([], MATCH_SCHEMA))
