"""Conditions that depend on the match so far: a stack machine with SQL's three truth values.

Values are integers or floats, as the code says; a value may be missing. Truths are integers. Times, decimals and texts
are integers, too: compared values share a unit, a scale, a dictionary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.row_patterns.tables import Float64s, Int64s, UInt8s

# An instruction is an operation and two numbers. INTEGER has a constant at X, REAL its place among the constants,
# COLUMN and REALS a column at X at the row of navigation Y, LABEL the label there; SUM and REAL_SUM the value of
# aggregate X, COUNT the number of values that it is of.
(
    INTEGER,
    REAL,
    MISSING,
    COLUMN,
    REALS,
    LABEL,
    NUMBER_OF_MATCH,
    SUM,
    REAL_SUM,
    COUNT,
    TO_REAL,
    ADD,
    SUBTRACT,
    MULTIPLY,
    REMAINDER,
    ADD_REALS,
    SUBTRACT_REALS,
    MULTIPLY_REALS,
    DIVIDE_REALS,
    COMPARE,
    COMPARE_REALS,
    AND,
    OR,
    NOT,
    IS_MISSING,
) = range(25)
INSTRUCTION = 3
# How two values may be ordered, as bits: below, equal, above.
BELOW, EQUAL, ABOVE = 1, 2, 4
# Kinds of aggregates, and their words: the kind, the column, whether it is of floats, the set of variables.
COUNT_ROWS, COUNT_VALUES, ADD_UP, LEAST, GREATEST = range(5)
KIND, OF_COLUMN, IS_REAL, OF_SET = range(4)
AGGREGATE = 4
# Words of a navigation: the set of variables, whether from the first row, offset among these rows, shift of rows.
SET, FROM_FIRST, OFFSET, SHIFT = range(4)
NAVIGATION = 4
FALSE, TRUE, UNKNOWN, DIVIDED_BY_ZERO, TO_BE_ASKED = range(5)


class ConditionCode(NamedTuple):
    """Code of all conditions, and the columns it reads: `size` values of each, contiguously."""

    begins: Int64s  # of each variable's code, and the end of the last one
    asked: UInt8s  # variables whose condition the caller must evaluate
    code: Int64s
    reals: Float64s
    navigations: Int64s
    aggregates: Int64s
    members: UInt8s  # whether a variable is in a set, by set and variable
    sets: int
    variables: int
    labels: Int64s  # the label of each state, as texts are numbered
    history: Int64s  # variables that conditions can tell apart, by number
    columns: Int64s
    real_columns: Float64s
    missing: UInt8s  # of `columns`, then of `real_columns`
    size: int


class SearchRoom(NamedTuple):
    """The stack of matched rows: for each its state, transition, and the state of conditions after it."""

    states: Int64s
    transitions: Int64s
    histories: Int64s  # two hashes for each
    counts: Int64s  # of aggregates, for each row
    sums: Int64s
    real_sums: Float64s
    mapped: Int64s  # of each set: how many rows are mapped to it
    rows: Int64s  # of each set: these rows, one after the other
    most: int  # rows of a set
    stack: Int64s
    real_stack: Float64s
    lacks: UInt8s
    failures: Int64s  # memo: two hashes and a stamp for each


@device_no_refcount
def take_row(code: ConditionCode, room: SearchRoom, depth: Any, variable: Any, row: Any) -> None:
    """Update the state of conditions with a row, after `depth` rows."""
    for s in range(code.sets):
        before = room.mapped[depth * code.sets + s]
        if code.members[s * code.variables + variable] != 0:
            room.rows[s * room.most + before] = row
            before += 1
        room.mapped[(depth + 1) * code.sets + s] = before
    width = len(code.aggregates) // AGGREGATE
    for a in range(width):
        old, new = depth * width + a, (depth + 1) * width + a
        room.counts[new], room.sums[new], room.real_sums[new] = room.counts[old], room.sums[old], room.real_sums[old]
        if code.members[code.aggregates[a * AGGREGATE + OF_SET] * code.variables + variable] != 0:
            _fold(code, room, a * AGGREGATE, new, row)


@device_no_refcount
def _fold(code: ConditionCode, room: SearchRoom, aggregate: Any, at: Any, row: Any) -> None:
    """Add the value of a row to an aggregate."""
    kind, column = code.aggregates[aggregate + KIND], code.aggregates[aggregate + OF_COLUMN]
    if kind == COUNT_ROWS:
        room.counts[at] += 1
        return
    real = code.aggregates[aggregate + IS_REAL] != 0
    place = column * code.size + row
    if code.missing[place + (len(code.columns) if real else 0)] != 0:
        return
    is_first = room.counts[at] == 0
    room.counts[at] += 1
    if real:
        value = code.real_columns[place]
        if kind == ADD_UP:
            room.real_sums[at] += value
        elif is_first or (value < room.real_sums[at] if kind == LEAST else value > room.real_sums[at]):
            room.real_sums[at] = value
    elif kind != COUNT_VALUES:
        number = code.columns[place]
        if kind == ADD_UP:
            room.sums[at] += number
        elif is_first or (number < room.sums[at] if kind == LEAST else number > room.sums[at]):
            room.sums[at] = number


@always_inline
def _row_of(code: ConditionCode, room: SearchRoom, navigation: Any, depth: Any, first: Any, last: Any) -> Any:
    """Return the row that a navigation refers to after `depth` rows, or -1."""
    at = navigation * NAVIGATION
    s, offset = code.navigations[at + SET], code.navigations[at + OFFSET]
    mapped = room.mapped[depth * code.sets + s]
    if offset >= mapped:
        return np.int64(-1)
    k = offset if code.navigations[at + FROM_FIRST] != 0 else mapped - 1 - offset
    row = room.rows[s * room.most + k] + code.navigations[at + SHIFT]
    if row < first or row >= last:
        return np.int64(-1)
    return row


@always_inline
def _truth(operation: Any, x: Any, lacks_x: Any, y: Any, lacks_y: Any) -> Any:
    """Return AND or OR of two truths, and whether it is unknown."""
    decides = np.int64(operation == OR)
    if (lacks_x == 0 and x == decides) or (lacks_y == 0 and y == decides):
        return decides, np.uint8(0)
    return 1 - decides, lacks_x | lacks_y


@device_no_refcount
def _load(
    code: ConditionCode, room: SearchRoom, at: Any, top: Any, depth: Any, start: Any, first: Any, last: Any, number: Any
) -> Any:
    """Push a value; return whether the operation does that."""
    operation, x, y = code.code[at], code.code[at + 1], code.code[at + 2]
    stack, reals, lacks = room.stack, room.real_stack, room.lacks
    width = len(code.aggregates) // AGGREGATE
    lacks[top] = 0
    if operation == INTEGER:
        stack[top] = x
    elif operation == REAL:
        reals[top] = code.reals[x]
    elif operation == MISSING:
        lacks[top] = 1
    elif operation == NUMBER_OF_MATCH:
        stack[top] = number
    elif operation in (SUM, REAL_SUM):
        lacks[top] = np.uint8(room.counts[depth * width + x] == 0)
        stack[top], reals[top] = room.sums[depth * width + x], room.real_sums[depth * width + x]
    elif operation == COUNT:
        stack[top] = room.counts[depth * width + x]
    elif operation in (COLUMN, REALS, LABEL):
        row = _row_of(code, room, y, depth, first, last)
        if row < 0:
            lacks[top] = 1
        elif operation == COLUMN:
            stack[top], lacks[top] = code.columns[x * code.size + row], code.missing[x * code.size + row]
        elif operation == REALS:
            reals[top] = code.real_columns[x * code.size + row]
            lacks[top] = code.missing[len(code.columns) + x * code.size + row]
        elif row < start or row >= start + depth:
            lacks[top] = 1
        else:
            stack[top] = code.labels[room.states[row - start + 1]]
    else:
        return False
    return True


@device_no_refcount
def _combine(operation: Any, x: Any, room: SearchRoom, top: Any) -> Any:
    """Replace the two values on top by one; return whether it divided by zero."""
    stack, reals, lacks = room.stack, room.real_stack, room.lacks
    a, b = top - 2, top - 1
    if operation in (AND, OR):
        stack[a], lacks[a] = _truth(operation, stack[a], lacks[a], stack[b], lacks[b])
        return False
    lacks[a] |= lacks[b]
    if lacks[a] != 0:
        return False
    if operation == ADD:
        stack[a] += stack[b]
    elif operation == SUBTRACT:
        stack[a] -= stack[b]
    elif operation == MULTIPLY:
        stack[a] *= stack[b]
    elif operation == ADD_REALS:
        reals[a] += reals[b]
    elif operation == SUBTRACT_REALS:
        reals[a] -= reals[b]
    elif operation == MULTIPLY_REALS:
        reals[a] *= reals[b]
    elif operation == DIVIDE_REALS:
        if reals[b] == 0.0:
            return True
        reals[a] /= reals[b]
    elif operation == REMAINDER:
        if stack[b] == 0:
            return True
        remainder = abs(stack[a]) % abs(stack[b])
        stack[a] = -remainder if stack[a] < 0 else remainder
    elif operation == COMPARE:
        below, above = stack[a] < stack[b], stack[a] > stack[b]
        stack[a] = np.int64(x & (BELOW if below else ABOVE if above else EQUAL) != 0)
    else:
        under, over = reals[a] < reals[b], reals[a] > reals[b]
        stack[a] = np.int64(x & (BELOW if under else ABOVE if over else EQUAL) != 0)
    return False


@device_no_refcount
def holds_for(
    code: ConditionCode, room: SearchRoom, variable: Any, depth: Any, start: Any, first: Any, last: Any, number: Any
) -> Any:
    """Evaluate a variable's condition after `depth` rows, the last one mapped to the variable."""
    if code.asked[variable] != 0:
        return np.int64(TO_BE_ASKED)
    at, end = code.begins[variable] * INSTRUCTION, code.begins[variable + 1] * INSTRUCTION
    if at == end:
        return np.int64(TRUE)
    top = np.int64(0)
    while at < end:
        operation = code.code[at]
        if _load(code, room, at, top, depth, start, first, last, number):
            top += 1
        elif operation == NOT:
            room.stack[top - 1] = 1 - room.stack[top - 1]
        elif operation == IS_MISSING:
            room.stack[top - 1], room.lacks[top - 1] = np.int64(room.lacks[top - 1]), np.uint8(0)
        elif operation == TO_REAL:
            room.real_stack[top - 1] = np.float64(room.stack[top - 1])
        else:
            if _combine(operation, code.code[at + 1], room, top):
                return np.int64(DIVIDED_BY_ZERO)
            top -= 1
        at += INSTRUCTION
    return np.int64(UNKNOWN) if room.lacks[0] != 0 else room.stack[0]
