"""Conditions over several events of a match as tables, and their evaluation by the machine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton.tecs import BARE, LABEL_MASK
from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.machine import (
    ALONE,
    CHOSEN,
    LIST,
    LISTS,
    RESULTS,
    TEXT_OFFSETS,
    TEXTS,
    VALUES,
    WIDTH,
    evaluate,
    holds,
)
from weft.kernels.machine.tagged import (
    ADD,
    DECIMAL,
    DIVIDE,
    FLOAT,
    INTEGER,
    MISSING,
    TEXT,
    VALUE,
    Int64s,
    calculated,
    order_of,
    rounded_off,
)
from weft.kernels.memory.room import noted, octets, words

Int32s = npt.NDArray[np.int32]

COUNT, SUM, AVERAGE, LEAST, GREATEST, FIRST, LAST = range(7)  # functions of all events in a slot
FOLD = 3  # words of a fold: function, slot, column (-1: the events themselves)
# A quick test compares an event with others: all in another slot; all, if it is itself the last of its slot; the last
# in another slot; the next in the same slot.
TEST = 6
OF_ALL, OF_LAST, AGAINST_LAST, AGAINST_NEXT = range(4)


class Conditions(NamedTuple):
    """All conditions of a query. `x_at` are offsets: the x of item i are x[x_at[i] : x_at[i + 1]]."""

    slot_count: int
    fewest: int  # events of a match that some condition requires
    label_slots_at: Int32s
    label_slots: Int32s  # slots (condition, variable) an event with the label fills
    label_tests_at: Int32s
    label_tests: Int32s  # [test, TEST] -> operator, own slot and column, other slot and column, which events
    label_general_at: Int32s
    label_general: Int32s  # [test, 2] -> condition, slot: tested over all combinations when the slot is filled
    label_enters_at: Int32s
    label_enters: Int32s  # conditions whose scope begins with the label
    slow: npt.NDArray[np.bool_]  # by label: it has general tests or begins a scope
    last_tests: Int32s  # conditions tested on a finished match
    whole: npt.NDArray[np.bool_]  # by condition: it has aggregates, so it is tested when its scope is known
    own_slots_at: Int32s
    own_slots: Int32s  # slots of each condition
    singles_at: Int32s
    singles: Int32s  # slots read event by event
    folds_at: Int32s
    folds: Int32s  # [fold, 3]: the results that the code of each condition reads
    code_at: Int32s  # [condition, 2] -> where its code begins and ends
    room: Int64s  # the array table of the machine


class Cuts(NamedTuple):
    """Tests by label that a partial match can fail for good; they are among those of `Conditions`."""

    tests_at: Int32s
    tests: Int32s  # [test, TEST]
    fills: npt.NDArray[np.bool_]  # [label, slot]
    slot_count: int
    fewest: int  # marks of a run that can end
    room: Int64s


KEEP, NOT_LAST, CUT = range(3)  # a run: continues, cannot end here, can neither end nor continue
_LOOKED_AT = 4  # successors of an event that are visited


@always_inline
def cut(
    cuts: Cuts,
    nodes: Int64s,
    mask: int,
    stored: Int64s,
    width: Any,
    tail: Any,
    new: Int64s,
    at: Any,
    label: Any,
    head: Any,
) -> int:
    """Decide about the runs of a set at an event that would be marked next: KEEP unless all fail a test with it."""
    begin, end = cuts.tests_at[label], cuts.tests_at[label + 1]
    if begin == end:
        return KEEP
    answer = CUT
    for _ in range(_LOOKED_AT):
        place = head & mask
        last = nodes[place << 2] & LABEL_MASK
        if last >= BARE:
            return KEEP
        verdict = KEEP
        for t in range(TEST * begin, TEST * end, TEST):
            if verdict == CUT or not cuts.fills[last * cuts.slot_count + cuts.tests[t + 3]]:
                continue
            mine, their = at + VALUE * cuts.tests[t + 2], place * width + VALUE * cuts.tests[t + 4]
            kind, word, other_kind, other = new[mine], new[mine + 1], stored[their], stored[their + 1]
            if cuts.tests[t + 5] == AGAINST_NEXT:  # of the two, the current event is the next
                kind, word, other_kind, other = other_kind, other, kind, word
            if not holds(cuts.room, cuts.tests[t], kind, word, other_kind, other):
                verdict = NOT_LAST if cuts.tests[t + 5] == AGAINST_LAST else CUT
        if verdict == KEEP:
            return KEEP
        answer = min(answer, verdict)
        head = nodes[(place << 2) + 2]
        if head < tail:
            return answer
    return KEEP


@device_no_refcount
def _fold(room: Int64s, function: Any, slot: Any, column: Any, entry: Any, earlier: Int32s, slots: Any) -> Any:
    """Apply a function to a column over the events in a slot, in stream order, from an entry on."""
    payload, width = words(room, VALUES), noted(room, WIDTH)
    count = np.int64(0)
    kind, word = np.int64(MISSING), np.int64(0)
    if function in (SUM, AVERAGE):
        kind = np.int64(INTEGER)
    first = True
    while entry >= 0:
        here_kind, here = np.int64(INTEGER), np.int64(1)
        if column >= 0:
            here_kind, here = payload[entry * width + VALUE * column], payload[entry * width + VALUE * column + 1]
        number = here_kind in (INTEGER, FLOAT, DECIMAL)
        if function == LAST or (function == FIRST and first):
            kind, word = here_kind, here
        elif function == COUNT:
            count += here_kind != MISSING
        elif function in (SUM, AVERAGE):
            if number:
                here_kind, here = rounded_off(here_kind, here, octets(room, TEXTS), words(room, TEXT_OFFSETS))
                kind, word = calculated(ADD, kind, word, here_kind, here)
                count += 1
        elif function != FIRST and (number or here_kind == TEXT):
            better = kind == MISSING or (number and kind == TEXT)  # numbers precede texts
            if not better:
                order = order_of(here_kind, here, kind, word, octets(room, TEXTS), words(room, TEXT_OFFSETS))
                better = order == (-1 if function == LEAST else 1)
            if better:
                kind, word = here_kind, here
        first = False
        entry = earlier[entry * slots + slot]
    if function == COUNT:
        kind, word = np.int64(INTEGER), count
    elif function in (SUM, AVERAGE) and count == 0:
        kind = np.int64(MISSING)
    elif function == AVERAGE:
        kind, word = calculated(DIVIDE, kind, word, INTEGER, count)
    return kind, word


@device_no_refcount
def test_combinations(
    conditions: Conditions, condition: Any, filled: Any, entry: Any, row: Any, latest: Int32s, earlier: Int32s
) -> bool:
    """Whether a condition holds for all combinations of events.

    The events of slot `filled` are only `entry`, or all if that is -1.
    """
    room, slots = conditions.room, conditions.slot_count
    chosen, lists, results = words(room, CHOSEN), words(room, LISTS), words(room, RESULTS)
    for k in range(conditions.own_slots_at[condition], conditions.own_slots_at[condition + 1]):
        chosen[conditions.own_slots[k]] = latest[row * slots + conditions.own_slots[k]]
    used = np.int64(LIST * slots)
    for k in range(conditions.singles_at[condition], conditions.singles_at[condition + 1]):
        slot = conditions.singles[k]
        lists[LIST * slot] = used
        met = np.int64(entry) if slot == filled else np.int64(latest[row * slots + slot])
        while met >= 0:
            lists[used] = met
            used += 1
            met = np.int64(-1) if slot == filled else np.int64(earlier[met * slots + slot])
        lists[LIST * slot + 1] = used
        if used == lists[LIST * slot]:
            return True
    first = conditions.folds_at[condition]
    for k in range(first, conditions.folds_at[condition + 1]):
        function, slot, column = (
            conditions.folds[FOLD * k],
            conditions.folds[FOLD * k + 1],
            conditions.folds[FOLD * k + 2],
        )
        at = VALUE * (k - first)
        met = np.int64(latest[row * slots + slot])
        results[at], results[at + 1] = _fold(room, function, slot, column, met, earlier, slots)
    begin, end = conditions.code_at[2 * condition], conditions.code_at[2 * condition + 1]
    return bool(evaluate(room, np.int64(begin), np.int64(end), ALONE)[1] != 0)
