"""The engine `meaning`: the definition of the answer, with the interface of an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from weft.algebra import meaning
from weft.algebra.query import Program
from weft.runtime.data.events import Column, EventBatch, Rejected
from weft.runtime.data.exact import shown_parts
from weft.runtime.data.matches import PlainMatch, to_batch
from weft.runtime.local import Events
from weft.runtime.results.results import at_least_one, shaping
from weft.runtime.store.event_buffer import EventBuffer
from weft.runtime.writing.match_rows import to_record_batches

# A name that no attribute has: event times as the reader made them, whatever the time column holds.
TICKS = "\0ticks"


class MeaningRun:
    """One pass by the definition of what a program means: slow, and right."""

    def __init__(self, program: Program, source: Events) -> None:
        self.counters: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self._program = program
        self._source = source
        self._kept = EventBuffer()

    @property
    def rejected(self) -> Sequence[Rejected]:
        """The events that could not be read."""
        return self._source.rejected

    @property
    def doubts(self) -> list[str]:
        """Nothing: the definition judges no data."""
        return []

    def rows(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, as rows of MATCH_SCHEMA."""
        queries = self._program.queries
        found: list[list[PlainMatch]] = [[] for _ in queries]
        for m in self._matches():
            found[m.number].append(PlainMatch(m.start, m.end, m.first, m.last, m.positions, m.bindings, m.event, m.id))
        batches = (to_batch(query.name, own, query.origin) for query, own in zip(queries, found, strict=True))
        yield from to_record_batches(batches, [query.name for query in queries])

    def results(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, with the events that they show."""
        finish = shaping(self._kept, self._program.queries, self._source.reading)
        return at_least_one(map(finish, self.rows()), finish)

    def counts(self) -> dict[str, int]:
        """The number of matches of each query."""
        totals = Counter({query.name: 0 for query in self._program.queries})
        totals.update(m.query for m in self._matches())
        return dict(totals)

    def _matches(self) -> list[meaning.Match]:
        events: list[dict[str, object]] = []
        for batch in self._source:
            self._kept.add(batch)
            events += to_dicts(batch, self._source.reading.type)
        reading = self._source.reading
        matches = meaning.matches(
            self._program, events, time=TICKS, type=reading.type, key=reading.key, unshown=(reading.time,)
        )
        self.counters = {**self._source.counters, "matches": len(matches)}
        return matches


def _parts(column: Column) -> list[pa.Array]:
    """The values of a column by kind, decimals as such."""
    parts = [*shown_parts(column), column.texts, column.booleans]
    return [values for values in parts if values is not None]


def to_dicts(batch: EventBatch, type_name: str) -> Iterator[dict[str, object]]:
    """The events of a batch as dictionaries without missing attributes."""
    columns = {name: [values.to_pylist() for values in _parts(column)] for name, column in batch.columns.items()}
    types = batch.types.to_pylist()
    instant = np.array_equal(batch.starts, batch.ends)
    for row in range(len(batch)):
        event: dict[str, object] = {type_name: types[row]}
        for name, parts in columns.items():
            value = next((part[row] for part in parts if part[row] is not None), None)
            if value is not None:
                event[name] = value
        if instant or batch.starts[row] == batch.ends[row]:
            event[TICKS] = int(batch.starts[row])
        else:
            event |= {"start": int(batch.starts[row]), "end": int(batch.ends[row])}
        yield event
