"""Orders of occurrences: the processing order, the order of their histories, and equality."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, device, device_no_refcount
from weft.kernels.joins.occurrences import (
    BRANCH,
    END,
    FIRST,
    KIND,
    LAST_START,
    LEFT,
    PAIR,
    POINT,
    RIGHT,
    ROW,
    RUN,
    SOURCE,
    START,
    Int64s,
    history_of,
    parts_of,
    positions_of,
)
from weft.kernels.memory.growing import grown

MOST_PARTS = 64  # words of the stack for comparing two occurrences part by part
UNKNOWN = 2  # no order


@always_inline
def _is_in_order(rows: Int64s, row: Any) -> bool:
    """Whether a row joins two parts, the first of which ends before the second begins."""
    left, right = rows[row * ROW + LEFT], rows[row * ROW + RIGHT]
    is_joined = rows[row * ROW + KIND] in (PAIR, RUN) and left >= 0 and right >= 0
    return bool(is_joined and rows[left * ROW + END] < rows[right * ROW + START])


@device_no_refcount
def _compare_last_times(rows: Int64s, one: Any, other: Any) -> Any:
    """Compare histories backwards while the rows are in order; return the result, and the remaining rows.

    The histories are equal only if the result is 0 and no rows remain (-1).
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


@device
def _compare_side_by_side(rows: Int64s, one: int, other: int) -> int:
    """Compare histories part by part while both have the same form; return UNKNOWN if they differ in form."""
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


@device
def compare_histories(rows: Int64s, one: int, other: int) -> int:
    """Compare the lists of all times from their ends: -1, 0 or 1; a list that runs out is larger."""
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


@device_no_refcount
def is_of_two(rows: Int64s, occurrence: int) -> bool:
    """Whether an occurrence consists of exactly two events."""
    left, right = rows[occurrence * ROW + LEFT], rows[occurrence * ROW + RIGHT]
    joined = rows[occurrence * ROW + KIND] in (PAIR, RUN) and left >= 0 and right >= 0
    return joined and rows[left * ROW + KIND] == SOURCE and rows[right * ROW + KIND] == SOURCE


@device
def second_position(rows: Int64s, occurrence: int) -> Any:
    """Return the greater position of an occurrence of two events."""
    left, right = rows[occurrence * ROW + LEFT], rows[occurrence * ROW + RIGHT]
    return max(rows[left * ROW + FIRST], rows[right * ROW + FIRST])


@device
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


@device
def compare_order(rows: Int64s, events: Int64s, one: int, other: int) -> int:
    """Compare two occurrences of one pattern in processing order: end, start, positions, then part by part."""
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


@device
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


@always_inline
def _compare(rows: Int64s, events: Int64s, one: int, other: int, by_history: bool) -> int:
    return compare_histories(rows, one, other) if by_history else compare_order(rows, events, one, other)


@device
def sort_group(rows: Int64s, events: Int64s, ids: Int64s, count: int, by_history: bool) -> None:
    """Sort occurrences into processing order, or by history; sorted ones cost one comparison each."""
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


@device
def drop_repeated(rows: Int64s, events: Int64s, ids: Int64s, count: int) -> int:
    """Remove duplicates from sorted occurrences, and return how many remain."""
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
