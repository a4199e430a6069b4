"""Matches as results: the events of each variable, the fields of the event and the times, in the types of the input."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data.events import Int64s
from weft.runtime.data.joint_types import fitted
from weft.runtime.data.shape import MATCH_SCHEMA, EventField, Shape
from weft.runtime.reading.kinds import NANOSECONDS, ticks_of
from weft.runtime.store.event_buffer import Shown


def typed_rows(matches: pa.RecordBatch, shown: Shown, shape: Shape) -> pa.RecordBatch:
    """Rows of MATCH_SCHEMA as rows of the shape's schema; `shown` are the events that they are made of."""
    events = Shown(shown.positions, fitted(shown.rows, shape.input))
    bound = Bound(matches.column("bindings"), events)
    schema = shape.schema
    columns = {name: matches.column(name) for name in MATCH_SCHEMA.names}
    wanted = set(schema.names)
    if shape.times is not None and wanted & {"start", "end"}:
        own = matches.column("positions"), events, shape
        columns["start"] = _times(columns["start"], shape.times[0], *own, earliest=True)
        columns["end"] = _times(columns["end"], shape.times[1], *own, earliest=False)
    if "variables" in wanted:
        lists = [bound.structs(name, names, shape.struct_of(names)) for name, names in shape.variables]
        columns["variables"] = pa.StructArray.from_arrays(lists, fields=list(shape.variables_type))
    if shape.fields is not None and "event" in wanted:
        columns["event"] = _events(columns["event"], bound, shape)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


class Bound:
    """The events that each match binds to its variables."""

    def __init__(self, bindings: pa.MapArray, events: Shown) -> None:
        self.count = len(bindings)
        self._events = events
        self._keys = bindings.keys.dictionary_encode()
        self._match_of = np.repeat(np.arange(self.count), np.diff(np.asarray(bindings.offsets)))
        self._offsets: Int64s = np.asarray(bindings.items.offsets).astype(np.int64)
        self._values: Int64s = np.asarray(bindings.items.values)
        self._found: dict[str, tuple[pa.RecordBatch, Int64s]] = {}

    def events(self, variable: str) -> tuple[pa.RecordBatch, Int64s]:
        """The events of a variable, match by match, and where those of each match begin and end."""
        if variable not in self._found:
            positions, offsets = self._positions(variable)
            self._found[variable] = self._events.at(positions), offsets
        return self._found[variable]

    def _positions(self, variable: str) -> tuple[Int64s, Int64s]:
        names = self._keys.dictionary.to_pylist()
        offsets = np.zeros(self.count + 1, np.int64)
        if variable not in names:
            return np.empty(0, np.int64), offsets
        entries = np.flatnonzero(np.asarray(self._keys.indices) == names.index(variable))
        sizes = np.diff(self._offsets)[entries]
        offsets[self._match_of[entries] + 1] = sizes
        np.cumsum(offsets, out=offsets)
        begins = np.repeat(self._offsets[entries] - (np.cumsum(sizes) - sizes), sizes)
        return self._values[begins + np.arange(int(sizes.sum()))], offsets

    def structs(self, variable: str, names: tuple[str, ...], kind: pa.StructType) -> pa.ListArray:
        """For each match a list of a variable's events; null where it has none."""
        rows, offsets = self.events(variable)
        structs = pa.StructArray.from_arrays(rows.select(list(names)).columns, fields=list(kind))
        return _lists(offsets, structs)

    def field(self, field: EventField) -> pa.Array:
        """A field that shows an attribute: of all events of its variable, or of the last."""
        assert field.variable is not None
        rows, offsets = self.events(field.variable)
        values = rows.column(field.attribute)
        if field.many:
            return _lists(offsets, values)
        if np.array_equal(offsets, np.arange(self.count + 1)):  # each match has one
            return values
        return values.take(pa.array(offsets[1:] - 1, mask=offsets[1:] == offsets[:-1]))


def _lists(offsets: Int64s, values: pa.Array) -> pa.ListArray:
    """Lists of values, null where a list would be empty."""
    places = pa.array(offsets.astype(np.int32), mask=np.append(offsets[1:] == offsets[:-1], False))
    return pa.ListArray.from_arrays(places, values)


def _events(texts: pa.Array, bound: Bound, shape: Shape) -> pa.StructArray:
    fields = shape.fields or ()
    computed = [field for field in fields if field.variable is None]
    values = json.loads(f"[{','.join(texts.to_pylist())}]") if computed else []
    arrays = [
        bound.field(field) if field.variable is not None else _array([v.get(field.name) for v in values], field.kind)
        for field in fields
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(shape.event_type))


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError):  # integers in a column of floats, or the other way round
        return pa.array(values).cast(kind, safe=False)


def _times(
    ticks: pa.Array, name: str, positions: pa.ListArray, events: Shown, shape: Shape, *, earliest: bool
) -> pa.Array:
    """Ticks as timestamps; as exact as the event's own time where an event that is shown has it."""
    plain = timestamps(ticks, shape)
    column = events.at(np.asarray(positions.values)).column(name)
    if NANOSECONDS[shape.time_unit] <= NANOSECONDS[plain.type.unit] or not pa.types.is_timestamp(column.type):
        return plain
    wanted: Int64s = np.asarray(ticks)
    known = np.asarray(column.is_valid())
    own: Int64s = np.asarray(column.cast(pa.int64()).fill_null(0))
    match_of = np.repeat(np.arange(len(wanted)), np.diff(np.asarray(positions.offsets)))
    same = known & (np.asarray(ticks_of(column, shape.time_unit).fill_null(0)) == wanted[match_of])
    none = np.iinfo(np.int64).max if earliest else np.iinfo(np.int64).min
    found = np.full(len(wanted), none)
    (np.minimum if earliest else np.maximum).at(found, match_of[same], own[same])
    exact: Int64s = np.where(found == none, np.asarray(plain.cast(pa.int64())), found)
    return pa.array(exact).cast(plain.type)


def timestamps(ticks: pa.Array, shape: Shape) -> pa.Array:
    """Ticks as timestamps."""
    unit, tick = NANOSECONDS[shape.time.unit], NANOSECONDS[shape.time_unit]
    numbers = pc.multiply(ticks, tick // unit) if tick >= unit else pc.divide(ticks, unit // tick)
    return numbers.cast(pa.int64()).cast(shape.time)
