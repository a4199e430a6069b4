"""Evaluate clauses of assertions over the bound events: quick comparisons of two attributes, and code."""

from __future__ import annotations

from weft.kernels.jit import device_no_refcount
from weft.kernels.machine import machine
from weft.kernels.machine.tagged import VALUE
from weft.kernels.memory.room import words
from weft.kernels.situations.participants import BOUND, QUICK, WIDTH, Int64s

QUICKLY = 5  # of a quick comparison: operator, slot and column, slot and column


@device_no_refcount
def holds(m: Int64s, room: Int64s, quick: int, quick_end: int, code: int, code_end: int) -> bool:
    """Whether a range of quick comparisons, and of code, hold for the bound events."""
    values = words(room, machine.VALUES)
    for at in range(m[QUICK] + quick, m[QUICK] + quick_end, QUICKLY):
        one = m[m[BOUND] + m[at + 1]] * m[WIDTH] + VALUE * m[at + 2]
        other = m[m[BOUND] + m[at + 3]] * m[WIDTH] + VALUE * m[at + 4]
        if not machine.holds(room, m[at], values[one], values[one + 1], values[other], values[other + 1]):
            return False
    return code == code_end or machine.evaluate(room, code, code_end, machine.ALONE)[1] != 0
