"""Rules of one row are searched for together: which of a set go on with an event, by what they have of their own.

A set is a stretch of `sets`, in the order of rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, spliced
from weft.kernels.rule_scan import Seen
from weft.kernels.tagged import EQUAL, FLOAT, GREATER, INTEGER, MISSING, VALUE, float_of, order_of, satisfies


@spliced
def _holds(operator: Any, kind: Any, word: Any, other_kind: Any, other: Any, seen: Seen) -> Any:
    """Whether a comparison holds."""
    if kind == INTEGER and other_kind == INTEGER:
        order = np.int64(word > other) - np.int64(word < other)
    elif kind == FLOAT and other_kind == FLOAT:
        order = np.int64(float_of(word) > float_of(other)) - np.int64(float_of(word) < float_of(other))
    else:
        order = order_of(kind, word, other_kind, other, seen.texts, seen.text_offsets)
    return satisfies(operator, order)


@spliced
def _tested(column: Any, event: Any, seen: Seen) -> Any:
    """The value that a test is about: of an event, or of a summary."""
    if column >= 0:
        place = event * seen.width + VALUE * column
        kind, word = seen.values[place], seen.values[place + 1]
    else:
        place = VALUE * (-1 - column)
        kind, word = seen.results[place], seen.results[place + 1]
    return kind, word


@bare
def that_pass(
    sets: t.Int32s,
    at: Any,
    count: Any,
    own: t.Int64s,
    own_at: t.Int64s,
    tests: t.Int64s,
    begin: Any,
    end: Any,
    event: Any,
    seen: Seen,
) -> Any:
    """Those of a set whose own constants an event, or summaries, pass: how many."""
    for test in range(begin * t.TEST, end * t.TEST, t.TEST):
        kind, word = _tested(tests[test + t.T_COLUMN], event, seen)
        kept = np.int64(0)
        for k in range(at, at + count):
            rule = sets[k]
            place = own_at[rule] + tests[test + t.T_A]
            sets[at + kept] = rule
            kept += np.int64(_holds(tests[test + t.T_OPERATOR], kind, word, own[place], own[place + 1], seen))
        count = kept
    return count


@spliced
def suited(
    sets: t.Int32s,
    at: Any,
    count: Any,
    to: Any,
    rules: t.Rules,
    slot: Any,
    distance: Any,
    marked: Any,
    marks: t.Int64s,
    begin: Any,
    end: Any,
    event: Any,
    seen: Seen,
    moves: Any,
) -> Any:
    """Those of a set whose window reaches to a candidate, which they have not consumed, and whose tests it passes.

    `marked` is where its marks begin, or -1. With `moves` they leave the set. How many they are, and how many are
    left in the set; then the longest window of these, and the constant of their first test that most events pass.
    """
    own, own_at, tests = rules.own, rules.own_at, rules.tests
    first = begin * t.TEST
    kind, word, operator, constant = np.int64(MISSING), np.int64(0), np.int64(EQUAL), np.int64(0)
    if begin < end:
        kind, word = _tested(tests[first + t.T_COLUMN], event, seen)
        operator, constant = tests[first + t.T_OPERATOR], tests[first + t.T_A]
    taken = left = longest = np.int64(0)
    least, most, is_whole = np.int64((1 << 63) - 1), np.int64(-(1 << 63)), operator < EQUAL
    for k in range(at, at + count):
        rule = sets[k]
        place = own_at[rule]
        ticks = own[place + slot + t.TICKS]
        fits = ticks >= distance
        if marked >= 0:
            mark = own[place + slot + t.MARK]
            fits = fits and (marks[marked + (mark >> 6)] >> (mark & 63)) & 1 == 0
        other_kind, other = np.int64(INTEGER), np.int64(0)
        if begin < end:
            other_kind, other = own[place + constant], own[place + constant + 1]
            fits = fits and _holds(operator, kind, word, other_kind, other, seen)
            if fits and begin + 1 < end:
                sets[to + taken] = rule
                fits = that_pass(sets, to + taken, 1, own, own_at, tests, begin + 1, end, event, seen) == 1
        sets[to + taken] = rule
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
