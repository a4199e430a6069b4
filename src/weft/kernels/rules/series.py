"""Many small time series: counts, sums and extremes of time ranges, without a scan.

A series is a *lane*: its entries are contiguous in one array, sorted by time, with spare capacity; a lane that outgrows
its capacity moves to the end of the array. Beside the entries are running totals of the lane (a time range is the
difference of two) and a Fenwick tree of extremes. Appending takes amortised constant time; old entries are dropped when
their lane moves. Numbers are stored as floats, except integers that are not exact as floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.exact_sums import added, fixed

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

# Fields of a lane: its place, number of entries, capacity, removed entries, entries before the last requested range.
START, KEPT, ROOM, GONE, NEAR = range(5)
LANE = 5
# Fields of an entry's record. First, totals of the lane before it (one more record has those of all entries): numbers
# of values by kind, and the sum in three words. BIG are integers that are inexact as floats, AWKWARD numbers that do
# not fit into fixed point. Then its number, and the least and greatest of some entries up to it.
PRESENT, NUMBERS, REALS, BIG, AWKWARD, SUM, _, _, WORD, LEAST, GREATEST = range(11)
TOTALS = 8
RECORD = 11

MISSING, OTHER, INTEGER, FLOAT = range(4)  # kinds of values; OTHER is present, but not a number
LEAST_ROOM = 4
EXACT = 1 << 53  # integers up to this are exact as floats


@always_inline
def is_full(lanes: Int64s, lane: Any) -> bool:
    """Whether a lane has no space for another entry."""
    return bool(lanes[lane * LANE + KEPT] == lanes[lane * LANE + ROOM])


@always_inline
def enter(
    lanes: Int64s,
    times: Int64s,
    records: Int64s,
    numbers: Floats,
    lane: Any,
    time: Any,
    kind: Any,
    word: Any,
    number: Any,
) -> None:
    """Append an entry to a lane that has space; `number` is its word read as a float."""
    kept = lanes[lane * LANE + KEPT]
    at = lanes[lane * LANE + START] + kept
    lanes[lane * LANE + KEPT] = kept + 1
    times[at] = time
    _add_total(records, at * RECORD, kind, word)
    if kind != FLOAT:
        number = np.float64(word) if kind == INTEGER else np.nan
    _add_extremes(numbers, at, lanes[lane * LANE + GONE] + kept + 1, kept + 1, number)
    if records[(at + 1) * RECORD + BIG] == records[at * RECORD + BIG]:
        numbers[at * RECORD + WORD] = number
    else:
        records[at * RECORD + WORD] = word


@device_no_refcount
def make_room(lanes: Int64s, times: Int64s, records: Int64s, lane: int, used: int, horizon: int) -> int:
    """Make space in a full lane: in place if half of it is too old, else at the end of the array if that has space.

    Return the used length of the array.
    """
    record = lane * LANE
    start, kept = lanes[record + START], lanes[record + KEPT]
    gone = places_until(times, start, kept, horizon - 1, 0)
    room = max(LEAST_ROOM, 2 * (kept - gone))
    to = start
    if room > lanes[record + ROOM]:
        if used + room + 1 > len(times):
            return used
        to, used = np.int64(used), used + room + 1
        lanes[record + START], lanes[record + ROOM] = to, room
    lanes[record + KEPT] -= gone
    lanes[record + GONE] += gone
    for k in range(kept - gone):
        times[to + k] = times[start + gone + k]
    for k in range((kept - gone) * RECORD + TOTALS):
        records[to * RECORD + k] = records[(start + gone) * RECORD + k]
    return used


@device_no_refcount
def _add_total(records: Int64s, at: int, kind: int, word: int) -> None:
    """Write the totals after an entry."""
    to = at + RECORD
    for field in range(TOTALS):
        records[to + field] = records[at + field]
    records[to + PRESENT] += kind != MISSING
    if kind < INTEGER:
        return
    records[to + NUMBERS] += 1
    records[to + REALS] += kind == FLOAT
    records[to + BIG] += kind == INTEGER and not -EXACT <= word <= EXACT
    fits, x, y, z = fixed(kind == FLOAT, word)
    records[to + AWKWARD] += not fits
    a, b, c = sum_words(records, at)
    x, y, z = added(a, b, c, x, y, z)
    records[to + SUM], records[to + SUM + 1], records[to + SUM + 2] = np.int64(x), np.int64(y), np.int64(z)


@device_no_refcount
def sum_words(records: Int64s, at: Any) -> Any:
    """Return the three words of a total sum."""
    return np.uint64(records[at + SUM]), np.uint64(records[at + SUM + 1]), np.uint64(records[at + SUM + 2])


@device_no_refcount
def _add_extremes(numbers: Floats, at: int, rank: int, kept: int, number: float) -> None:
    """Write the extremes of the last entries up to this one, as many as the lowest one bit of its rank."""
    least, greatest = (np.inf, -np.inf) if number != number else (number, number)
    step = 1
    while (rank & step) == 0 and step < kept:
        least = min(least, numbers[(at - step) * RECORD + LEAST])
        greatest = max(greatest, numbers[(at - step) * RECORD + GREATEST])
        step *= 2
    numbers[at * RECORD + LEAST], numbers[at * RECORD + GREATEST] = least, greatest


@device_no_refcount
def places_until(times: Int64s, start: Any, kept: Any, high: Any, guess: Any) -> Any:
    """Return how many of the `kept` times from `start` on are not after `high`, searching from a guess."""
    low, top, step = np.int64(0), np.int64(kept), np.int64(1)
    at = min(np.int64(guess), top)
    if at < top and times[np.uint64(start + at)] <= high:
        low = at + step
        while low + step <= top and times[np.uint64(start + low + step - 1)] <= high:
            low += step
            step += step
        top = min(top, low + step - 1)
    elif at > 0 and times[np.uint64(start + at - 1)] > high:
        top = at - 1
        while top >= step and times[np.uint64(start + top - step)] > high:
            top -= step
            step += step
        low = max(low, top - step + 1)
    else:
        return at
    while low < top:
        middle = (low + top) >> 1
        if times[np.uint64(start + middle)] <= high:
            low = middle + 1
        else:
            top = middle
    return low
