"""Tests of rules on one event, and aggregates over the events in a time range; parts of the kernel in `look_back`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device_no_refcount
from weft.kernels.machine.exact_sums import add_partial, added, partials_sum, sign_word, whole_result
from weft.kernels.machine.machine import evaluate, holds
from weft.kernels.machine.tagged import (
    BOOLEAN,
    DECIMAL,
    FLOAT,
    INTEGER,
    MISSING,
    VALUE,
    bits_of,
    float_of,
    order_of,
    rounded_off,
)
from weft.kernels.memory.room import floats, noted, octets, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.lists import list_of

Int64s = npt.NDArray[np.int64]

_ZERO = np.uint64(0)
FEW = 4  # entries visited linearly before a binary search


@device_no_refcount
def passes(room: Int64s, begin: Any, end: Any, event: Any) -> bool:
    """Whether an event passes tests."""
    tests, values, width = words(room, r.TESTS), words(room, r.VALUES), noted(room, r.WIDTH)
    for at in range(begin * t.TEST, end * t.TEST, t.TEST):
        if tests[at + t.T_OPERATOR] == t.BY_CODE:
            _, truth = evaluate(room, tests[at + t.T_A], tests[at + t.T_B], event)
            if truth == 0:
                return False
            continue
        own = event * width + VALUE * tests[at + t.T_COLUMN]
        source, other_kind, other = tests[at + t.T_SOURCE], tests[at + t.T_A], tests[at + t.T_B]
        if source >= 0:
            place = words(room, r.FRAMES)[source * t.FRAME + t.BOUND] * width + VALUE * other_kind
            other_kind, other = values[place], values[place + 1]
        if not holds(room, tests[at + t.T_OPERATOR], values[own], values[own + 1], other_kind, other):
            return False
    return True


@device_no_refcount
def first_from(times: Int64s, stride: int, begin: Any, end: Any, limit: Any) -> Any:
    """Return the first place in `begin` to `end` whose time (ascending) is not before a limit, or `end`."""
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


@device_no_refcount
def events_before(room: Int64s, of: Any, chain: Any, keys_at: Any, keys_end: Any, limit: Any) -> Any:
    """Return the range of the events of a type, or of its list for a key, that end before a time."""
    types, heads = words(room, r.TYPES), words(room, r.HEADS)
    if chain < 0:
        begin = types[of + t.BASE]
        return begin, first_from(words(room, r.TIMES), 1, begin, begin + types[of + t.HELD], limit)
    place = list_of(room, chain, keys_at, keys_end)
    if place < 0:
        return np.int64(0), np.int64(0)
    begin = heads[place * t.HEAD + t.BEGIN]
    end = begin + heads[place * t.HEAD + t.LENGTH]
    return begin, first_from(words(room, r.ENTRIES), t.ENTRY, begin, end, limit)


@device_no_refcount
def _stretch(room: Int64s, at: Any) -> Any:
    """Return the range of the events of an extent, the least time in it, and the offset of event numbers."""
    extents, frames, types, times = (
        words(room, r.EXTENTS),
        words(room, r.FRAMES),
        words(room, r.TYPES),
        words(room, r.TIMES),
    )
    type_ = extents[at + t.E_TYPE] * t.KIND_OF_EVENT
    one = times[frames[extents[at + t.E_FIRST] * t.FRAME + t.BOUND]]
    low, high = one - extents[at + t.E_SECOND], one
    if extents[at + t.E_BETWEEN] != 0:
        other = times[frames[extents[at + t.E_SECOND] * t.FRAME + t.BOUND]]
        low, high = min(one, other) + 1, max(one, other)
    keys_at, keys_end = extents[at + t.E_KEYS_AT], extents[at + t.E_KEYS_END]
    begin, end = events_before(room, type_, extents[at + t.E_LISTED], keys_at, keys_end, high)
    return begin, end, low, types[type_ + t.BASE] - types[type_ + t.GONE]


@device_no_refcount
def scan(room: Int64s, extent: Any) -> Any:
    """Return the value of an extent's function over its events; for EXISTS whether there is one."""
    extents, times, entries, values = (
        words(room, r.EXTENTS),
        words(room, r.TIMES),
        words(room, r.ENTRIES),
        words(room, r.VALUES),
    )
    at, width = extent * t.EXTENT, noted(room, r.WIDTH)
    begin, until, low, offset = _stretch(room, at)
    floor, by_list = extents[at + t.E_FLOOR] + offset, extents[at + t.E_LISTED] >= 0
    function, column = extents[at + t.E_FUNCTION], extents[at + t.E_COLUMN]
    tests_at, tests_end = extents[at + t.E_TESTS_AT], extents[at + t.E_TESTS_END]
    partials = floats(room, r.PARTIALS)
    found = numbers = np.int64(0)
    high, low_word = np.uint64(0), np.uint64(0)  # the sum of integers
    is_whole = True
    parts = 0
    infinite = 0.0
    best_kind, best = np.int64(MISSING), np.int64(0)
    for place in range(until - 1, begin - 1, -1):
        if by_list:
            event = entries[place * t.ENTRY + 1] + offset
            time = entries[place * t.ENTRY]
        else:
            event = place
            time = times[event]
        if time < low or event < floor:
            break
        if not passes(room, tests_at, tests_end, event):
            continue
        if function == t.EXISTS or column < 0:
            found += 1
            if function == t.EXISTS:
                break
            continue
        kind, word = values[event * width + VALUE * column], values[event * width + VALUE * column + 1]
        found += kind != MISSING
        if kind not in (INTEGER, FLOAT, DECIMAL):
            continue
        numbers += 1
        if function == t.SUM or function == t.AVERAGE:
            kind, word = rounded_off(kind, word, octets(room, r.TEXTS), words(room, r.TEXT_OFFSETS))
            number = np.float64(word) if kind == INTEGER else float_of(word)
            if kind == INTEGER:
                _, high, low_word = added(_ZERO, high, low_word, _ZERO, sign_word(word), np.uint64(word))
            else:
                is_whole = False
            if np.isinf(number):
                infinite += number
            elif parts >= 0:
                parts = add_partial(partials, parts, number)
        elif function == t.LEAST or function == t.GREATEST:
            order = order_of(kind, word, best_kind, best, octets(room, r.TEXTS), words(room, r.TEXT_OFFSETS))
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
        fits, total = whole_result(high, low_word, numbers, function == t.AVERAGE)
        kind, word = (np.int64(INTEGER), np.int64(low_word)) if fits else (np.int64(FLOAT), bits_of(total))
    elif numbers > 0:
        total = infinite if infinite != 0.0 else partials_sum(partials, max(parts, 0))
        if parts >= 0 and not np.isnan(total):
            kind, word = np.int64(FLOAT), bits_of(total if function == t.SUM else total / np.float64(numbers))
    return kind, word
