"""What a situation sees: events of the input, and those that earlier situations derived."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.predicates import Value
from weft.runtime.events import Column, EventBatch
from weft.runtime.situations.formulas import Attributes, index_key

INPUT = -1  # the source of events that nobody derived
Key = tuple[tuple[bool, Value], ...]


@dataclass(slots=True, eq=False)
class Happening:
    """An event; `positions` are those of the input events it is made of.

    `rank` orders what one source gives at the same times. `place` is its place among all that a situation sees:
    it is given when the situation takes it, for a copy of its own.
    """

    type: str | None
    start: int
    end: int
    positions: tuple[int, ...]
    attributes: Attributes
    source: int
    rank: tuple[Any, ...]
    place: int = -1

    @property
    def order(self) -> tuple[Any, ...]:
        """Stream order."""
        return self.end, self.start, self.source, self.rank

    def at(self, place: int) -> Happening:
        """The same with a place."""
        return Happening(
            self.type, self.start, self.end, self.positions, self.attributes, self.source, self.rank, place
        )

    def key(self, names: Sequence[str]) -> Key | None:
        """The values of attributes, None when one is missing."""
        values = [self.attributes.get(name) for name in names]
        present = [index_key(value) for value in values if value is not None]
        return tuple(present) if len(present) == len(values) else None

    def to_json(self) -> list[Any]:
        """As plain values."""
        return [
            self.type,
            self.start,
            self.end,
            self.positions,
            self.attributes,
            self.source,
            self.rank,
            self.place,
        ]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> Happening:
        """The opposite of `to_json`."""
        type_, start, end, positions, attributes, source, rank, place = values
        return cls(type_, start, end, tuple(positions), attributes, source, tupled(rank), place)


def tupled(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def happenings(batch: EventBatch, columns: Sequence[str], types: Collection[str] | None) -> Iterator[Happening]:
    """The events of a batch that are of one of the types, with the attributes that anybody reads."""
    read = {name: column_values(batch.columns[name], len(batch)) for name in columns if name in batch.columns}
    starts, ends, positions = batch.starts.tolist(), batch.ends.tolist(), batch.positions.tolist()
    for row, type_ in enumerate(batch.types.to_pylist()):
        if types is None or type_ in types:
            attributes = {name: values[row] for name, values in read.items() if values[row] is not None}
            place = positions[row]
            yield Happening(type_, starts[row], ends[row], (place,), attributes, INPUT, (place,))


def column_values(column: Column, rows: int) -> list[Any]:
    """The values of a column, None where an event has none."""
    parts: list[list[Any]] = [
        array.to_pylist() for array in (column.numbers, column.texts, column.booleans) if array is not None
    ]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return [None] * rows
    return [next((value for value in values if value is not None), None) for values in zip(*parts, strict=True)]
