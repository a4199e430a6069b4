"""What `detect` gives: matches one by one as objects, or all of them as a table with the events they are made of."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.described import described
from weft.drawing.matches import matches_html
from weft.drawing.scene import MOST_MATCHES, Row, Scene, scene_of, with_events
from weft.drawing.svg import element, escaped
from weft.drawing.timeline import timeline_svg
from weft.engines import Execution, collected, is_spark_frame
from weft.errors import DataWarning, RejectedWarning, UsageError, WeftError
from weft.runtime.data.events import Rejected
from weft.runtime.data.joint_types import fitted, joint_schema
from weft.runtime.data.matches import Match
from weft.runtime.local import Events
from weft.runtime.writing.match_rows import rows_to_matches

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Detection:
    """Matches that are computed on demand: iterate, or call one of the methods.

    Events that come from an iterator can be read once, so such a detection can be consumed once. Displaying it in a
    notebook does not consume it: a separate run is shown, or a note that the events can be read only once.
    """

    def __init__(
        self,
        run: Execution,
        showing: Callable[[], Execution],
        report: Callable[[Execution], None],
        events: Callable[[], Events | None] | None = None,
        names: tuple[str, str] = ("ts", "type"),
        plan: Callable[[], str] | None = None,
    ) -> None:
        self._run = run
        self._showing = showing  # starts a run whose results show events
        self._report = report  # tells what could not be read, after a run
        self._events = events  # opens the events once more, if they are here; None: they can be read once
        self.time_and_type = names  # the columns that have them
        self._plan = plan  # draws how they are found
        self._matches: Iterator[Match] | None = None
        self._scene: Scene | None = None  # the first matches, kept when they have been seen
        self._notes: list[str] = []  # what is to be said about the events, of the run that was made to show it

    def __iter__(self) -> Iterator[Match]:
        """The matches in match order, from the first on; after `next`, those that are left."""
        return self._found() if self._matches is None else self._matches

    def __next__(self) -> Match:
        """The next match."""
        if self._matches is None:
            self._matches = self._found()
        return next(self._matches)

    def _found(self) -> Iterator[Match]:
        for rows in self._run.rows():
            yield from rows_to_matches(rows)
        self._report(self._run)

    def to_arrow(self) -> pa.Table:
        """All matches: query, id, start and end, the events of each variable, the event, positions and bindings."""
        if self._matches is not None:
            raise UsageError("some of these matches have been taken by next(): ask for a table first, or detect again")
        run = self._showing()
        batches = list(run.results())
        self._report(run)
        schema = joint_schema(batch.schema for batch in batches)
        table = pa.Table.from_batches([fitted(batch, schema) for batch in batches], schema)
        if self._events is None:
            self._scene = self._staged(_plain_rows(table), len(table))
        return table

    def to_pandas(self) -> pd.DataFrame:
        """Like `to_arrow`, as a pandas frame."""
        return self.to_arrow().to_pandas(maps_as_pydicts="strict")

    def to_polars(self) -> pl.DataFrame:
        """Like `to_arrow`, as a Polars frame; bindings are lists of names and positions."""
        try:
            import polars
        except ImportError:
            raise UsageError("to_polars() needs Polars: pip install polars") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    # -- pictures -------------------------------------------------------------------------------

    def timeline(self) -> str:
        """A picture (SVG) of the first matches and their events in time; asking for it takes nothing away."""
        return timeline_svg(self._shown())

    def _repr_html_(self) -> str:
        """For a notebook: a table of the first matches, their timeline, and, folded, the plan that finds them."""
        try:
            found = matches_html(self._shown(), self._notes)
        except WeftError as problem:
            found = element("p", escaped(problem))
        plan = [] if self._plan is None else [element("details", element("summary", "plan"), self.plan())]
        return element("div", found, *plan)

    def plan(self) -> str:
        """A picture (SVG) of the plan by which they are found."""
        return "" if self._plan is None else self._plan()

    def _shown(self) -> Scene:
        if self._scene is None:
            if self._events is None:
                raise UsageError(
                    "these events can be read once, so they are not read to be shown: iterate over the matches, "
                    "or keep them by to_arrow() and draw weft.timeline(table)"
                )
            rows: list[Row] = []
            total = 0
            run = self._showing()
            for batch in run.results():  # of all batches only the first rows are kept
                total += len(batch)
                rows += _plain_rows(batch)[: MOST_MATCHES - len(rows)]
            self._scene = self._staged(rows, total)
            self._notes = [*_unread(run.rejected), *run.doubts]
        return self._scene

    def _staged(self, rows: Sequence[Row], total: int) -> Scene:
        scene = scene_of(rows, total, *self.time_and_type)
        source = None if self._events is None else self._events()
        return scene if source is None else with_events(scene, source, source.reading)

    def __repr__(self) -> str:
        return "<matches: iterate, or ask for to_arrow(), to_pandas() or to_polars()>"


def _unread(found: Sequence[Rejected]) -> Iterator[str]:
    if found:
        yield f"{len(found):,} event{'s' * (len(found) > 1)} could not be read; the first: {found[0]}"


@described(
    matches="What `detect` returns or a table made of it (Arrow, pandas, Polars, Spark), what `push` of a live program "
    "returns, or `Match` objects.",
)
def timeline(matches: Any, *, time: str = "ts", type: str = "type") -> str:
    """Return a picture (SVG) of the first matches and their events in time."""
    return matches.timeline() if isinstance(matches, Detection) else timeline_svg(scene_in(matches, time, type))


def scene_in(matches: Any, time: str = "ts", type: str = "type") -> Scene:
    """The first matches in whatever holds them."""
    if is_spark_frame(matches):
        if matches.isStreaming:
            raise UsageError("a stream has no first matches to draw: draw those that it has written")
        return scene_of(_plain_rows(collected(matches.limit(MOST_MATCHES))), matches.count(), time, type)
    if hasattr(matches, "to_arrow"):
        matches = matches.to_arrow()
    if isinstance(matches, pa.Table | pa.RecordBatch):
        return scene_of(_plain_rows(matches), len(matches), time, type)
    if hasattr(matches, "to_dict") and hasattr(matches, "head"):  # of pandas
        return scene_of(matches.head(MOST_MATCHES).to_dict("records"), len(matches), time, type)
    rows: list[Any] = (
        list(matches) if isinstance(matches, Iterable) and not isinstance(matches, str | Mapping) else [None]
    )
    if not all(isinstance(row, Match | Mapping) for row in rows):
        raise UsageError("weft.timeline draws matches: what weft.detect(…) gives, a table of them, or a list")
    shown = (row.to_json() if isinstance(row, Match) else row for row in rows[:MOST_MATCHES])
    return scene_of(shown, len(rows), time, type)


def _plain_rows(table: pa.Table | pa.RecordBatch) -> list[Row]:
    rows: list[Row] = table.slice(0, MOST_MATCHES).to_pylist()
    return rows


def report_rejected(found: Sequence[Rejected], rejects: list[Rejected] | None, *, stacklevel: int = 3) -> None:
    """Give the events that could not be read to whoever collects them, or warn of them."""
    if rejects is not None:
        rejects.extend(found)
    elif found:
        count = f"{len(found):,} event{'s' * (len(found) > 1)}"
        message = f"{count} could not be read; the first: {found[0]} (pass rejects=[] to collect them)"
        warnings.warn(message, RejectedWarning, stacklevel=stacklevel)


def warn_suspicious_data(run: Execution, *, stacklevel: int = 3) -> None:
    """Warn of what the events show that is probably not meant."""
    for doubt in run.doubts:
        warnings.warn(doubt, DataWarning, stacklevel=stacklevel)
