"""Conditions over several events of a match, as tables, and the machine that evaluates them.

A value is two floats. Numbers: the nearest float and what is missing to the exact integer; texts and
booleans: a code and TEXT or BOOLEAN. NaN is no value. So two values compare exactly, as pairs, and those of
different kinds never do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import inlined

Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

TEXT, BOOLEAN = 1e300, 2e300

# Comparison operators.
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = range(6)
# Instructions: operands are (slot or constant, column).
CONSTANT, ATTRIBUTE, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, NEGATE = range(8)
COUNT, SUM, AVERAGE, LEAST, GREATEST, FIRST, LAST = range(8, 15)
MACHINE_DEPTH = 32


class Conditions(NamedTuple):
    """All conditions of a query. `x_at` are offsets: the x of item i are x[x_at[i] : x_at[i + 1]]."""

    slot_count: int
    label_slots_at: Int32s
    label_slots: Int32s  # slots (condition, variable) an event with the label fills
    label_tests_at: Int32s
    label_tests: Int32s  # [test, 4] -> operator, own column, other slot, its column (-1: the next event in that slot)
    label_general_at: Int32s
    label_general: Int32s  # [test, 2] -> condition, slot: tested over all combinations when the slot is filled
    label_enters_at: Int32s
    label_enters: Int32s  # conditions whose scope begins with the label
    slow: npt.NDArray[np.bool_]  # by label: it has general tests or begins a scope
    last_tests: Int32s  # conditions tested on a finished match
    whole: npt.NDArray[np.bool_]  # by condition: it has aggregates, so it is tested when its scope is known
    own_slots_at: Int32s
    own_slots: Int32s  # slots of each condition
    operators: Int32s
    singles_at: Int32s
    singles: Int32s  # slots read event by event
    wholes_at: Int32s
    wholes: Int32s  # slots without whose events the condition says nothing
    code_at: Int32s  # [2 * condition + side]
    code: Int32s  # [instruction, 3] -> operation, slot or constant, column
    constants: Floats  # [constant, 2]


@inlined
def compare(operator: int, left: float, left_rest: float, right: float, right_rest: float) -> bool:
    """Compare two values; false when one is missing or they are of different kinds."""
    if np.isnan(left) or np.isnan(right):
        return False
    if (left_rest >= TEXT or right_rest >= TEXT) and left_rest != right_rest:
        return False
    order = 0
    if left < right or (left == right and left_rest < right_rest):
        order = -1
    elif left > right or left_rest > right_rest:
        order = 1
    if operator == LESS:
        return order < 0
    if operator == LESS_EQUAL:
        return order <= 0
    if operator == GREATER:
        return order > 0
    if operator == GREATER_EQUAL:
        return order >= 0
    if operator == EQUAL:
        return order == 0
    return order != 0


@inlined
def _aggregate(
    operation: int,
    slot: int,
    column: int,
    row: int,
    latest: Int32s,
    earlier: Int32s,
    slots: int,
    payload: Floats,
    width: int,
) -> tuple[float, float]:
    """Fold a column over the events in a slot, in stream order."""
    entry = latest[row * slots + slot]
    count, value, rest = 0, np.nan, 0.0
    first = True
    while entry >= 0:
        here, here_rest = 1.0, 0.0
        if column >= 0:
            here, here_rest = payload[entry * width + 2 * column], payload[entry * width + 2 * column + 1]
        if operation == LAST or (operation == FIRST and first):
            value, rest = here, here_rest
        elif not np.isnan(here):
            number = here_rest < TEXT
            if operation == COUNT:
                count += 1
            elif operation in (SUM, AVERAGE):
                if number:
                    value = here if count == 0 else value + here
                    count += 1
            elif operation in (LEAST, GREATEST) and here_rest != BOOLEAN:
                better = count == 0 or (number and rest >= TEXT)
                if not better and number == (rest < TEXT):
                    smaller = here < value or (here == value and here_rest < rest)
                    better = smaller if operation == LEAST else not smaller
                if better:
                    value, rest = here, here_rest
                count += 1
        first = False
        entry = earlier[entry * slots + slot]
    if operation == COUNT:
        return float(count), 0.0
    if operation == AVERAGE and count > 0:
        return value / count, 0.0
    return value, rest


@inlined
def _evaluate(
    conditions: Conditions,
    side: int,
    choice: Int32s,
    row: int,
    latest: Int32s,
    earlier: Int32s,
    slots: int,
    payload: Floats,
    width: int,
) -> tuple[float, float]:
    """One side of a comparison; `choice[slot]` is the path entry chosen for a slot read event by event."""
    stack = np.empty(2 * MACHINE_DEPTH, np.float64)
    top = 0
    for at in range(conditions.code_at[side], conditions.code_at[side + 1]):
        operation, operand, column = conditions.code[3 * at], conditions.code[3 * at + 1], conditions.code[3 * at + 2]
        if operation == CONSTANT:
            stack[top], stack[top + 1] = conditions.constants[2 * operand], conditions.constants[2 * operand + 1]
            top += 2
        elif operation == ATTRIBUTE:
            entry = choice[operand]
            stack[top], stack[top + 1] = payload[entry * width + 2 * column], payload[entry * width + 2 * column + 1]
            top += 2
        elif operation >= COUNT:
            value, rest = _aggregate(operation, operand, column, row, latest, earlier, slots, payload, width)
            stack[top], stack[top + 1] = value, rest
            top += 2
        elif operation == NEGATE:
            number = stack[top - 1] < TEXT
            stack[top - 2] = -stack[top - 2] if number else np.nan
            stack[top - 1] = -stack[top - 1] if number else 0.0
        else:
            top -= 2
            left, right, result = stack[top - 2], stack[top], np.nan
            if stack[top - 1] < TEXT and stack[top + 1] < TEXT:
                if operation == ADD:
                    result = left + right
                elif operation == SUBTRACT:
                    result = left - right
                elif operation == MULTIPLY:
                    result = left * right
                elif right != 0.0:
                    result = left / right if operation == DIVIDE else np.fmod(left, right)
            stack[top - 2], stack[top - 1] = result, 0.0
    return stack[0], stack[1]


@inlined
def test_combinations(
    conditions: Conditions,
    condition: int,
    filled: int,
    entry: int,
    row: int,
    latest: Int32s,
    earlier: Int32s,
    slots: int,
    payload: Floats,
    width: int,
) -> bool:
    """Whether a comparison holds for every choice of events; those of slot `filled` are only `entry` (-1: any)."""
    begin, end = conditions.singles_at[condition], conditions.singles_at[condition + 1]
    for k in range(conditions.wholes_at[condition], conditions.wholes_at[condition + 1]):
        if latest[row * slots + conditions.wholes[k]] < 0:
            return True
    choice = np.empty(slots, np.int32)
    for k in range(begin, end):
        slot = conditions.singles[k]
        choice[slot] = entry if slot == filled else latest[row * slots + slot]
        if choice[slot] < 0:
            return True
    while True:
        left, left_rest = _evaluate(conditions, 2 * condition, choice, row, latest, earlier, slots, payload, width)
        right, right_rest = _evaluate(
            conditions, 2 * condition + 1, choice, row, latest, earlier, slots, payload, width
        )
        if not compare(conditions.operators[condition], left, left_rest, right, right_rest):
            return False
        k = begin
        while k < end:
            slot = conditions.singles[k]
            if slot != filled:
                choice[slot] = earlier[choice[slot] * slots + slot]
                if choice[slot] >= 0:
                    break
                choice[slot] = latest[row * slots + slot]
            k += 1
        if k == end:
            return True
