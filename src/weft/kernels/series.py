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

from weft.kernels.exact_sums import added, fixed
from weft.kernels.jit import inlined, kernel, spliced

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


@kernel
def append(
    lanes: Int64s,
    times: Int64s,
    records: Int64s,
    numbers: Floats,
    used: int,
    horizon: int,
    new_lanes: Int64s,
    new_times: Int64s,
    new_kinds: Bytes,
    new_words: Int64s,
    begin: int,
) -> tuple[int, int]:
    """Append entries from `begin` on, as far as the arena has room: how many, and how much of the arena is used then.

    One with a negative lane is left out. Without totals, only times are kept. Entries before the horizon may go.
    """
    new_numbers = new_words.view(np.float64)
    for i in range(begin, len(new_lanes)):
        lane = new_lanes[i]
        if lane < 0:
            continue
        if is_full(lanes, lane):
            used = make_room(lanes, times, records, lane, used, horizon)
            if is_full(lanes, lane):
                return i, used
        word, number = new_words[i], new_numbers[i]
        enter(lanes, times, records, numbers, lane, new_times[i], new_kinds[i], word, number)
    return len(new_lanes), used


@spliced
def is_full(lanes: Int64s, lane: Any) -> bool:
    """Whether a lane has to be made room in before one more entry comes."""
    return bool(lanes[lane * LANE + KEPT] == lanes[lane * LANE + ROOM])


@spliced
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
    if not len(records):
        return
    _add_total(records, at * RECORD, kind, word)
    if kind != FLOAT:
        number = np.float64(word) if kind == INTEGER else np.nan
    _add_extremes(numbers, at, lanes[lane * LANE + GONE] + kept + 1, kept + 1, number)
    if records[(at + 1) * RECORD + BIG] == records[at * RECORD + BIG]:
        numbers[at * RECORD + WORD] = number
    else:
        records[at * RECORD + WORD] = word


@inlined
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
    _copy_lane(times, records, start + gone, times, records, to, kept - gone)
    return used


@inlined
def _copy_lane(
    times: Int64s,
    records: Int64s,
    source: int,
    new_times: Int64s,
    new_records: Int64s,
    target: int,
    count: int,
) -> None:
    """Copy entries and what belongs to them; to an earlier place where the two overlap."""
    for k in range(count):
        new_times[target + k] = times[source + k]
    if len(records):
        for k in range(count * RECORD + TOTALS):
            new_records[target * RECORD + k] = records[source * RECORD + k]


@kernel
def rebuild(
    lanes: Int64s,
    times: Int64s,
    records: Int64s,
    horizon: int,
    new_times: Int64s,
    new_records: Int64s,
) -> int:
    """Move all lanes to a new arena, without what is before the horizon; how much of it is used then."""
    used = 1
    for lane in range(0, len(lanes), LANE):
        start, kept = lanes[lane + START], lanes[lane + KEPT]
        gone = places_until(times, start, kept, horizon - 1, 0)
        if gone == kept:
            lanes[lane : lane + LANE] = 0
            continue
        _copy_lane(times, records, start + gone, new_times, new_records, used, kept - gone)
        lanes[lane + START], lanes[lane + KEPT] = used, kept - gone
        lanes[lane + GONE] += gone
        lanes[lane + ROOM] = max(LEAST_ROOM, 2 * (kept - gone))
        used += lanes[lane + ROOM] + 1
    return used


@inlined
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


@inlined
def sum_words(records: Int64s, at: Any) -> Any:
    """The three words of a total sum."""
    return np.uint64(records[at + SUM]), np.uint64(records[at + SUM + 1]), np.uint64(records[at + SUM + 2])


@inlined
def _add_extremes(numbers: Floats, at: int, rank: int, kept: int, number: float) -> None:
    """Write the least and greatest of the last numbers up to an entry, as many as the lowest one bit of its rank."""
    least, greatest = (np.inf, -np.inf) if number != number else (number, number)
    step = 1
    while (rank & step) == 0 and step < kept:
        least = min(least, numbers[(at - step) * RECORD + LEAST])
        greatest = max(greatest, numbers[(at - step) * RECORD + GREATEST])
        step *= 2
    numbers[at * RECORD + LEAST], numbers[at * RECORD + GREATEST] = least, greatest


@inlined
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
