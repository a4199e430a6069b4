"""Order of events with equal times: by the rest of a time finer than a tick, the source, and columns to order by.

All of it becomes one key for each event, an integer or bytes, that compares the same in every part of an input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data.events import Column, EventBatch, Int64s

# Columns of events as they are read: nanoseconds by which an event's end and start are after their ticks.
FINE_END, FINE_START = "\0fine end", "\0fine start"
Keys: TypeAlias = Int64s | npt.NDArray[np.bytes_]
_MISSING, _BOOLEAN, _NUMBER, _TEXT = b"\x00", b"\x01", b"\x02", b"\x03"


def tie_keys(events: EventBatch, sources: Sequence[str], order: Sequence[str], tick: int) -> Keys | None:
    """Return the keys that order events with equal times, or None if only arrival decides. `tick` is in nanoseconds."""
    rank = _fine_rank(events, tick, len(sources) + 1)
    if sources:
        rank = ranks_of(events.types, sources) + (0 if rank is None else rank)
    if not order:
        return rank
    parts = [_numbers(np.zeros(len(events), np.int64) if rank is None else rank)]
    parts += [_values(events.columns.get(name, Column()), len(events)) for name in order]
    return np.array(_joined(parts).to_pylist(), np.bytes_) if len(events) else np.empty(0, np.bytes_)


def _fine_rank(events: EventBatch, tick: int, step: int) -> Int64s | None:
    """Return the rests of times as integers `step` apart; of starts only if both fit."""
    fine = [_rest(events.columns[name]) if name in events.columns else None for name in (FINE_END, FINE_START)]
    if all(part is None for part in fine):
        return None
    end, start = (np.zeros(len(events), np.int64) if part is None else part for part in fine)
    both = tick * tick * step < 2**63
    return (end * tick + start) * step if both else end * step


def _rest(column: Column) -> Int64s:
    """Return the rest of times, or nothing for parts of the input whose times are no finer than ticks."""
    assert column.numbers is not None
    return np.asarray(column.numbers.fill_null(0))


def as_ranks(keys: Keys) -> Int64s:
    """Convert keys to integers in their order."""
    if keys.dtype == np.int64:
        return keys  # type: ignore[return-value]
    ranks: Int64s = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return ranks


def ranks_of(types: pa.Array, sources: Sequence[str]) -> Int64s:
    """Return the place of each event's type among those of the declared sources; other types come last."""
    coded = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
    places = {name: place for place, name in reversed(list(enumerate(sources)))}
    known = np.array([*(places.get(name, len(places)) for name in coded.dictionary.to_pylist()), len(places)])
    ranks: Int64s = known[np.asarray(coded.indices.fill_null(len(known) - 1))]
    return ranks


def without_fine(events: EventBatch) -> EventBatch:
    """Remove the columns that only the order needs."""
    if FINE_END not in events.columns and FINE_START not in events.columns:
        return events
    columns = {name: column for name, column in events.columns.items() if name not in (FINE_END, FINE_START)}
    return replace(events, columns=columns)


def _joined(parts: Sequence[Any]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _values(column: Column, length: int) -> pa.Array:
    """Values as bytes in their order: missing ones first, then Booleans, numbers, texts."""
    found = pa.nulls(length, pa.binary())
    if column.texts is not None:
        texts = column.texts.cast(pa.string()).cast(pa.binary())
        escaped = pc.replace_substring(texts, b"\x00", b"\x00\xff")  # so that a prefix sorts before its extensions
        found = pc.coalesce(found, _joined([pa.scalar(_TEXT), escaped, pa.scalar(b"\x00\x01")]))
    if column.numbers is not None:
        known = column.numbers.fill_null(0)
        found = pc.coalesce(found, pc.if_else(column.numbers.is_valid(), _numbers(np.asarray(known)), None))
    if column.booleans is not None:
        flags = pc.if_else(column.booleans, pa.scalar(_BOOLEAN + b"\x02"), pa.scalar(_BOOLEAN + b"\x01"))
        found = pc.coalesce(found, flags)
    return found.fill_null(_MISSING + b"\x01")


def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Encode numbers as bytes in their order: the nearest float, and the difference of an integer to it."""
    near = values.astype(np.float64) + 0.0
    bits = near.view(np.uint64)
    ascending = np.where(near < 0, ~bits, bits | np.uint64(1 << 63))
    rest = np.zeros(len(values), np.int64)
    if values.dtype == np.int64:
        rest = values - np.clip(near, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
    made = np.empty((len(values), 11), np.uint8)
    made[:, 0] = _NUMBER[0]
    made[:, 1:9] = ascending.astype(">u8").view(np.uint8).reshape(-1, 8)
    made[:, 9:] = (rest + (1 << 15)).astype(">u2").view(np.uint8).reshape(-1, 2)
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(11), len(values), [None, pa.py_buffer(made)])
    return fixed.cast(pa.binary())
