"""Sets of rules of one row during a search: select those that an event satisfies by their own constants.

A set is a range of `sets`, sorted by rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import device_no_refcount
from weft.kernels.machine.machine import holds
from weft.kernels.machine.tagged import EQUAL, GREATER, INTEGER, LESS_EQUAL, MISSING, VALUE, satisfies
from weft.kernels.memory.room import halves, noted, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t


@device_no_refcount
def _tested(room: t.Int64s, column: Any, event: Any) -> Any:
    """Return the value that a test reads: of an event, or of a summary."""
    if column < 0:
        results, place = words(room, r.RESULTS), VALUE * (-1 - column)
        return results[place], results[place + 1]
    values, place = words(room, r.VALUES), event * noted(room, r.WIDTH) + VALUE * column
    return values[place], values[place + 1]


@device_no_refcount
def filter_members(room: t.Int64s, at: Any, count: Any, begin: Any, end: Any, event: Any) -> Any:
    """Keep the rules of a set whose own tests an event, or summaries, pass; return how many."""
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    tests = words(room, r.TESTS)
    for test in range(begin * t.TEST, end * t.TEST, t.TEST):
        operator, slot = tests[test + t.T_OPERATOR], tests[test + t.T_A]
        kind, word = _tested(room, tests[test + t.T_COLUMN], event)
        kept = np.int64(0)
        for k in range(at, at + count):
            rule = sets[k]
            place = own_at[rule] + slot
            sets[at + kept] = rule
            kept += np.int64(holds(room, operator, kind, word, own[place], own[place + 1]))
        count = kept
    return count


@device_no_refcount
def _count_leading(room: t.Int64s, at: Any, count: Any, slot: Any, operator: Any, word: Any) -> Any:
    """Return how many rules of a set, sorted by the constant in a slot, a number satisfies; these come first."""
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    low, high = at, at + count
    while low < high:
        middle = (low + high) >> 1
        other = own[own_at[sets[middle]] + slot]
        if satisfies(operator, np.int64(word > other) - np.int64(word < other)):
            low = middle + 1
        else:
            high = middle
    return low - at


@device_no_refcount
def marks_of(room: t.Int64s, at: Any, count: Any, slot: Any) -> Any:
    """Return the marks of what all rules of a set have consumed, and the word they are in, or -1 if in several."""
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    word, bits = own[own_at[sets[at]] + slot + t.MARK] >> 6, np.int64(0)
    for k in range(at, at + count):
        mark = own[own_at[sets[k]] + slot + t.MARK]
        word = word if mark >> 6 == word else np.int64(-1)
        bits |= np.int64(1) << (mark & 63)
    return word, bits


@device_no_refcount
def consume(room: t.Int64s, at: Any, count: Any, slot: Any, event: Any) -> None:
    """Mark an event as consumed by all rules of a set, which have no other look-back."""
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    marks, first = words(room, r.MARKS), event * noted(room, r.MARK_WORDS)
    for k in range(at, at + count):
        mark = own[own_at[sets[k]] + slot + t.MARK]
        marks[first + (mark >> 6)] |= np.int64(1) << (mark & 63)


@device_no_refcount
def _partition_members(
    room: t.Int64s, at: Any, count: Any, to: Any, slot: Any, distance: Any, begin: Any, end: Any, event: Any, moves: Any
) -> Any:
    """Select the rules whose window contains a candidate, who have not consumed it, and whose tests it passes.

    With `moves` they leave the set. Return how many were selected and how many remain; and of the remaining ones the
    longest window, and whether there is a bound for the operand of their first test, and that bound.
    """
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    tests, marks, marked = words(room, r.TESTS), words(room, r.MARKS), event * noted(room, r.MARK_WORDS)
    kind, word, operator, constant = np.int64(MISSING), np.int64(0), np.int64(EQUAL), np.int64(0)
    if begin < end:
        kind, word = _tested(room, tests[begin * t.TEST + t.T_COLUMN], event)
        operator, constant = tests[begin * t.TEST + t.T_OPERATOR], tests[begin * t.TEST + t.T_A]
    taken = left = longest = np.int64(0)
    least, most, is_whole = np.int64((1 << 63) - 1), np.int64(-(1 << 63)), operator < EQUAL
    for k in range(at, at + count):
        rule = sets[k]
        place = own_at[rule]
        ticks, mark = own[place + slot + t.TICKS], own[place + slot + t.MARK]
        fits = ticks >= distance
        if mark >= 0:
            fits = fits and (marks[marked + (mark >> 6)] >> (mark & 63)) & 1 == 0
        other_kind, other = np.int64(INTEGER), np.int64(0)
        if begin < end:
            other_kind, other = own[place + constant], own[place + constant + 1]
            fits = fits and holds(room, operator, kind, word, other_kind, other)
        sets[to + taken] = rule
        if fits and begin + 1 < end:
            fits = filter_members(room, to + taken, 1, begin + 1, end, event) == 1
        taken += np.int64(fits)
        if moves and not fits:
            sets[at + left] = rule
            left += 1
            longest = max(longest, ticks)
            least, most = min(least, other), max(most, other)
            is_whole = is_whole and other_kind == INTEGER
    if not moves:
        left = count
    return taken, left, longest, is_whole, least if operator >= GREATER else most


@device_no_refcount
def select_members(room: t.Int64s, step: Any, frame: Any, count: Any, candidate: Any, time: Any, moves: Any) -> Any:
    """Select the rules of a look-back's set that a candidate satisfies; results as of `_partition_members`.

    In a sorted set they come first, so that they are found by binary search.
    """
    control, steps, frames, tests = (
        words(room, r.CONTROL),
        words(room, r.STEPS),
        words(room, r.FRAMES),
        words(room, r.TESTS),
    )
    sets, own, own_at = halves(room, r.SETS), words(room, r.OWN), words(room, r.OWN_AT)
    depth, begin, end = control[t.DEPTH], steps[step + t.OWN_TESTS_AT], steps[step + t.TESTS_END]
    at, to, slot = depth * control[t.SPAN], (depth + 1) * control[t.SPAN], t.OWN * (depth - 1)
    distance, test = frames[frame + t.HIGH] - time, begin * t.TEST
    taken = np.int64(-1)
    if control[t.SORTED] == depth and begin == end:
        taken = _count_leading(room, at, count, slot + t.TICKS, LESS_EQUAL, distance)
    elif control[t.SORTED] == depth and time >= frames[frame + t.NEAR]:
        kind, word = _tested(room, tests[test + t.T_COLUMN], candidate)
        if kind == INTEGER:
            taken = _count_leading(room, at, count, tests[test + t.T_A] + 1, tests[test + t.T_OPERATOR], word)
    if taken < 0:
        return _partition_members(room, at, count, to, slot, distance, begin, end, candidate, moves)
    for k in range(taken):
        sets[to + k] = sets[at + k]
    left, longest, has_bound, bound = count, steps[step + t.LONGEST], False, np.int64(0)
    if moves:
        left = count - taken
        for k in range(at, at + left):
            sets[k] = sets[k + taken]
    if moves and left > 0 and begin < end:
        has_bound, bound = True, own[own_at[sets[at]] + tests[test + t.T_A] + 1]
    elif moves and left > 0:
        longest = own[own_at[sets[at]] + slot + t.TICKS]
    return taken, left, longest, has_bound, bound
