"""Clauses of assertions over the events that are bound: quick comparisons of two attributes, and code for the rest.

The code is that of `weft.kernels.joins.joint`, of which it needs the part without loops.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.automaton.conditions import TEXT
from weft.kernels.jit import bare
from weft.kernels.joins.joint import (
    ALL,
    ATTRIBUTE,
    CHECK,
    COMPARE,
    CONSTANT,
    NEGATE,
    NOT,
    REMAINDER,
    TRUTH,
    calculate,
    compare_values,
)
from weft.kernels.joins.joint import WIDTH as INSTRUCTION
from weft.kernels.situations.participants import BOUND, CODE, QUICK, WIDTH, Facts, Int64s

QUICKLY = 5  # of a quick comparison: operator, slot and column, slot and column


@bare
def holds(m: Int64s, facts: Facts, quick: int, quick_end: int, code: int, code_end: int) -> bool:
    """Whether comparisons and code, from a place of their table to another, are true of what is bound."""
    values, pool, offsets = facts.values, facts.pool, facts.offsets
    for at in range(m[QUICK] + quick, m[QUICK] + quick_end, QUICKLY):
        one = m[m[BOUND] + m[at + 1]] * m[WIDTH] + 2 * m[at + 2]
        other = m[m[BOUND] + m[at + 3]] * m[WIDTH] + 2 * m[at + 4]
        if not compare_values(m[at], values[one], values[one + 1], values[other], values[other + 1], pool, offsets):
            return False
    return code == code_end or _code_holds(m, facts, m[CODE] + code, m[CODE] + code_end)


@bare
def _code_holds(m: Int64s, facts: Facts, begin: int, end: int) -> bool:
    values, stack, pool, offsets = facts.values, facts.constants, facts.pool, facts.offsets
    top = facts.stack
    for at in range(begin, end, INSTRUCTION):
        operation, x, y, z = m[at], m[at + 1], m[at + 2], m[at + 3]
        if operation == CHECK:
            top -= 2
            if stack[top] == 0.0:
                return False
        elif operation == CONSTANT:
            stack[top], stack[top + 1] = stack[2 * x], stack[2 * x + 1]
            top += 2
        elif operation == ATTRIBUTE:
            event = m[m[BOUND] + y] * m[WIDTH] + 2 * z
            stack[top], stack[top + 1] = values[event], values[event + 1]
            top += 2
        elif operation == NEGATE:
            number = stack[top - 1] < TEXT
            stack[top - 2] = 0.0 - stack[top - 2] if number else np.nan
            stack[top - 1] = -stack[top - 1] if number else 0.0
        elif operation <= REMAINDER:
            top -= 2
            number = stack[top - 1] < TEXT and stack[top + 1] < TEXT
            stack[top - 2] = calculate(operation, stack[top - 2], stack[top]) if number else np.nan
            stack[top - 1] = 0.0
        elif operation == COMPARE:
            top -= 2
            truth = compare_values(x, stack[top - 2], stack[top - 1], stack[top], stack[top + 1], pool, offsets)
            stack[top - 2] = 1.0 if truth else 0.0
        elif operation == TRUTH:
            stack[top] = np.float64(x)
            top += 2
        elif operation == NOT:
            stack[top - 2] = 1.0 - stack[top - 2]
        else:  # ALL, ANY
            count = 0.0
            for k in range(x):
                count += stack[top - 2 * (k + 1)]
            top -= 2 * (x - 1)
            stack[top - 2] = 1.0 if (count == x if operation == ALL else count > 0.0) else 0.0
    return True
