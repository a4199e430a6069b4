"""Sorted event times as few bytes: every lane gets those of all events, to count positions over the whole stream."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.runtime.events import Int64s

_HEAD = struct.Struct("<qqbb")  # count, first end, width of the steps between ends, of the spans (0: instants)
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def encode_times(ends: Int64s, starts: Int64s) -> bytes:
    """Ends in ascending order with the starts beside them; `starts is ends` for instants."""
    if not len(ends):
        return _HEAD.pack(0, 0, 1, 0)
    steps, width = _narrow(np.diff(ends.view(np.uint64)))
    spans, span_width = b"", 0
    if starts is not ends and not np.array_equal(starts, ends):
        spans, span_width = _narrow(ends.view(np.uint64) - np.ascontiguousarray(starts).view(np.uint64))
    return _HEAD.pack(len(ends), int(ends[0]), width, span_width) + steps + spans


def _narrow(values: npt.NDArray[Any]) -> tuple[bytes, int]:
    largest = int(values.max()) if len(values) else 0
    width = next(width for width in _WIDTHS if largest < 1 << 8 * width)
    return values.astype(_WIDTHS[width]).tobytes(), width


def decode_times(data: bytes | pa.Buffer) -> tuple[Int64s, Int64s]:
    """The ends and starts that `encode_times` was given; the same array twice for instants."""
    count, first, width, span_width = _HEAD.unpack_from(data)
    ends: Int64s = np.empty(count, np.int64)
    if not count:
        return ends, ends
    ends[0] = 0
    np.cumsum(np.frombuffer(data, _WIDTHS[width], count - 1, _HEAD.size), out=ends.view(np.uint64)[1:])
    ends += first
    if not span_width:
        return ends, ends
    spans = np.frombuffer(data, _WIDTHS[span_width], count, _HEAD.size + (count - 1) * width)
    return ends, ends - spans.astype(np.uint64).view(np.int64)


def time_count(data: bytes | pa.Buffer) -> int:
    """How many events' times these are."""
    return int(_HEAD.unpack_from(data)[0])
