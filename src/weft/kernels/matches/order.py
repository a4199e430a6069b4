"""The order in which matches are reported: end, start, positions, query, id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]

STRETCH = 16  # matches that are sorted by insertion


@device_no_refcount
def _after(
    a: Any,
    b: Any,
    ends: Int64s,
    starts: Int64s,
    offsets: Int64s,
    positions: Int64s,
    ranks: Int32s,
    high: UInt64s,
    low: UInt64s,
) -> bool:
    """Whether match a comes after match b; False for equal ones, which keeps a merge stable."""
    if ends[a] != ends[b]:
        return bool(ends[a] > ends[b])
    if starts[a] != starts[b]:
        return bool(starts[a] > starts[b])
    at_a = offsets[a]
    at_b = offsets[b]
    while at_a < offsets[a + 1] and at_b < offsets[b + 1]:
        if positions[at_a] != positions[at_b]:
            return bool(positions[at_a] > positions[at_b])
        at_a += 1
        at_b += 1
    left_a = offsets[a + 1] - at_a
    left_b = offsets[b + 1] - at_b
    if left_a != left_b:
        return bool(left_a > left_b)
    if ranks[a] != ranks[b]:
        return bool(ranks[a] > ranks[b])
    if high[a] != high[b]:
        return bool(high[a] > high[b])
    return bool(low[a] > low[b])


@bare_kernel
def is_ordered(
    ends: Read[Int64s],
    starts: Read[Int64s],
    offsets: Read[Int64s],
    positions: Read[Int64s],
    ranks: Read[Int32s],
    high: Read[UInt64s],
    low: Read[UInt64s],
) -> bool:
    """Whether matches are in match order, as those of one query often are."""
    for match in range(1, len(ends)):
        if _after(match - 1, match, ends, starts, offsets, positions, ranks, high, low):
            return False
    return True


@bare_kernel
def match_order(
    begin: int,
    order: Int64s,
    moved: Int64s,
    ends: Read[Int64s],
    starts: Read[Int64s],
    offsets: Read[Int64s],
    positions: Read[Int64s],
    ranks: Read[Int32s],
    high: Read[UInt64s],
    low: Read[UInt64s],
) -> None:
    """Sort the matches from `begin` on into match order: short ranges by insertion, then merged bottom-up.

    Matches arrive almost sorted by end, so most ranges are in order and most merges have nothing to do. `moved` is
    scratch of the same length.
    """
    count = len(order)
    for at in range(count):
        order[at] = begin + at
    for left in range(0, count, STRETCH):
        for at in range(left + 1, min(left + STRETCH, count)):
            match, to = order[at], at
            while to > left and _after(order[to - 1], match, ends, starts, offsets, positions, ranks, high, low):
                order[to] = order[to - 1]
                to -= 1
            order[to] = match
    width = STRETCH
    while width < count:
        for left in range(0, count - width, 2 * width):
            b, right = left + width, min(left + 2 * width, count)
            # What comes first in the left half stays; the rest is moved aside and merged.
            low_end, high_end = left, b
            while low_end < high_end:
                middle = (low_end + high_end) // 2
                if _after(order[middle], order[b], ends, starts, offsets, positions, ranks, high, low):
                    high_end = middle
                else:
                    low_end = middle + 1
            at, size, a = low_end, b - low_end, 0
            for k in range(size):
                moved[k] = order[at + k]
            while a < size:
                if b < right and _after(moved[a], order[b], ends, starts, offsets, positions, ranks, high, low):
                    order[at] = order[b]
                    b += 1
                else:
                    order[at] = moved[a]
                    a += 1
                at += 1
        width *= 2


@bare_kernel
def merged_order(
    one: Int64s,
    other: Int64s,
    order: Int64s,
    ends: Read[Int64s],
    starts: Read[Int64s],
    offsets: Read[Int64s],
    positions: Read[Int64s],
    ranks: Read[Int32s],
    high: Read[UInt64s],
    low: Read[UInt64s],
) -> None:
    """Merge two orders of different matches into `order`; of equal ones those of the first come first."""
    a = b = 0
    for at in range(len(order)):
        if b == len(other) or (
            a < len(one) and not _after(one[a], other[b], ends, starts, offsets, positions, ranks, high, low)
        ):
            order[at] = one[a]
            a += 1
        else:
            order[at] = other[b]
            b += 1
