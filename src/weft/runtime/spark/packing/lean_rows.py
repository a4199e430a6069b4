"""Rows of events while they are sent: integers are narrow, and columns that repeat what the events have are left out.

A column that is left out is an array of nulls, which takes no room. A field says how its column is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weft.runtime.data.buffers import values_of
from weft.runtime.data.events import EventBatch

_NOTE = b"weft"  # in the metadata of a field
_NARROW, _ENDS, _TYPES, _NUMBERS, _TEXTS = b"narrow", b"ends", b"types", b"numbers", b"texts"
Change = Callable[[pa.Array], pa.Array]


def lean(events: EventBatch) -> EventBatch:
    """The events, whose rows have no columns that repeat their times, types or attributes."""
    if events.rows is None:
        return events
    fields, arrays = [], []
    for field, array in zip(events.rows.schema, events.rows.columns, strict=True):
        source = _source_of(field.name, array, events)
        fields.append(field if source is None else pa.field(field.name, pa.null(), metadata={_NOTE: source}))
        arrays.append(array if source is None else pa.nulls(len(array)))
    return replace(events, rows=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


def full(events: EventBatch) -> EventBatch:
    """The events with rows as they were before `lean` and `narrow_rows`."""
    rows = events.rows
    if rows is None or not any(_NOTE in (field.metadata or {}) for field in rows.schema):
        return events
    arrays = [_restored(field, array, events) for field, array in zip(rows.schema, rows.columns, strict=True)]
    return replace(events, rows=pa.RecordBatch.from_arrays(arrays, names=rows.schema.names))


def alike(batches: Sequence[EventBatch]) -> list[EventBatch]:
    """The batches, whose rows can be joined: if different columns are left out, none is."""
    schemas = [batch.rows.schema for batch in batches if batch.rows is not None]
    same = all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)
    return list(batches) if same else [full(batch) for batch in batches]


def narrow_rows(rows: pa.RecordBatch, narrow: Change) -> pa.RecordBatch:
    """The rows with integers and indices of texts as `narrow` makes them."""
    fields, arrays = [], []
    for field, array in zip(rows.schema, rows.columns, strict=True):
        changed = narrow(array) if _may_be_narrow(array.type) else array
        same = changed.type == array.type
        fields.append(field if same else pa.field(field.name, changed.type, metadata={_NOTE: _NARROW}))
        arrays.append(changed)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _may_be_narrow(kind: pa.DataType) -> bool:
    """Whether `_restored` gives such a column its type again."""
    return bool(pa.types.is_int64(kind) or kind == pa.dictionary(pa.int32(), pa.string()))


def _source_of(name: str, array: pa.Array, events: EventBatch) -> bytes | None:
    """What has the values of a column, as a note with their type; None if nothing has."""
    if pa.types.is_int64(array.type) and not array.null_count and np.array_equal(values_of(array), events.ends):
        return _ENDS
    if not (pa.types.is_string(array.type) or array.type == pa.dictionary(pa.int32(), pa.string())):
        column = events.columns.get(name)
        known = None if column is None or column.exact is not None else column.numbers
        return None if known is None or not _is_same(array, known) else _NUMBERS + b" " + str(known.type).encode()
    form = b" texts" if pa.types.is_string(array.type) else b" dictionary"
    if array.type == events.types.type and array.equals(events.types):
        return _TYPES + form
    texts = events.columns[name].texts if name in events.columns else None
    return _TEXTS + form if texts is not None and array.type == texts.type and array.equals(texts) else None


def _is_same(array: pa.Array, other: pa.Array) -> bool:
    """Whether these are the same integers, or the same floats in memory: zeros of both signs are equal otherwise."""
    if array.type != other.type or len(array) != len(other):
        return False
    if pa.types.is_int64(array.type):
        return bool(array.equals(other))
    places = [
        (own.offset, [None if part is None else part.address for part in own.buffers()]) for own in (array, other)
    ]
    return pa.types.is_float64(array.type) and places[0] == places[1]


def _restored(field: pa.Field, array: pa.Array, events: EventBatch) -> pa.Array:
    source, _, form = (field.metadata or {}).get(_NOTE, b"").partition(b" ")
    if source == _NARROW:
        return array.cast(pa.int64()) if pa.types.is_integer(array.type) else _as_dictionary(array)
    if source == _ENDS:
        return pa.array(events.ends)
    if source == _NUMBERS:
        return events.columns[field.name].numbers
    if source in (_TYPES, _TEXTS):
        texts: pa.Array = events.types if source == _TYPES else events.columns[field.name].texts
        return _as_dictionary(texts) if form == b"dictionary" else texts.cast(pa.string())
    return array


def _as_dictionary(texts: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(texts.type):
        return texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.cast(pa.int32()), texts.dictionary)
