"""Columns of matches and of results: times, variables and fields in the types of the input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

MATCH_SCHEMA = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("positions", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field(
            "bindings",
            pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.int64(), nullable=False)))),
            nullable=False,
        ),
        pa.field("event", pa.string(), nullable=False),  # a JSON object
    ]
)


@dataclass(frozen=True)
class EventField:
    """A field of the event: an attribute of events of a variable (of all, or of the last), or computed."""

    name: str
    kind: pa.DataType
    variable: str | None = None
    attribute: str = ""
    many: bool = False


@dataclass(frozen=True)
class Shape:
    """The columns of results over an input; `input` are the input columns that they are derived from.

    `variables` has for each variable the attributes of its events that are shown. `fields` is None if the queries do
    not
    agree on the fields of their events, so that these are JSON texts.
    """

    input: pa.Schema
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    fields: tuple[EventField, ...] | None
    times: tuple[str, str] | None  # the columns that `start` and `end` come from; None: they are ticks
    time_unit: str = "ms"
    built: frozenset[str] | None = None  # the columns that are built; None: all

    @property
    def time(self) -> pa.DataType:
        """The type of `start` and `end`."""
        return pa.int64() if self.times is None else timestamps_of(self.input.field(self.times[1]).type)

    @property
    def variables_type(self) -> pa.StructType:
        """The struct of variables: for each a list of its events."""
        return pa.struct([pa.field(name, pa.list_(self.struct_of(shown))) for name, shown in self.variables])

    def struct_of(self, names: Iterable[str]) -> pa.StructType:
        """Return the type of an event with these attributes."""
        return pa.struct([self.input.field(name).with_nullable(True) for name in names])

    @property
    def event_type(self) -> pa.DataType:
        """The type of the event."""
        if self.fields is None:
            return pa.string()
        return pa.struct([pa.field(field.name, field.kind) for field in self.fields])

    @property
    def schema(self) -> pa.Schema:
        """All columns of results."""
        kept = [MATCH_SCHEMA.field(name) for name in ("positions", "bindings")]
        fields = [
            *(MATCH_SCHEMA.field(name) for name in ("query", "id")),
            *(pa.field(name, self.time, nullable=False) for name in ("start", "end")),
            *([pa.field("variables", self.variables_type)] if self.variables else []),
            pa.field("event", self.event_type),
            *kept,
        ]
        return pa.schema([field for field in fields if self.built is None or field.name in self.built])


def timestamps_of(kind: pa.DataType) -> pa.DataType:
    """Return the timestamp type that can hold the times of a column."""
    return kind if pa.types.is_timestamp(kind) else pa.timestamp("us")
