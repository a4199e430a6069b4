"""The machine that evaluates conditions and expressions over bound events, for all operators.

An operator provides the machine's input in an array table: the values of events (`tagged`), the event in each slot, and
its own results, such as sums. Code is a row of instructions that work on one stack of values; a truth is a boolean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.tagged import (
    BOOLEAN,
    DECIMAL,
    EQUAL,
    FLOAT,
    INTEGER,
    MISSING,
    TEXT,
    VALUE,
    Bytes,
    Int64s,
    calculated,
    float_of,
    order_of,
    rounded_off,
    satisfies,
)
from weft.kernels.memory.room import noted, octets, words

# An instruction is an operation and three numbers X, Y, Z. CONSTANT has kind and word at Y and Z. ATTRIBUTE is that of
# the event in slot X (-1: of the current event) in column Y, RESULT the one with number X. CALCULATE and COMPARE have
# the operator at X, ALL and ANY how many truths they take, LOOKS the number of a pattern. VACUOUS leaves true and skips
# Z instructions, when slot X has no event. EVERY … REPEAT goes through the list of slot X until what is between them
# leaves false; it is true of none: EVERY then skips Z instructions. REPEAT goes back over Z.
CONSTANT, ATTRIBUTE, RESULT, CALCULATE, COMPARE, ALL, ANY, NOT, CONTAINS, LOOKS, VACUOUS, EVERY, REPEAT = range(13)
INSTRUCTION = 4
# The list of a slot: where it begins and ends in the array of lists, and the place of the event that is chosen.
LIST = 3
ALONE = np.int64(-1)  # there is no event at hand


class Machine(NamedTuple):
    """The arrays that the machine reads, in the order of the array table."""

    code: Int64s
    stack: Int64s
    values: Int64s  # of each event `width` words
    width: int
    chosen: Int64s  # the event in each slot, -1 when there is none; slots are so many words apart
    stride: int
    results: Int64s
    lists: Int64s
    texts: Bytes
    text_offsets: Int64s
    looks: npt.NDArray[np.bool_]  # for each text, and each of the patterns, whether it looks like it
    patterns: int


CODE, STACK, VALUES, WIDTH, CHOSEN, STRIDE, RESULTS, LISTS, TEXTS, TEXT_OFFSETS, LOOKS_LIKE, PATTERNS = range(12)
NOTES = 12


@device_no_refcount
def compare(room: Int64s, operator: Any, kind: Any, word: Any, other_kind: Any, other: Any) -> bool:
    """Whether a comparison of two values holds."""
    order = order_of(kind, word, other_kind, other, octets(room, TEXTS), words(room, TEXT_OFFSETS))
    return bool(satisfies(operator, order))


@always_inline
def holds(room: Int64s, operator: Any, kind: Any, word: Any, other_kind: Any, other: Any) -> Any:
    """Like `compare`, but inlined into loops."""
    if kind == INTEGER and other_kind == INTEGER:
        found = satisfies(operator, np.int64(word > other) - np.int64(word < other))
    elif kind == FLOAT and other_kind == FLOAT:
        x, y = float_of(word), float_of(other)
        found = satisfies(operator, np.int64(x > y) - np.int64(x < y))
    elif operator >= EQUAL and kind == TEXT and other_kind == TEXT:
        found = (word == other) == (operator == EQUAL)
    else:
        found = compare(room, operator, kind, word, other_kind, other)
    return found


@device_no_refcount
def _contains(room: Int64s, text: Any, part: Any) -> bool:
    pool, offsets = octets(room, TEXTS), words(room, TEXT_OFFSETS)
    begin, end = offsets[text], offsets[text + 1]
    other, size = offsets[part], offsets[part + 1] - offsets[part]
    for at in range(begin, end - size + 1):
        k = 0
        while k < size and pool[at + k] == pool[other + k]:
            k += 1
        if k == size:
            return True
    return False


@device_no_refcount
def _round_off(room: Int64s, stack: Int64s, top: Any) -> None:
    """Convert decimals to floats, in the two values below and at a place of the stack."""
    pool, offsets = octets(room, TEXTS), words(room, TEXT_OFFSETS)
    for at in range(top - VALUE, top + VALUE, VALUE):
        stack[at], stack[at + 1] = rounded_off(stack[at], stack[at + 1], pool, offsets)


@device_no_refcount
def evaluate(room: Int64s, begin: Any, end: Any, hand: Any) -> Any:
    """Return the value of the code between two instructions; `hand` is the current event, or ALONE."""
    code, stack, values, chosen = words(room, CODE), words(room, STACK), words(room, VALUES), words(room, CHOSEN)
    width, stride = noted(room, WIDTH), noted(room, STRIDE)
    top = 0
    at, stop = begin * INSTRUCTION, end * INSTRUCTION
    while at < stop:
        operation, x, y, z = code[at], code[at + 1], code[at + 2], code[at + 3]
        at += INSTRUCTION
        if operation == CONSTANT:
            stack[top], stack[top + 1] = y, z
            top += VALUE
        elif operation == ATTRIBUTE:
            event = hand if x < 0 else chosen[x * stride]
            place = event * width + VALUE * y
            stack[top] = MISSING
            if event >= 0:
                stack[top], stack[top + 1] = values[place], values[place + 1]
            top += VALUE
        elif operation == RESULT:
            results = words(room, RESULTS)
            stack[top], stack[top + 1] = results[VALUE * x], results[VALUE * x + 1]
            top += VALUE
        elif operation == CALCULATE:
            top -= VALUE
            if stack[top - 2] == DECIMAL or stack[top] == DECIMAL:
                _round_off(room, stack, top)
            stack[top - 2], stack[top - 1] = calculated(x, stack[top - 2], stack[top - 1], stack[top], stack[top + 1])
        elif operation == COMPARE:
            top -= VALUE
            truth = compare(room, x, stack[top - 2], stack[top - 1], stack[top], stack[top + 1])
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(truth)
        elif operation == CONTAINS:
            top -= VALUE
            truth = stack[top - 2] == TEXT and stack[top] == TEXT and _contains(room, stack[top - 1], stack[top + 1])
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(truth)
        elif operation == LOOKS:
            place = stack[top - 1] * noted(room, PATTERNS) + x
            truth = stack[top - 2] == TEXT and octets(room, LOOKS_LIKE)[place] != 0
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(truth)
        elif operation == NOT:
            stack[top - 1] = 1 - stack[top - 1]
        elif operation in (VACUOUS, EVERY):
            empty = chosen[x * stride] < 0
            if operation == EVERY:
                lists = words(room, LISTS)
                lists[LIST * x + 2] = lists[LIST * x]
                empty = lists[LIST * x] == lists[LIST * x + 1]
                if not empty:
                    chosen[x * stride] = lists[lists[LIST * x]]
            if empty:
                stack[top], stack[top + 1] = BOOLEAN, 1
                top += VALUE
                at += z * INSTRUCTION
        elif operation == REPEAT:
            lists = words(room, LISTS)
            following = lists[LIST * x + 2] + 1
            if stack[top - 1] != 0 and following < lists[LIST * x + 1]:
                lists[LIST * x + 2], chosen[x * stride] = following, lists[following]
                top -= VALUE
                at -= z * INSTRUCTION
        else:  # ALL or ANY of so many
            count = 0
            for k in range(x):
                count += stack[top - 1 - VALUE * k]
            top -= VALUE * (x - 1)
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(count == x if operation == ALL else count > 0)
    return stack[0], stack[1]
