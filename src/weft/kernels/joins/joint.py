"""Joint conditions: on two occurrences that may be joined, or on one alone, as code for a small machine.

An instruction is four numbers. Values are pairs of floats as in `weft.kernels.automaton.conditions`, but a text
is the id of its bytes in a pool. Values and truths share one stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton.conditions import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, TEXT, UNEQUAL, compare
from weft.kernels.jit import inlined, spliced
from weft.kernels.joins.occurrences import (
    END,
    EVENT,
    EVENT_END,
    EVENT_START,
    FEWEST,
    KIND,
    MOST,
    RIGHT,
    ROW,
    SLOTS,
    SOURCE,
    START,
    grown,
    parts_of,
)
from weft.kernels.memory.borrow import borrowed

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

# Operations. CHECK ends a condition: the whole is false if it is. QUICK is a comparison of two attributes and CHECK
# in one, SPAN one of the length of the whole with a number of ticks. VACUOUS jumps with true when a slot is unbound;
# EVERY … REPEAT loops over all events of a variable. LOOKS asks whether a text looks like a pattern.
CHECK, QUICK, CONSTANT, ATTRIBUTE, ELAPSED, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, NEGATE = range(11)
COMPARE, CONTAINS, TRUTH, ALL, ANY, NOT, VACUOUS, EVERY, TERM, REPEAT, CHOSEN, SPAN, LOOKS = range(11, 24)
# Whose slot: the left one's, the right one's, the right one's or (where that has none) the left one's.
ON_LEFT, ON_RIGHT, ON_EITHER = range(3)
WIDTH = 4
SIDE, SLOT, COLUMN = 1 << 40, 1 << 20, 1  # an operand of QUICK is their weighted sum


class Facts(NamedTuple):
    """What conditions can read: constants, times and values of events, texts; and a stack to work on."""

    constants: Floats
    events: Int64s
    values: Floats  # two for each column of each event
    width: int
    pool: Bytes
    offsets: Int64s
    looks: npt.NDArray[np.bool_]  # for each text, and each of the patterns, whether it looks like it
    patterns: int
    stack: Floats


@inlined
def borrow(facts: Facts) -> Facts:
    """The same facts, borrowed."""
    return Facts(
        borrowed(facts.constants),
        borrowed(facts.events),
        borrowed(facts.values),
        facts.width,
        borrowed(facts.pool),
        borrowed(facts.offsets),
        borrowed(facts.looks),
        facts.patterns,
        borrowed(facts.stack),
    )


@inlined
def _compare_texts(one: np.int64, other: np.int64, pool: Bytes, offsets: Int64s) -> int:
    """-1, 0 or 1 by the order of bytes, which is that of characters."""
    a, b = offsets[one], offsets[other]
    size, other_size = offsets[one + 1] - a, offsets[other + 1] - b
    for k in range(min(size, other_size)):
        if pool[a + k] != pool[b + k]:
            return -1 if pool[a + k] < pool[b + k] else 1
    return -1 if size < other_size else 1 if size > other_size else 0


@inlined
def compare_values(
    operator: int, left: float, left_rest: float, right: float, right_rest: float, pool: Bytes, offsets: Int64s
) -> bool:
    """Compare two values; false when one is missing or they are of different kinds."""
    if operator in (EQUAL, UNEQUAL) or left_rest != TEXT or right_rest != TEXT:
        return compare(operator, left, left_rest, right, right_rest)
    if np.isnan(left) or np.isnan(right):
        return False
    order = _compare_texts(np.int64(left), np.int64(right), pool, offsets)
    if operator == LESS:
        return order < 0
    if operator == LESS_EQUAL:
        return order <= 0
    if operator == GREATER:
        return order > 0
    return order >= 0


@inlined
def _contains(text: np.int64, part: np.int64, pool: Bytes, offsets: Int64s) -> bool:
    begin, end = offsets[text], offsets[text + 1]
    other, size = offsets[part], offsets[part + 1] - offsets[part]
    for at in range(begin, end - size + 1):
        k = 0
        while k < size and pool[at + k] == pool[other + k]:
            k += 1
        if k == size:
            return True
    return False


@spliced
def slot_of(rows: Int64s, slots: Int64s, side: int, slot: int, left: int, right: int) -> Any:
    """The event in a slot, -1 when there is none."""
    one = left if side == ON_LEFT else right
    event = slots[rows[one * ROW + SLOTS] + slot]
    if event < 0 and side == ON_EITHER:
        event = slots[rows[left * ROW + SLOTS] + slot]
    return event


@spliced
def attribute_of(event: int, column: int, values: Floats, width: int) -> tuple[float, float]:
    """An attribute of an event; missing when there is no event."""
    value, rest = np.nan, 0.0
    if event >= 0:
        value, rest = values[event * width + 2 * column], values[event * width + 2 * column + 1]
    return value, rest


@spliced
def _read(
    packed: int, rows: Int64s, slots: Int64s, left: int, right: int, values: Floats, width: int
) -> tuple[float, float]:
    """The attribute that an operand of QUICK is."""
    event = slot_of(rows, slots, packed // SIDE, packed % SIDE // SLOT, left, right)
    return attribute_of(event, packed % SLOT, values, width)


@inlined
def _bound(rows: Int64s, slots: Int64s, events: Int64s, packed: int, latest: bool, left: int, right: int) -> Any:
    """The least start or greatest end of a variable's events: MOST or FEWEST when there is none."""
    side, slot = packed // SIDE, packed % SIDE
    one = slots[rows[left * ROW + SLOTS] + slot] if side != ON_RIGHT else np.int64(-1)
    other = slots[rows[right * ROW + SLOTS] + slot] if side != ON_LEFT else np.int64(-1)
    if latest:
        end = events[one * EVENT + EVENT_END] if one >= 0 else FEWEST
        return max(end, events[other * EVENT + EVENT_END]) if other >= 0 else end
    start = events[one * EVENT + EVENT_START] if one >= 0 else MOST
    return min(start, events[other * EVENT + EVENT_START]) if other >= 0 else start


@inlined
def _elapsed(
    rows: Int64s, slots: Int64s, events: Int64s, first: int, last: int, whole: int, left: int, right: int
) -> tuple[float, float]:
    """Ticks from a start to an end; `first` and `last` -1: of the whole, which is what `whole` says."""
    if first >= 0:
        start = _bound(rows, slots, events, first, False, left, right)
    elif whole == ON_RIGHT:
        start = rows[right * ROW + START]
    else:
        start = min(rows[left * ROW + START], rows[right * ROW + START])
    if last >= 0:
        end = _bound(rows, slots, events, last, True, left, right)
    elif whole == ON_RIGHT:
        end = rows[right * ROW + END]
    else:
        end = max(rows[left * ROW + END], rows[right * ROW + END])
    if start == MOST or end == FEWEST:
        return np.nan, 0.0
    ticks = end - start
    near = np.float64(ticks)
    return near, np.float64(ticks - np.int64(near)) if abs(near) < 9e18 else 0.0


@inlined
def calculate(operation: int, left: float, right: float) -> float:
    """The result of arithmetic, NaN when there is none."""
    if operation == ADD:
        return left + right
    if operation == SUBTRACT:
        return left - right
    if operation == MULTIPLY:
        return left * right
    if right == 0.0:
        return np.nan
    return left / right if operation == DIVIDE else np.fmod(left, right)


@inlined
def events_of(rows: Int64s, occurrence: int, variable: int) -> Int64s:
    """The events an occurrence binds to a variable, by its number."""
    parts, numbers = parts_of(rows, occurrence)
    found = np.empty(len(parts), np.int64)
    count = 0
    for k in range(len(parts)):
        if numbers[k] == variable and rows[parts[k] * ROW + KIND] == SOURCE:
            found[count] = rows[parts[k] * ROW + RIGHT]
            count += 1
    return found[:count]


@spliced
def holds(
    code: Int64s, facts: Facts, values: Floats, width: int, rows: Int64s, slots: Int64s, left: int, right: int
) -> bool:
    """Whether all conditions of the code hold. `values` and `width` are those of the facts, taken out of the loop."""
    found = True
    for at in range(0, len(code), WIDTH):
        if code[at] == SPAN:
            start = min(rows[left * ROW + START], rows[right * ROW + START])
            ticks = max(rows[left * ROW + END], rows[right * ROW + END]) - start - code[at + 2]
            symbol = code[at + 1]
            found = (
                (ticks < 0 and (symbol in (LESS, LESS_EQUAL, UNEQUAL)))
                or (ticks == 0 and (symbol in (LESS_EQUAL, GREATER_EQUAL, EQUAL)))
                or (ticks > 0 and (symbol in (GREATER, GREATER_EQUAL, UNEQUAL)))
            )
            if not found:
                break
            continue
        if code[at] != QUICK:
            found = _holds_from(code, at, facts, rows, slots, left, right)
            break
        a, a_rest = _read(code[at + 2], rows, slots, left, right, values, width)
        b, b_rest = _read(code[at + 3], rows, slots, left, right, values, width)
        operator = code[at + 1]
        if a_rest == TEXT and b_rest == TEXT and operator < EQUAL:
            found = compare_values(operator, a, a_rest, b, b_rest, facts.pool, facts.offsets)
        else:
            found = compare(operator, a, a_rest, b, b_rest)
        if not found:
            break
    return found


@inlined
def _holds_from(code: Int64s, at: int, facts: Facts, rows: Int64s, slots: Int64s, left: int, right: int) -> bool:
    """The machine proper, from an instruction on."""
    constants, values, width, stack = facts.constants, facts.values, facts.width, facts.stack
    pool, offsets = facts.pool, facts.offsets
    top = 0
    lists = rows  # of the loop that is under way, if there is one: all events of its terms
    places = rows  # for each term: where its list begins, its length, the chosen one
    while at < len(code):
        operation, x, y, z = code[at], code[at + 1], code[at + 2], code[at + 3]
        at += WIDTH
        if operation == QUICK:
            stack[top], stack[top + 1] = _read(y, rows, slots, left, right, values, width)
            stack[top + 2], stack[top + 3] = _read(z, rows, slots, left, right, values, width)
            if not compare_values(x, stack[top], stack[top + 1], stack[top + 2], stack[top + 3], pool, offsets):
                return False
        elif operation == CHECK:
            top -= 2
            if stack[top] == 0.0:
                return False
        elif operation == CONSTANT:
            stack[top], stack[top + 1] = constants[2 * x], constants[2 * x + 1]
            top += 2
        elif operation == ATTRIBUTE:
            event = slot_of(rows, slots, x, y, left, right)
            stack[top], stack[top + 1] = np.nan, 0.0
            if event >= 0:
                stack[top], stack[top + 1] = values[event * width + 2 * z], values[event * width + 2 * z + 1]
            top += 2
        elif operation == CHOSEN:
            event = lists[places[3 * x] + places[3 * x + 2]]
            stack[top], stack[top + 1] = values[event * width + 2 * y], values[event * width + 2 * y + 1]
            top += 2
        elif operation == ELAPSED:
            stack[top], stack[top + 1] = _elapsed(rows, slots, facts.events, x, y, z, left, right)
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
        elif operation == CONTAINS:
            top -= 2
            texts = stack[top - 1] == TEXT and stack[top + 1] == TEXT
            texts = texts and not (np.isnan(stack[top - 2]) or np.isnan(stack[top]))
            truth = texts and _contains(np.int64(stack[top - 2]), np.int64(stack[top]), pool, offsets)
            stack[top - 2] = 1.0 if truth else 0.0
        elif operation == LOOKS:
            text = stack[top - 1] == TEXT and not np.isnan(stack[top - 2])
            truth = text and facts.looks[np.int64(stack[top - 2]) * facts.patterns + x]
            stack[top - 2] = 1.0 if truth else 0.0
        elif operation == TRUTH:
            stack[top] = np.float64(x)
            top += 2
        elif operation in (ALL, ANY):
            count = 0.0
            for k in range(x):
                count += stack[top - 2 * (k + 1)]
            top -= 2 * (x - 1)
            stack[top - 2] = 1.0 if (count == x if operation == ALL else count > 0.0) else 0.0
        elif operation == NOT:
            stack[top - 2] = 1.0 - stack[top - 2]
        elif operation == VACUOUS:
            if slot_of(rows, slots, x, y, left, right) < 0:
                stack[top] = 1.0
                top += 2
                at = z
        elif operation == EVERY:
            places = np.zeros(3 * x, np.int64)
            lists = np.empty(16, np.int64)
            size = 0
            empty = False
            for k in range(x):
                term = at + k * WIDTH
                found = events_of(rows, left if code[term + 1] == ON_LEFT else right, code[term + 2])
                places[3 * k], places[3 * k + 1] = size, len(found)
                lists = grown(lists, places[3 * k], len(found))
                for i in range(len(found)):
                    lists[places[3 * k] + i] = found[i]
                size += len(found)
                empty = empty or len(found) == 0
            at += x * WIDTH
            if empty:
                stack[top] = 1.0
                top += 2
                at = y
        elif operation == REPEAT:
            k = 0
            while stack[top - 2] != 0.0 and k < y:
                places[3 * k + 2] += 1
                if places[3 * k + 2] < places[3 * k + 1]:
                    break
                places[3 * k + 2] = 0
                k += 1
            if stack[top - 2] != 0.0 and k < y:
                top -= 2
                at = x
    return True


@inlined
def all_hold(code: Int64s, facts: Facts, rows: Int64s, slots: Int64s, left: Any, right: Any) -> bool:
    """The same as a call: where most of the conditions are tested elsewhere, a small kernel is worth more."""
    return holds(code, facts, facts.values, facts.width, rows, slots, left, right)


@spliced
def key_of(
    key: Int64s, which: int, values: Floats, width: int, rows: Int64s, slots: Int64s, occurrence: Any
) -> tuple[bool, np.uint64]:
    """Whether an occurrence has all values of a key, and their hash. `key` has (slot, column) pairs for both sides."""
    word = np.uint64(0x243F6A8885A308D3)
    has = True
    for k in range(len(key) // 4):
        event = slots[rows[occurrence * ROW + SLOTS] + key[4 * k + 2 * which]]
        has = has and event >= 0
        if not has:
            break
        at = event * width + 2 * key[4 * k + 2 * which + 1]
        value, rest = values[at], values[at + 1]
        has = not np.isnan(value)
        bits = np.uint64(np.float64(value + 0.0).view(np.int64))
        if rest >= TEXT:
            bits += np.uint64(0x9E3779B97F4A7C15) if rest == TEXT else np.uint64(0xA4093822299F31D0)
        word = (word ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        word ^= word >> np.uint64(29)
        word *= np.uint64(0xBF58476D1CE4E5B9)
        word ^= word >> np.uint64(32)
    return has, word
