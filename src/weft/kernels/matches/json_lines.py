"""Write matches as JSON lines directly from the columns, without an object per match."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Texts(NamedTuple):
    """Contiguous byte strings: text i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Read[Int32s]
    data: Read[Bytes]


class MatchColumns(NamedTuple):
    """The columns of matches as flat arrays. `heads` and `keys` are JSON text up to where the next value begins."""

    heads: Texts  # per query: {"query": "fire", "id": "
    queries: Read[Int32s]
    ids: Texts
    starts: Read[Int64s]
    ends: Read[Int64s]
    position_offsets: Read[Int32s]
    positions: Read[Int64s]
    keys: Texts  # per variable: "t1": [
    entry_offsets: Read[Int32s]
    entry_keys: Read[Int32s]
    value_offsets: Read[Int32s]
    values: Read[Int64s]
    events: Texts


class Words(NamedTuple):
    """The constant parts of a line."""

    start: Read[Bytes]  # ", "start":
    end: Read[Bytes]  # , "end":
    positions: Read[Bytes]  # , "positions": [
    bindings: Read[Bytes]  # ], "bindings": {
    event: Read[Bytes]  # }, "event":


@device_no_refcount
def _copy(out: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    for place in range(begin, end):
        out[at] = data[place]
        at += 1
    return at


@device_no_refcount
def _number(out: Bytes, at: int, value: np.int64) -> int:
    rest = np.uint64(value)
    if value < 0:
        out[at] = 45
        at += 1
        rest = np.uint64(0) - rest
    digits = 1
    reach = np.uint64(10)
    while digits < 20 and rest >= reach:
        digits += 1
        if digits < 20:
            reach *= np.uint64(10)
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = np.uint8(np.uint64(48) + rest % np.uint64(10))
        rest //= np.uint64(10)
    return at + digits


@device_no_refcount
def _numbers(out: Bytes, at: int, values: Int64s, begin: int, end: int) -> int:
    for place in range(begin, end):
        if place > begin:
            out[at] = 44
            out[at + 1] = 32
            at += 2
        at = _number(out, at, values[place])
    return at


@bare_kernel
def write_json_lines(columns: MatchColumns, words: Words, out: Bytes) -> int:
    """Write one line per match into `out`, which must be large enough; return the number of bytes."""
    at = 0
    for row in range(len(columns.starts)):
        query = columns.queries[row]
        at = _copy(out, at, columns.heads.data, columns.heads.offsets[query], columns.heads.offsets[query + 1])
        at = _copy(out, at, columns.ids.data, columns.ids.offsets[row], columns.ids.offsets[row + 1])
        at = _copy(out, at, words.start, 0, len(words.start))
        at = _number(out, at, columns.starts[row])
        at = _copy(out, at, words.end, 0, len(words.end))
        at = _number(out, at, columns.ends[row])
        at = _copy(out, at, words.positions, 0, len(words.positions))
        at = _numbers(out, at, columns.positions, columns.position_offsets[row], columns.position_offsets[row + 1])
        at = _copy(out, at, words.bindings, 0, len(words.bindings))
        for entry in range(columns.entry_offsets[row], columns.entry_offsets[row + 1]):
            if entry > columns.entry_offsets[row]:
                out[at] = 44
                out[at + 1] = 32
                at += 2
            key = columns.entry_keys[entry]
            at = _copy(out, at, columns.keys.data, columns.keys.offsets[key], columns.keys.offsets[key + 1])
            at = _numbers(out, at, columns.values, columns.value_offsets[entry], columns.value_offsets[entry + 1])
            out[at] = 93
            at += 1
        at = _copy(out, at, words.event, 0, len(words.event))
        at = _copy(out, at, columns.events.data, columns.events.offsets[row], columns.events.offsets[row + 1])
        out[at] = 125
        out[at + 1] = 10
        at += 2
    return at
