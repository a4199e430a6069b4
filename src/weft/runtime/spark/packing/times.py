"""Sorted event times as few bytes: a lane gets those of its events, or of all where it counts positions."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.runtime.data.events import Int64s
from weft.runtime.reading.ties import Keys

# Count, first end, the rank if it is the same for all, and the widths of what follows: the steps between ends, the
# spans (0: instants), the ranks (0: all the same).
_HEAD = struct.Struct("<qqqbbb")
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

_BYTES = 127  # the width of ranks that are bytes, which follow their length
_LENGTH = struct.Struct("<i")

Ranks: TypeAlias = Keys | int  # what decides between equal times; a number: the same for all


def encode_times(ends: Int64s, starts: Int64s, ranks: Ranks = 0) -> bytes:
    """Ends in ascending order with the starts and ranks beside them; `starts is ends` for instants."""
    if not len(ends):
        return _HEAD.pack(0, 0, 0, 1, 0, 0)
    steps, width = _narrow(np.diff(ends.view(np.uint64)))
    spans, span_width = b"", 0
    if starts is not ends and not np.array_equal(starts, ends):
        spans, span_width = _narrow(ends.view(np.uint64) - np.ascontiguousarray(starts).view(np.uint64))
    places, rank_width, rank = b"", 0, 0
    if isinstance(ranks, int):
        rank = ranks
    elif ranks.dtype == np.int64 and bool((ranks == ranks[0]).all()):
        rank = int(ranks[0])
    elif ranks.dtype.kind == "S":
        places, rank_width = _LENGTH.pack(ranks.dtype.itemsize) + ranks.tobytes(), _BYTES
    else:
        places, rank_width = _narrow(ranks)
    return _HEAD.pack(len(ends), int(ends[0]), rank, width, span_width, rank_width) + steps + spans + places


def _narrow(values: npt.NDArray[Any]) -> tuple[bytes, int]:
    largest = int(values.max()) if len(values) else 0
    width = next(width for width in _WIDTHS if largest < 1 << 8 * width)
    return values.astype(_WIDTHS[width]).tobytes(), width


def count_of(data: bytes | pa.Buffer) -> int:
    """How many times there are in what `encode_times` gave."""
    return int(_HEAD.unpack_from(data)[0])


def decode_times(data: bytes | pa.Buffer) -> tuple[Int64s, Int64s, Ranks]:
    """The ends, starts and ranks that `encode_times` was given; the same array twice for instants."""
    count, first, rank, width, span_width, rank_width = _HEAD.unpack_from(data)
    ends: Int64s = np.empty(count, np.int64)
    if not count:
        return ends, ends, 0
    ends[0] = 0
    at = _HEAD.size
    np.cumsum(np.frombuffer(data, _WIDTHS[width], count - 1, at), out=ends.view(np.uint64)[1:])
    ends += first
    at += (count - 1) * width
    starts = ends
    ranks: Ranks = rank
    if span_width:
        starts = ends - np.frombuffer(data, _WIDTHS[span_width], count, at).astype(np.uint64).view(np.int64)
        at += count * span_width
    if rank_width == _BYTES:
        (size,) = _LENGTH.unpack_from(data, at)
        ranks = np.frombuffer(data, f"S{size}", count, at + _LENGTH.size)
    elif rank_width:
        ranks = np.frombuffer(data, _WIDTHS[rank_width], count, at).astype(np.int64)
    return ends, starts, ranks
