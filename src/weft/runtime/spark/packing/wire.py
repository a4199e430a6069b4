"""Events of a run as few bytes: narrow integers, steps between positions, and no times, which the run has anyway."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.lanes.sieve import BOUND
from weft.runtime.spark.packing.lean_rows import full, narrow_rows

_SIGNED = (pa.int8(), pa.int16(), pa.int32())
_STEPS = (np.uint8, np.uint16, np.uint32)


def narrow(events: EventBatch) -> EventBatch:
    """The same events with integers and dictionary indices of the smallest type that holds them."""
    return replace(
        events,
        types=_narrow_array(events.types),
        columns={name: column.map(_narrow_array) for name, column in events.columns.items()},
        streams=None if events.streams is None else _narrow_array(events.streams),
        rows=None if events.rows is None else narrow_rows(events.rows, _narrow_array),
    )


def _narrow_array(array: pa.Array) -> pa.Array:
    if pa.types.is_int64(array.type):
        bounds = pc.min_max(array).as_py()
        return _as_narrow(array, bounds["min"] or 0, bounds["max"] or 0)
    if pa.types.is_dictionary(array.type):
        if array.null_count == 0 and len(array.dictionary) > len(array):
            return array.cast(pa.string())
        indices = _as_narrow(array.indices, 0, len(array.dictionary))
        return pa.DictionaryArray.from_arrays(indices, array.dictionary)
    return array


def _as_narrow(numbers: pa.Array, low: int, high: int) -> pa.Array:
    for kind in _SIGNED:
        if -(1 << kind.bit_width - 1) <= low and high < 1 << kind.bit_width - 1:
            return numbers if numbers.type == kind else numbers.cast(kind, safe=False)
    return numbers


def _widen(array: pa.Array) -> pa.Array:
    if pa.types.is_integer(array.type) and not pa.types.is_int64(array.type):
        return array.cast(pa.int64())
    if pa.types.is_dictionary(array.type) and not pa.types.is_int32(array.type.index_type):
        # Dictionaries of several runs are joined: one index type for all.
        return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary)
    return array


def pack_events(events: EventBatch) -> bytes:
    """Narrow events as bytes; their positions are places in the run."""
    steps = np.diff(events.positions, prepend=0)
    largest = int(steps.max()) if len(steps) else 0
    kind = next((kind for kind in _STEPS if largest <= np.iinfo(kind).max), np.uint64)
    positions: npt.NDArray[Any] = steps.astype(kind)
    rows, bound = events.rows, events.columns.get(BOUND)
    packed = replace(events, starts=positions, ends=positions, positions=positions)
    if bound is None or rows is None:
        return blocks.pack(packed)
    # The rows of events that no match can show stay here; those of the others follow the events.
    return blocks.pack(replace(packed, rows=None)) + blocks.packed_rows(rows.filter(bound.booleans))


def unpack_events(data: bytes | pa.Buffer, ends: Int64s, starts: Int64s) -> EventBatch:
    """The events that `pack_events` made into these bytes, in a run with these times."""
    packed, rows = _with_rows(data)
    positions = np.cumsum(packed.positions, dtype=np.int64)
    own_ends = ends[positions]
    events = EventBatch(
        _widen(packed.types),
        own_ends if starts is ends else starts[positions],
        own_ends,
        positions,
        {name: column.map(_widen) for name, column in packed.columns.items() if name != BOUND},
        None if packed.streams is None else _widen(packed.streams),
        rows=rows,
    )
    return full(events)


def _with_rows(data: bytes | pa.Buffer) -> tuple[EventBatch, pa.RecordBatch | None]:
    """The events in some bytes, and their rows, without values for events that no match can show."""
    reader = pa.BufferReader(pa.py_buffer(data))
    with pa.ipc.open_stream(reader) as events:
        packed = blocks.unpacked(events.read_next_batch())
        bound = packed.columns.get(BOUND)
        if bound is None:
            return packed, packed.rows
        with suppress(StopIteration):
            events.read_next_batch()  # past the end of the events
    with pa.ipc.open_stream(reader) as rows:
        few = rows.read_next_batch()
    chosen = pa.array(bound.booleans).to_numpy(zero_copy_only=False)
    return packed, few.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))
