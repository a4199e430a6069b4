"""Occurrences of composite patterns as rows of one flat array, the orders they stand in, and what they are made of.

A row links to the rows it was joined from, so the rows below it are its complete history. Ids are places in the
array: a row's parts have smaller ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare, inlined, kernel, spliced
from weft.kernels.memory.growing import grown

Int64s = npt.NDArray[np.int64]

# Fields of a row. FIRST_END and LAST_START are of the first and the last constituent; LEFT and RIGHT are rows (-1:
# none) but the RIGHT of a source is an event; SHIFT is added to the number of variables on the right; SLOTS is where
# the row's slots begin; FIRST is the smallest position.
START, END, FIRST_END, LAST_START, LEFT, RIGHT, KIND, SHIFT, SLOTS, FIRST = range(10)
ROW = 10
SOURCE, PAIR, RUN, BRANCH, POINT = range(5)  # kinds of rows
# Fields of an event. TRUTHS has a bit for each condition on one event that some operator asks about later.
POSITION, EVENT_START, EVENT_END, TRUTHS = range(4)
EVENT = 4
# How a slot, which holds an event or -1, is filled: from one side; the right one's if it has one; the event that
# starts first or ends last of both; nothing; the event of a source.
FROM_LEFT, FROM_RIGHT, LATER, LEAST, GREATEST, NOTHING, THE_EVENT = range(7)
MOST_PARTS = 64  # of two occurrences that are compared part by part
UNKNOWN = 2  # no order
MOST = np.int64(2**63 - 1)
FEWEST = np.int64(-(2**63))


class Memory(NamedTuple):
    """Rows, their slots, how many of both there are, and the events."""

    rows: Int64s
    slots: Int64s
    control: Int64s
    events: Int64s


@spliced
def write_row(rows: Int64s, row: int, left: int, right: int, kind: int, shift: int, slots: int) -> None:
    """Write a row joined from one or two others."""
    at, one, other = row * ROW, left * ROW, right * ROW
    if left < 0:
        one = other
    elif right < 0:
        other = one
    rows[at + START] = min(rows[one + START], rows[other + START])
    rows[at + END] = max(rows[one + END], rows[other + END])
    rows[at + FIRST_END] = min(rows[one + FIRST_END], rows[other + FIRST_END])
    later = one
    if rows[other + END] > rows[one + END] or (
        rows[other + END] == rows[one + END] and rows[other + LAST_START] > rows[one + LAST_START]
    ):
        later = other
    rows[at + LAST_START] = rows[later + LAST_START]
    rows[at + LEFT] = left
    rows[at + RIGHT] = right
    rows[at + KIND] = kind
    rows[at + SHIFT] = shift
    rows[at + SLOTS] = slots
    rows[at + FIRST] = min(rows[one + FIRST], rows[other + FIRST])


@spliced
def fill_slots(rows: Int64s, slots: Int64s, events: Int64s, at: int, left: int, right: int, spec: Int64s) -> None:
    """Fill the slots of a joined row from those of its parts, as `spec` says: (how, left slot, right slot) each."""
    ours = rows[left * ROW + SLOTS] if left >= 0 else np.int64(0)
    theirs = rows[right * ROW + SLOTS] if right >= 0 else np.int64(0)
    for k in range(len(spec) // 3):
        how = spec[3 * k]
        if how == FROM_LEFT:
            slots[at + k] = slots[ours + spec[3 * k + 1]]
        elif how == FROM_RIGHT:
            slots[at + k] = slots[theirs + spec[3 * k + 2]]
        elif how == NOTHING:
            slots[at + k] = -1
        else:
            one, other = slots[ours + spec[3 * k + 1]], slots[theirs + spec[3 * k + 2]]
            if other < 0 or (
                one >= 0
                and (
                    (how == LEAST and events[one * EVENT + EVENT_START] < events[other * EVENT + EVENT_START])
                    or (how == GREATEST and events[one * EVENT + EVENT_END] > events[other * EVENT + EVENT_END])
                )
            ):
                other = one
            slots[at + k] = other


@inlined
def parts_of(rows: Int64s, occurrence: int) -> tuple[Int64s, Int64s]:
    """The source rows and points of an occurrence, left to right, and the number each one's variable has in it."""
    found = np.empty(8, np.int64)
    numbers = np.empty(8, np.int64)
    count = 0
    stack = np.empty(16, np.int64)
    stack[0], stack[1] = occurrence, 0
    top = 2
    while top > 0:
        top -= 2
        row, shift = stack[top], stack[top + 1]
        at = row * ROW
        kind = rows[at + KIND]
        if kind in (SOURCE, POINT):
            found = grown(found, count, 1)
            numbers = grown(numbers, count, 1)
            found[count] = row
            numbers[count] = shift
            count += 1
        if kind == SOURCE:
            continue
        stack = grown(stack, top, 4)
        if rows[at + RIGHT] >= 0:
            stack[top], stack[top + 1] = rows[at + RIGHT], shift + rows[at + SHIFT]
            top += 2
        if rows[at + LEFT] >= 0:
            stack[top], stack[top + 1] = rows[at + LEFT], shift
            top += 2
    return found[:count], numbers[:count]


@inlined
def positions_of(rows: Int64s, events: Int64s, occurrence: int) -> Int64s:
    """The positions of an occurrence, ascending."""
    parts, _ = parts_of(rows, occurrence)
    positions = np.empty(len(parts), np.int64)
    count = 0
    for row in parts:
        if rows[row * ROW + KIND] == SOURCE:
            position = events[rows[row * ROW + RIGHT] * EVENT + POSITION]
            at = count
            while at > 0 and positions[at - 1] > position:  # nearly always in order already
                positions[at] = positions[at - 1]
                at -= 1
            positions[at] = position
            count += 1
    return positions[:count]


@inlined
def history_of(rows: Int64s, occurrence: int) -> tuple[Int64s, Int64s]:
    """The ends and starts of all constituents, by end and start, descending."""
    parts, _ = parts_of(rows, occurrence)
    ends = np.empty(len(parts), np.int64)
    starts = np.empty(len(parts), np.int64)
    for i in range(len(parts)):
        at = parts[i] * ROW
        end = rows[at + END]
        start = end if rows[at + KIND] == POINT else rows[at + START]
        k = i
        while k > 0 and (ends[k - 1] < end or (ends[k - 1] == end and starts[k - 1] < start)):
            ends[k], starts[k] = ends[k - 1], starts[k - 1]
            k -= 1
        ends[k], starts[k] = end, start
    return ends, starts


@spliced
def _is_in_order(rows: Int64s, row: Any) -> bool:
    """Whether a row is of two parts, of which one is over before the other begins: its times are theirs, in order."""
    left, right = rows[row * ROW + LEFT], rows[row * ROW + RIGHT]
    is_joined = rows[row * ROW + KIND] in (PAIR, RUN) and left >= 0 and right >= 0
    return bool(is_joined and rows[left * ROW + END] < rows[right * ROW + START])


@bare
def _compare_last_times(rows: Int64s, one: Any, other: Any) -> Any:
    """Compare histories from their ends on, as far as rows have their times in order; and the rows that are left.

    0 is the answer only where no rows are left (-1).
    """
    while True:
        while rows[one * ROW + KIND] == BRANCH:
            one = max(rows[one * ROW + LEFT], rows[one * ROW + RIGHT])
        while rows[other * ROW + KIND] == BRANCH:
            other = max(rows[other * ROW + LEFT], rows[other * ROW + RIGHT])
        a, b = one * ROW, other * ROW
        for field in (END, LAST_START):
            if rows[a + field] != rows[b + field]:
                return -1 if rows[a + field] < rows[b + field] else 1, one, other
        if one == other or (rows[a + KIND] == SOURCE and rows[b + KIND] == SOURCE):
            return 0, np.int64(-1), np.int64(-1)
        if not (_is_in_order(rows, one) and _is_in_order(rows, other)):
            return 0, one, other
        right, its_right = rows[a + RIGHT], rows[b + RIGHT]
        is_single = rows[right * ROW + KIND] == SOURCE and rows[its_right * ROW + KIND] == SOURCE
        if right != its_right and not is_single:  # the times of single events have just been compared
            return 0, one, other
        one, other = rows[a + LEFT], rows[b + LEFT]


@inlined
def _compare_side_by_side(rows: Int64s, one: int, other: int) -> int:
    """Compare histories part by part, as long as parts of both are of the same form; UNKNOWN where they are not."""
    stack = np.empty(MOST_PARTS, np.int64)
    stack[0], stack[1] = one, other
    top = 2
    while top > 0:
        top -= 2
        order, a, b = _compare_last_times(rows, stack[top], stack[top + 1])
        if order != 0:
            return int(order)
        if a < 0:
            continue
        if top + 4 > MOST_PARTS or not (_is_in_order(rows, a) and _is_in_order(rows, b)):
            return UNKNOWN
        stack[top], stack[top + 1] = rows[a * ROW + LEFT], rows[b * ROW + LEFT]
        stack[top + 2], stack[top + 3] = rows[a * ROW + RIGHT], rows[b * ROW + RIGHT]
        top += 4
    return 0


@inlined
def compare_histories(rows: Int64s, one: int, other: int) -> int:
    """-1, 0 or 1 as the one's list of all times, compared from its end, is smaller; a list that runs out is larger."""
    order, one, other = _compare_last_times(rows, one, other)
    if order != 0 or one < 0:
        return int(order)
    found = _compare_side_by_side(rows, one, other)
    if found != UNKNOWN:
        return found
    ends, starts = history_of(rows, one)
    other_ends, other_starts = history_of(rows, other)
    for k in range(min(len(ends), len(other_ends))):
        if ends[k] != other_ends[k]:
            return -1 if ends[k] < other_ends[k] else 1
        if starts[k] != other_starts[k]:
            return -1 if starts[k] < other_starts[k] else 1
    if len(ends) == len(other_ends):
        return 0
    return -1 if len(ends) > len(other_ends) else 1


@bare
def is_of_two(rows: Int64s, occurrence: int) -> bool:
    """Whether an occurrence is made of two events, and no more."""
    left, right = rows[occurrence * ROW + LEFT], rows[occurrence * ROW + RIGHT]
    joined = rows[occurrence * ROW + KIND] in (PAIR, RUN) and left >= 0 and right >= 0
    return joined and rows[left * ROW + KIND] == SOURCE and rows[right * ROW + KIND] == SOURCE


@inlined
def second_position(rows: Int64s, occurrence: int) -> Any:
    """The greater position of an occurrence of two events."""
    left, right = rows[occurrence * ROW + LEFT], rows[occurrence * ROW + RIGHT]
    return max(rows[left * ROW + FIRST], rows[right * ROW + FIRST])


@inlined
def _compare_places(rows: Int64s, events: Int64s, one: int, other: int) -> int:
    """Compare by end, start and positions."""
    a, b = one * ROW, other * ROW
    for field in (END, START, FIRST):
        if rows[a + field] != rows[b + field]:
            return -1 if rows[a + field] < rows[b + field] else 1
    if one == other or (rows[a + KIND] == SOURCE and rows[b + KIND] == SOURCE):
        return 0
    if is_of_two(rows, one) and is_of_two(rows, other):
        second, its_second = second_position(rows, one), second_position(rows, other)
        return -1 if second < its_second else 1 if second > its_second else 0
    positions = positions_of(rows, events, one)
    others = positions_of(rows, events, other)
    for k in range(min(len(positions), len(others))):
        if positions[k] != others[k]:
            return -1 if positions[k] < others[k] else 1
    if len(positions) == len(others):
        return 0
    return -1 if len(positions) < len(others) else 1


@inlined
def compare_order(rows: Int64s, events: Int64s, one: int, other: int) -> int:
    """Processing order of two occurrences of one pattern: end, start, positions, then as their parts stand."""
    order = _compare_places(rows, events, one, other)
    if order != 0:
        return order
    stack = np.empty(16, np.int64)
    stack[0], stack[1] = one, other
    top = 2
    while top > 0:
        top -= 2
        first, second = stack[top], stack[top + 1]
        order = _compare_places(rows, events, first, second)
        if order != 0:
            return order
        a, b = first * ROW, second * ROW
        if first == second or rows[a + KIND] == SOURCE or rows[b + KIND] == SOURCE:
            continue
        if rows[a + KIND] == RUN and rows[b + KIND] != RUN:
            return 1
        if rows[a + KIND] != RUN and rows[b + KIND] == RUN:
            return -1
        if (rows[a + LEFT] < 0) != (rows[b + LEFT] < 0):  # of a union the left branch is first
            return 1 if rows[a + LEFT] < 0 else -1
        stack = grown(stack, top, 4)
        if rows[a + RIGHT] >= 0 and rows[b + RIGHT] >= 0:
            stack[top], stack[top + 1] = rows[a + RIGHT], rows[b + RIGHT]
            top += 2
        if rows[a + LEFT] >= 0:
            stack[top], stack[top + 1] = rows[a + LEFT], rows[b + LEFT]
            top += 2
    return 0


@inlined
def _same(rows: Int64s, one: int, other: int) -> bool:
    """Whether two occurrences have the same times and bind the same events to the same variables."""
    parts, numbers = parts_of(rows, one)
    others, other_numbers = parts_of(rows, other)
    if len(parts) != len(others) or compare_histories(rows, one, other) != 0:
        return False
    used = np.zeros(len(others), np.bool_)
    for i in range(len(parts)):
        at = parts[i] * ROW
        if rows[at + KIND] == POINT:
            continue
        found = False
        for k in range(len(others)):
            to = others[k] * ROW
            if (
                not used[k]
                and numbers[i] == other_numbers[k]
                and rows[to + KIND] == SOURCE
                and rows[at + RIGHT] == rows[to + RIGHT]
            ):
                used[k] = found = True
                break
        if not found:
            return False
    return True


@spliced
def _compare(rows: Int64s, events: Int64s, one: int, other: int, by_history: bool) -> int:
    return compare_histories(rows, one, other) if by_history else compare_order(rows, events, one, other)


@inlined
def sort_group(rows: Int64s, events: Int64s, ids: Int64s, count: int, by_history: bool) -> None:
    """Put occurrences into processing order, or that of their histories; those in order cost one comparison each."""
    width = count
    for k in range(1, count):
        if _compare(rows, events, ids[k - 1], ids[k], by_history) > 0:
            width = 1
            break
    if width == count:
        return
    spare = np.empty(count, np.int64)
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, k = low, middle
            for at in range(low, high):
                if k >= high or (i < middle and _compare(rows, events, ids[i], ids[k], by_history) <= 0):
                    spare[at] = ids[i]
                    i += 1
                else:
                    spare[at] = ids[k]
                    k += 1
        for k in range(count):
            ids[k] = spare[k]
        width *= 2


@inlined
def drop_repeated(rows: Int64s, events: Int64s, ids: Int64s, count: int) -> int:
    """Keep one of each of the sorted occurrences that are the same; how many are left."""
    kept = 0
    for k in range(count):
        repeated = False
        i = kept - 1
        while i >= 0 and not repeated and _compare_places(rows, events, ids[i], ids[k]) == 0:
            repeated = _same(rows, ids[i], ids[k])
            i -= 1
        if not repeated:
            ids[kept] = ids[k]
            kept += 1
    return kept


@kernel
def report(rows: Int64s, events: Int64s, ids: Int64s, count: int) -> tuple[Int64s, Int64s, npt.NDArray[np.int32]]:
    """Offsets, positions (ascending) and the numbers of variables of occurrences."""
    offsets = np.zeros(count + 1, np.int64)
    positions = np.empty(4 * count + 16, np.int64)
    labels = np.empty(4 * count + 16, np.int64)
    used = 0
    for i in range(count):
        parts, numbers = parts_of(rows, ids[i])
        positions = grown(positions, used, len(parts))
        labels = grown(labels, used, len(parts))
        begin = used
        for k in range(len(parts)):
            at = parts[k] * ROW
            if rows[at + KIND] != SOURCE:
                continue
            position = events[rows[at + RIGHT] * EVENT + POSITION]
            to = used
            while to > begin and positions[to - 1] > position:
                positions[to], labels[to] = positions[to - 1], labels[to - 1]
                to -= 1
            positions[to], labels[to] = position, numbers[k]
            used += 1
        offsets[i + 1] = used
    return offsets, positions[:used].copy(), labels[:used].astype(np.int32)


@kernel
def variable_events(rows: Int64s, events: Int64s, ids: Int64s, variable: int, which: int) -> Int64s:
    """Of the events each occurrence binds to a variable, by its number: the LATER, LEAST or GREATEST; -1: none."""
    chosen = np.full(len(ids), np.int64(-1))
    for i in range(len(ids)):
        parts, numbers = parts_of(rows, ids[i])
        for k in range(len(parts)):
            if numbers[k] != variable or rows[parts[k] * ROW + KIND] != SOURCE:
                continue
            event = rows[parts[k] * ROW + RIGHT]
            best = chosen[i]
            if (
                best < 0
                or which == LATER
                or (which == LEAST and events[event * EVENT + EVENT_START] < events[best * EVENT + EVENT_START])
                or (which == GREATEST and events[event * EVENT + EVENT_END] > events[best * EVENT + EVENT_END])
            ):
                chosen[i] = event
    return chosen
