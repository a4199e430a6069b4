"""Conditions of rules on one event, and what there is in a stretch of time: parts of the kernel in `look_back`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels import rule_tables as t
from weft.kernels.exact_sums import add_partial, partials_sum
from weft.kernels.jit import bare, spliced
from weft.kernels.rule_lists import slot_of
from weft.kernels.tagged import (
    BOOLEAN,
    EQUAL,
    FLOAT,
    INTEGER,
    MISSING,
    SUBTRACT,
    TEXT,
    VALUE,
    bits_of,
    calculated,
    float_of,
    mixed_in,
    normal,
    order_of,
    satisfies,
)

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

FEW = 4  # entries looked at one by one before a binary search


class Seen(NamedTuple):
    """What a test can read: the frames of bound events, all values, the code, texts, and room to work in."""

    frames: Int64s
    values: Int64s
    width: int
    code: Int64s
    stack: Int64s
    results: Int64s
    texts: Bytes
    text_offsets: Int64s


@bare
def evaluate(seen: Seen, begin: int, end: int, hand: Any) -> Any:
    """The value that a piece of code leaves; `hand` is the event at hand."""
    code, stack, width = seen.code, seen.stack, seen.width
    top = 0
    for at in range(begin * t.INSTRUCTION, end * t.INSTRUCTION, t.INSTRUCTION):
        operation, x, y, z = code[at], code[at + 1], code[at + 2], code[at + 3]
        if operation == t.PUSH:
            if x == t.CONSTANT:
                stack[top], stack[top + 1] = y, z
            else:
                event = hand if x == t.AT_HAND else seen.frames[x * t.FRAME + t.BOUND]
                place = event * width + VALUE * y
                stack[top], stack[top + 1] = seen.values[place], seen.values[place + 1]
            top += 2
        elif operation == t.RESULT:
            stack[top], stack[top + 1] = seen.results[VALUE * x], seen.results[VALUE * x + 1]
            top += 2
        elif operation == t.CALCULATE:
            top -= 2
            stack[top - 2], stack[top - 1] = calculated(x, stack[top - 2], stack[top - 1], stack[top], stack[top + 1])
        elif operation == t.NEGATE:
            stack[top - 2], stack[top - 1] = calculated(SUBTRACT, INTEGER, 0, stack[top - 2], stack[top - 1])
        elif operation == t.COMPARE:
            top -= 2
            order = order_of(stack[top - 2], stack[top - 1], stack[top], stack[top + 1], seen.texts, seen.text_offsets)
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(satisfies(x, order))
        elif operation == t.TRUTH:
            stack[top], stack[top + 1] = BOOLEAN, x
            top += 2
        elif operation == t.NOT:
            stack[top - 1] = 1 - stack[top - 1]
        else:  # ALL or ANY of so many
            count = 0
            for k in range(x):
                count += stack[top - 1 - 2 * k]
            top -= 2 * (x - 1)
            stack[top - 2], stack[top - 1] = BOOLEAN, np.int64(count == x if operation == t.ALL else count > 0)
    return stack[0], stack[1]


@spliced
def passes(tests: Int64s, begin: Any, end: Any, event: Any, seen: Seen, frames: Int64s, values: Int64s) -> bool:
    """Whether an event passes tests. Frames and values are those of `seen`, taken out of loops."""
    found = True
    for at in range(begin * t.TEST, end * t.TEST, t.TEST):
        operator = tests[at + t.T_OPERATOR]
        if operator == t.BY_CODE:
            _, truth = evaluate(seen, tests[at + t.T_A], tests[at + t.T_B], event)
            found = truth != 0
        else:
            own = event * seen.width + VALUE * tests[at + t.T_COLUMN]
            kind, word = values[own], values[own + 1]
            source, other_kind, other_word = tests[at + t.T_SOURCE], tests[at + t.T_A], tests[at + t.T_B]
            if source >= 0:
                place = frames[source * t.FRAME + t.BOUND] * seen.width + VALUE * other_kind
                other_kind, other_word = values[place], values[place + 1]
            if kind == INTEGER and other_kind == INTEGER:
                found = satisfies(operator, np.int64(word > other_word) - np.int64(word < other_word))
            elif kind == FLOAT and other_kind == FLOAT:
                x, y = float_of(word), float_of(other_word)
                found = satisfies(operator, np.int64(x > y) - np.int64(x < y))
            elif operator == EQUAL and kind == TEXT and other_kind == TEXT:
                found = word == other_word
            else:
                order = order_of(kind, word, other_kind, other_word, seen.texts, seen.text_offsets)
                found = satisfies(operator, order)
        if not found:
            break
    return found


@bare
def all_pass(tests: Int64s, begin: Any, end: Any, event: Any, seen: Seen) -> bool:
    """The same, for where it is not asked over and over."""
    return passes(tests, begin, end, event, seen, seen.frames, seen.values)


@spliced
def list_of(chain: Any, keys: Int64s, begin: Any, end: Any, heads: Int64s, seen: Seen) -> Any:
    """The place of the list for a chain and the values of operands, -1 when there is none."""
    state = np.uint64(chain) * np.uint64(0x9E3779B97F4A7C15)
    known = True
    kind, word = np.int64(0), np.int64(0)
    for at in range(begin * t.KEY, end * t.KEY, t.KEY):
        source, kind, word = keys[at], keys[at + 1], keys[at + 2]
        if source >= 0:
            place = seen.frames[source * t.FRAME + t.BOUND] * seen.width + VALUE * kind
            kind, word = seen.values[place], seen.values[place + 1]
        known = known and kind != MISSING
        kind, word = normal(kind, word)
        state = mixed_in(state, kind, word)
    found = np.int64(-1)
    if known:
        slot = slot_of(heads, chain, state, kind, word)
        if heads[slot * t.HEAD + t.WORD] != 0:
            found = slot
    return found


@bare
def first_from(times: Int64s, stride: int, begin: Any, end: Any, limit: Any) -> Any:
    """The first of the ascending times at places begin to end that is not before a limit; `end` when none is."""
    low, high = begin, end
    few = max(begin, end - FEW)
    while high > few and times[(high - 1) * stride] >= limit:
        high -= 1
    if high == few:
        while low < high:
            middle = (low + high) >> 1
            if times[middle * stride] < limit:
                low = middle + 1
            else:
                high = middle
    return high


@spliced
def scan(
    extent: Any,
    extents: Int64s,
    tests: Int64s,
    keys: Int64s,
    types: Int64s,
    times: Int64s,
    heads: Int64s,
    entries: Int64s,
    partials: Floats,
    seen: Seen,
) -> Any:
    """What an extent's function is worth over the events in it; for EXISTS whether there is one."""
    at = extent * t.EXTENT
    frames, values, width = seen.frames, seen.values, seen.width
    type_ = extents[at + t.E_TYPE] * t.KIND_OF_EVENT
    one = times[frames[extents[at + t.E_FIRST] * t.FRAME + t.BOUND]]
    if extents[at + t.E_BETWEEN] != 0:
        other = times[frames[extents[at + t.E_SECOND] * t.FRAME + t.BOUND]]
        low, high = min(one, other) + 1, max(one, other)
    else:
        low, high = one - extents[at + t.E_SECOND], one
    offset = types[type_ + t.BASE] - types[type_ + t.GONE]
    floor = extents[at + t.E_FLOOR] + offset
    chain = extents[at + t.E_LISTED]
    if chain >= 0:
        place = list_of(chain, keys, extents[at + t.E_KEYS_AT], extents[at + t.E_KEYS_END], heads, seen)
        begin = end = np.int64(0)
        if place >= 0:
            begin = heads[place * t.HEAD + t.BEGIN]
            end = begin + heads[place * t.HEAD + t.LENGTH]
        until = first_from(entries, t.ENTRY, begin, end, high)
    else:
        begin = types[type_ + t.BASE]
        until = first_from(times, 1, begin, begin + types[type_ + t.HELD], high)
    function, column = extents[at + t.E_FUNCTION], extents[at + t.E_COLUMN]
    tests_at, tests_end = extents[at + t.E_TESTS_AT], extents[at + t.E_TESTS_END]
    found = numbers = np.int64(0)
    whole = np.int64(0)
    is_whole = True
    parts = 0
    infinite = 0.0
    best_kind, best = np.int64(MISSING), np.int64(0)
    for place in range(until - 1, begin - 1, -1):
        if chain >= 0:
            event = entries[place * t.ENTRY + 1] + offset
            time = entries[place * t.ENTRY]
        else:
            event = place
            time = times[event]
        if time < low or event < floor:
            break
        if not passes(tests, tests_at, tests_end, event, seen, frames, values):
            continue
        if function == t.EXISTS or column < 0:
            found += 1
            if function == t.EXISTS:
                break
            continue
        kind, word = values[event * width + VALUE * column], values[event * width + VALUE * column + 1]
        found += kind != MISSING
        if kind != INTEGER and kind != FLOAT:
            continue
        numbers += 1
        if function == t.SUM or function == t.AVERAGE:
            number = np.float64(word) if kind == INTEGER else float_of(word)
            if kind == INTEGER and is_whole and abs(np.float64(whole) + number) < 9e18:
                whole += word
            else:
                is_whole = False
                if np.isinf(number):
                    infinite += number
                elif parts >= 0:
                    parts = add_partial(partials, parts, number)
        elif function == t.LEAST or function == t.GREATEST:
            order = order_of(kind, word, best_kind, best, seen.texts, seen.text_offsets)
            # The search goes back in time, and of equal numbers the earliest counts.
            if best_kind == MISSING or order == 0 or (order < 0) == (function == t.LEAST):
                best_kind, best = kind, word
    kind, word = np.int64(MISSING), np.int64(0)
    if function == t.EXISTS:
        kind, word = np.int64(BOOLEAN), found
    elif function == t.NUMBER or function == t.PRESENT:
        kind, word = np.int64(INTEGER), found
    elif function == t.LEAST or function == t.GREATEST:
        kind, word = best_kind, best
    elif numbers > 0 and is_whole:
        kind, word = np.int64(INTEGER), whole
        if function == t.AVERAGE:
            kind, word = np.int64(FLOAT), bits_of(np.float64(whole) / np.float64(numbers))
    elif numbers > 0:
        near = np.float64(whole)
        for part in (near, np.float64(whole - np.int64(near))):
            parts = add_partial(partials, parts, part) if parts >= 0 else parts
        total = infinite if infinite != 0.0 else partials_sum(partials, max(parts, 0))
        if parts >= 0 and not np.isnan(total):
            kind, word = np.int64(FLOAT), bits_of(total if function == t.SUM else total / np.float64(numbers))
    return kind, word
