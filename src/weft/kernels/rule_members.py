"""Rules of one row are searched for together: which of a set go on with an event, by what they have of their own.

A set is a stretch of `sets`, in the order of rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, spliced
from weft.kernels.rule_scan import Seen
from weft.kernels.tagged import FLOAT, INTEGER, VALUE, float_of, order_of, satisfies


@spliced
def within_reach(
    sets: t.Int32s, at: Any, count: Any, to: Any, own: t.Int64s, own_at: t.Int64s, slot: Any, distance: Any
) -> Any:
    """Those whose window reaches so far back: how many."""
    kept = np.int64(0)
    for k in range(at, at + count):
        rule = sets[k]
        sets[to + kept] = rule
        kept += own[own_at[rule] + slot] >= distance
    return kept


@spliced
def not_consumed(
    sets: t.Int32s, at: Any, count: Any, own: t.Int64s, own_at: t.Int64s, slot: Any, marks: t.Int64s, first: Any
) -> Any:
    """Those that have not consumed an event, whose marks begin at `first`: how many."""
    kept = np.int64(0)
    for k in range(at, at + count):
        rule = sets[k]
        mark = own[own_at[rule] + slot]
        sets[at + kept] = rule
        kept += (marks[first + (mark >> 6)] >> (mark & 63)) & 1 == 0
    return kept


@spliced
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
    """Those whose own constants an event, or summaries, pass: how many."""
    for test in range(begin * t.TEST, end * t.TEST, t.TEST):
        operator, column, slot = tests[test + t.T_OPERATOR], tests[test + t.T_COLUMN], tests[test + t.T_A]
        if column >= 0:
            place = event * seen.width + VALUE * column
            kind, word = seen.values[place], seen.values[place + 1]
        else:
            kind, word = seen.results[VALUE * (-1 - column)], seen.results[VALUE * (-1 - column) + 1]
        kept = np.int64(0)
        for k in range(at, at + count):
            rule = sets[k]
            place = own_at[rule] + slot
            other_kind, other = own[place], own[place + 1]
            if kind == INTEGER and other_kind == INTEGER:
                order = np.int64(word > other) - np.int64(word < other)
            elif kind == FLOAT and other_kind == FLOAT:
                order = np.int64(float_of(word) > float_of(other)) - np.int64(float_of(word) < float_of(other))
            else:
                order = order_of(kind, word, other_kind, other, seen.texts, seen.text_offsets)
            sets[at + kept] = rule
            kept += np.int64(satisfies(operator, order))
        count = kept
    return count


@bare
def those_that_pass(
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
    """The same, for where it is not asked over and over."""
    return that_pass(sets, at, count, own, own_at, tests, begin, end, event, seen)


@spliced
def without(sets: t.Int32s, at: Any, count: Any, taken_at: Any, taken: Any) -> Any:
    """Those that are not in a second set, which is a part of the first: how many."""
    kept, out = np.int64(0), np.int64(0)
    if taken < count:
        for k in range(at, at + count):
            rule = sets[k]
            if out < taken and sets[taken_at + out] == rule:
                out += 1
            else:
                sets[at + kept] = rule
                kept += 1
    return kept
