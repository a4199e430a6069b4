"""Time series by the thousand: counts, sums, least and greatest numbers of stretches of time, without a scan.

A series is a *lane*: its entries stand side by side in one arena, in the order of their times, with room for more; a
lane that outgrows its room moves to the arena's end. Next to the entries stand running totals of the lane (a stretch
is the difference of two) and a Fenwick tree of least and greatest numbers. Appending takes constant time, amortised;
what is too old goes when its lane moves. Numbers are kept as floats, the few integers that are none as they are.
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

# Fields of a lane: its place, its entries, their limit, how many went, how many were before the last stretch asked for.
START, KEPT, ROOM, GONE, NEAR = range(5)
LANE = 5
# Fields of an entry's record. First, totals of the lane before it (one more record has those of all entries): how many
# values of some kinds, and the sum in three words. BIG are integers that are no floats, AWKWARD numbers without a place
# in fixed point. Then its number, and the least and greatest of some up to it.
PRESENT, NUMBERS, REALS, BIG, AWKWARD, SUM, _, _, WORD, LEAST, GREATEST = range(11)
TOTALS = 8
RECORD = 11

MISSING, OTHER, INTEGER, FLOAT = range(4)  # kinds of values; OTHER is present, and no number
LEAST_ROOM = 4
EXACT = 1 << 53  # integers up to here are floats


@always_inline
def is_full(lanes: Int64s, lane: Any) -> bool:
    """Whether a lane has to be made room in before one more entry comes."""
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
    """Append one entry to a lane that has room; `number` is its word read as a float."""
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
    """Make room in a full lane, if the arena has any: in its place when half is too old, else at the arena's end."""
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
    """Write the totals after an entry, from those before it."""
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
    """The three words of a total sum."""
    return np.uint64(records[at + SUM]), np.uint64(records[at + SUM + 1]), np.uint64(records[at + SUM + 2])


@device_no_refcount
def _add_extremes(numbers: Floats, at: int, rank: int, kept: int, number: float) -> None:
    """Write the least and greatest of the last numbers up to an entry, as many as the lowest one bit of its rank."""
    least, greatest = (np.inf, -np.inf) if number != number else (number, number)
    step = 1
    while (rank & step) == 0 and step < kept:
        least = min(least, numbers[(at - step) * RECORD + LEAST])
        greatest = max(greatest, numbers[(at - step) * RECORD + GREATEST])
        step *= 2
    numbers[at * RECORD + LEAST], numbers[at * RECORD + GREATEST] = least, greatest


@device_no_refcount
def places_until(times: Int64s, start: Any, kept: Any, high: Any, guess: Any) -> Any:
    """How many of the times from `start` on, `kept` in all, are not after `high`: looked for around a guess."""
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
