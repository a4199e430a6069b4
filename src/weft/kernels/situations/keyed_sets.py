"""Write matching sets of keyed sequences, many at a time.

The rows that fit before an older row of a slot are the last of those that fit before a newer one, since chains are
newest first. So the sets of the older row are a copy of the last ones written, with one member changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device_no_refcount

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Events that may become members, as columns; `next` is the row before it in its chain, or the next free one.

    The other fields concern the current event.
    """

    positions: Int64s
    starts: Int64s
    ends: Int64s
    next: Int32s
    used: Int8s
    down: Int32s  # of the slot before, the newest row that ends before this one starts
    ways: Int64s  # in how many ways the slots up to this row's can be filled


class Sets(NamedTuple):
    """Output arrays: times and members of sets."""

    starts: Int64s
    ends: Int64s
    positions: Int64s


@device_no_refcount
def write(found: int, kept: int, rows: Rows, current: Int32s, sets: Sets) -> None:
    """Write the current set as number `found`."""
    for place in range(kept + 1):
        sets.positions[found * (kept + 1) + place] = rows.positions[current[place]]
    sets.starts[found], sets.ends[found] = rows.starts[current[0]], rows.ends[current[kept]]


@device_no_refcount
def _again(numbers: Int64s, at: int, count: int) -> None:
    """Repeat the last `count` numbers before a place."""
    old, new = numbers[at - count : at], numbers[at : at + count]
    for k in range(count):
        new[k] = old[k]


@device_no_refcount
def _repeat(found: int, count: int, place: int, width: int, position: int, sets: Sets) -> None:
    """Repeat the last `count` sets with another position at a place."""
    at, end = found * width, (found + count) * width
    _again(sets.positions, at, end - at)
    sets.positions[at + place : end : width] = position
    _again(sets.starts, found, count)
    _again(sets.ends, found, count)


@device_no_refcount
def write_all(found: int, depth: int, kept: int, rows: Rows, current: Int32s, sets: Sets) -> None:
    """Write all sets with the current rows from slot `depth` on."""
    for place in range(depth, 0, -1):
        current[place - 1] = rows.down[current[place]]
    write(found, kept, rows, current, sets)
    found += 1
    for place in range(depth):
        row = rows.next[current[place]]
        while row >= 0:
            count = rows.ways[row]
            _repeat(found, count, place, kept + 1, rows.positions[row], sets)
            if place == 0:
                sets.starts[found] = rows.starts[row]
            found += count
            row = rows.next[row]
