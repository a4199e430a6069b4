"""The output fields of matches: values of the events their variables are bound to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.composites import CompositeQuery
from weft.algebra.predicates import Attribute, Expression
from weft.algebra.terms import Elapsed, Previous
from weft.plan.graph import GraphOutput
from weft.runtime import blocks
from weft.runtime.blocks import concat, take
from weft.runtime.classify import vectors
from weft.runtime.events import Column, EventBatch, Int64s
from weft.runtime.exact import shown
from weft.tree import Node

_LEAST_ROWS = 1 << 14  # smaller chunks are put together
_FEW, _MANY = 4, 64  # one event of so many, batches: fewer events and more batches are not left to wait


class Remembered:
    """The shown attributes of past events, oldest first. They are picked out when they are asked for."""

    def __init__(self, queries: Sequence[CompositeQuery]) -> None:
        self.read(queries)
        self._chunks: list[EventBatch] = []
        self._fresh: list[tuple[EventBatch, Int64s]] = []  # batches, and which of their events
        self.count = 0  # events ever remembered

    def read(self, queries: Sequence[CompositeQuery]) -> None:
        """From now on remember what these queries show."""
        values = [field.value for query in queries for field in query.fields]
        names = {part.name for value in values for part in value.walk() if isinstance(part, Attribute)}
        self.attributes = sorted(names)

    @property
    def first(self) -> int:
        """The number of the first event that is still here, counting all that ever were."""
        return self.count - sum(map(len, self._chunks)) - sum(len(chosen) for _, chosen in self._fresh)

    def add(self, batch: EventBatch, chosen: Int64s) -> None:
        """Remember some events of a batch."""
        if not self.attributes or not len(chosen):
            return
        columns = {name: batch.columns[name] for name in self.attributes if name in batch.columns}
        whole = EventBatch(pa.nulls(len(batch)), batch.positions, batch.positions, batch.positions, columns)
        self._fresh.append((whole, chosen))
        self.count += len(chosen)
        if len(chosen) * _FEW < len(batch) or len(self._fresh) > _MANY:  # what is not needed takes memory too
            self._pick()

    def _pick(self) -> list[EventBatch]:
        """The events without the others of their batches."""
        for whole, chosen in self._fresh:
            self._chunks.append(whole if len(chosen) == len(whole) else take(whole, chosen))
            while len(self._chunks) > 1 and len(self._chunks[-2]) < max(_LEAST_ROWS, len(self._chunks[-1])):
                self._chunks[-2:] = [concat(self._chunks[-2:])]
        self._fresh = []
        return self._chunks

    def forget(self, before: int | None = None) -> None:
        """Drop chunks all of whose events are before a position; None: all."""
        self._chunks = [chunk for chunk in self._chunks if before is not None and chunk.positions[-1] >= before]
        self._fresh = [
            (whole, chosen)
            for whole, chosen in self._fresh
            if before is not None and whole.positions[chosen[-1]] >= before
        ]

    def rows(self, low: int, high: int) -> EventBatch:
        """The events with these numbers."""
        at, parts = self.first, []
        for chunk in self._pick():
            if at < high and low < at + len(chunk):
                parts.append(blocks.slice(chunk, max(low - at, 0), high - max(low, at)))
            at += len(chunk)
        return concat(parts)

    def load(self, parts: Iterable[EventBatch], count: int) -> None:
        """Take the events of a snapshot, the last of so many."""
        whole = concat(parts)
        self._chunks, self._fresh, self.count = [whole] if len(whole) else [], [], count

    def columns(self, name: str, positions: Int64s) -> Column:
        """An attribute of the events at these positions; missing where the position is negative."""
        known = positions[positions >= 0]
        if not len(known):
            return Column()
        low, high = known.min(), known.max()
        chunks = [c for c in self._pick() if c.positions[-1] >= low and c.positions[0] <= high]
        places = np.concatenate([chunk.positions for chunk in chunks])
        rows = pa.array(np.searchsorted(places, positions), mask=positions < 0)
        whole = chunks[0] if len(chunks) == 1 else concat(chunks)
        return whole.columns.get(name, Column()).map(lambda array: array.take(rows))


class Fields:
    """The output fields of one query."""

    def __init__(self, output: GraphOutput) -> None:
        self.fields = [(field.name, field.value.transform(by_column)) for field in output.query.fields]
        parts = [part for field in output.query.fields for part in field.value.walk()]
        self.numbers = {name: number for number, name in enumerate(output.variables)}
        self.read = sorted({(p.variable or "", p.name) for p in parts if isinstance(p, Attribute)})
        self.elapsed = list(dict.fromkeys(part for part in parts if isinstance(part, Elapsed)))

    def values(self, columns: Mapping[str, Column], count: int) -> dict[str, pa.Array]:
        """The fields of matches, given what they read as columns."""
        none = np.zeros(count, np.int64)
        batch = EventBatch(pa.nulls(count, pa.string()), none, none, none, columns)
        return {name: shown(column_of(value, batch), count) for name, value in self.fields}


def column_name(part: Node) -> str:
    """The column that stands for an attribute of a variable, or for a time."""
    match part:
        case Attribute(name, variable):
            return f"{variable}\0{name}"
    return repr(part)


def by_column(node: Node) -> Node:
    """Rewrites attributes of variables and times to attributes of the match at hand."""
    match node:
        case Attribute() | Elapsed():
            return Attribute(column_name(node))
        case Previous():
            return Attribute("\0")  # nothing came before: it is missing
    return node


def column_of(value: Node, batch: EventBatch) -> Column:
    """The values of an expression for all rows of a batch."""
    assert isinstance(value, Expression)
    if isinstance(value, Attribute):
        return batch.columns.get(value.name, Column())
    return vectors.shown_column(value, batch)
