"""Index of the constants of rules: finds the rules that may start at an event."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.machine.tagged import DECIMAL, FLOAT, INTEGER, MISSING, VALUE, float_of, mixed_in, normal, order_of
from weft.kernels.memory.prefetch import prefetch
from weft.kernels.memory.room import floats, halves, noted, octets, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t

AHEAD = 16  # events by which data is prefetched
LARGE = 1 << 12  # smaller tables fit into the cache


@always_inline
def _first_place(begin: Any, size: Any, kind: Any, word: Any) -> Any:
    """Return the first place to probe for a value in a table of `size` places."""
    high = mixed_in(np.uint64(0), kind, word) >> np.uint64(32)
    return (begin + np.int64((high * np.uint64(size)) >> np.uint64(32))) * t.PLACE


@device_no_refcount
def _place_of(places: t.Int64s, begin: Any, size: Any, kind: Any, word: Any) -> Any:
    """Return the place of a value in a hash table, or the empty place where it would be."""
    first = begin * t.PLACE
    at = _first_place(begin, size, kind, word)
    while places[at + t.P_GROUP] != 0 and not (
        places[at + t.P_WORD] == word and places[at + t.P_GROUP] & ((1 << t.KIND_BITS) - 1) == kind
    ):
        at += t.PLACE
        if at == first + size * t.PLACE:
            at = first
    return at


@bare_kernel
def enter_places(kinds: t.Int64s, words: t.Int64s, codes: t.Int64s, places: t.Int64s) -> None:
    """Add the codes of groups of rules to a hash table, by their values."""
    for k in range(len(kinds)):
        at = _place_of(places, 0, len(places) // t.PLACE, kinds[k], words[k])
        places[at + t.P_WORD] = words[k]
        places[at + t.P_GROUP] = (codes[k] << t.KIND_BITS) + kinds[k]


@device_no_refcount
def _leaf(room: t.Int64s, at: Any, kind: Any, word: Any) -> Any:
    """Return the number of cuts of an access that a number reaches."""
    access, wholes, numbers = words(room, r.ACCESS), words(room, r.WHOLES), floats(room, r.FLOATS)
    low = access[at + t.A_CUTS]
    if kind == INTEGER:
        high = low + access[at + t.A_WHOLES]
        while low < high:
            middle = (low + high) >> 1
            if wholes[middle] <= word:
                low = middle + 1
            else:
                high = middle
    elif kind == DECIMAL:
        cuts, pool, offsets = words(room, r.CUTS), octets(room, r.TEXTS), words(room, r.TEXT_OFFSETS)
        high = low + max(access[at + t.A_WHOLES], access[at + t.A_FLOATS])
        while low < high:
            middle = (low + high) >> 1
            if order_of(cuts[VALUE * middle], cuts[VALUE * middle + 1], kind, word, pool, offsets) <= 0:
                low = middle + 1
            else:
                high = middle
    else:
        number = float_of(word)
        high = low + access[at + t.A_FLOATS]
        while low < high:
            middle = (low + high) >> 1
            if numbers[middle] <= number:
                low = middle + 1
            else:
                high = middle
    return low - access[at + t.A_CUTS]


@device_no_refcount
def _group(room: t.Int64s, at: Any, kind: Any, word: Any) -> Any:
    """Return the code of the group of rules that an access finds for a value."""
    access = words(room, r.ACCESS)
    kind, word = normal(kind, word)
    size = access[at + t.A_SIZE]
    code = np.int64(0)
    if access[at + t.A_KIND] == t.BY_RANGE:
        offset = word - access[at + t.A_LOW]  # an overflowing difference is out of range, too
        if kind == access[at + t.A_TAG] and np.uint64(offset) < np.uint64(size):
            code = np.int64(halves(room, r.MEMBERS)[access[at + t.A_MEMBERS] + offset])
    elif kind != MISSING:
        places = words(room, r.PLACES)
        code = places[_place_of(places, access[at + t.A_PLACES], size, kind, word) + t.P_GROUP] >> t.KIND_BITS
    return code


@device_no_refcount
def _expect(room: t.Int64s, event: Any, is_near: bool) -> None:
    """Prefetch the index places for an event, or the row of its rules if the event is near."""
    types, columns, access = words(room, r.TYPES), words(room, r.COLUMNS), words(room, r.ACCESS)
    values, length = words(room, r.BATCH_VALUES), noted(room, r.BATCH_WIDTH)
    of = np.int64(halves(room, r.BATCH_TYPES)[event]) * t.KIND_OF_EVENT
    for at in range(types[of + t.ACCESS_AT] * t.ACCESS, types[of + t.ACCESS_END] * t.ACCESS, t.ACCESS):
        how, size, low = access[at + t.A_KIND], access[at + t.A_SIZE], access[at + t.A_LOW]
        if size < LARGE or (how != t.BY_RANGE and how != t.BY_KEY):
            continue
        place = event * length + VALUE * columns[types[of + t.COLUMNS_AT] + access[at + t.A_COLUMN]]
        if is_near:
            code = _group(room, at, values[place], values[place + 1])
            if code > 0:
                prefetch(halves(room, r.ROW_OF), code - 1)
            continue
        kind, word = normal(values[place], values[place + 1])
        if how == t.BY_KEY:
            prefetch(words(room, r.PLACES), _first_place(access[at + t.A_PLACES], size, kind, word))
        elif np.uint64(word - low) < np.uint64(size):
            prefetch(halves(room, r.MEMBERS), access[at + t.A_MEMBERS] + word - low)


@device_no_refcount
def expect_later(room: t.Int64s, event: Any) -> None:
    """Prefetch the index places for later events of the batch."""
    if event + AHEAD < len(halves(room, r.BATCH_TYPES)):
        _expect(room, event + AHEAD, False)
        _expect(room, event + AHEAD // 2, True)


@device_no_refcount
def starting(room: t.Int64s, begin: Any, end: Any, event: Any) -> Any:
    """Collect the rules that may start at an event, and return their number."""
    access, nodes, members = words(room, r.ACCESS), words(room, r.NODES), halves(room, r.MEMBERS)
    values, picked = words(room, r.VALUES), halves(room, r.SETS)
    count = np.int64(0)
    for at in range(begin * t.ACCESS, end * t.ACCESS, t.ACCESS):
        how, first, size = access[at + t.A_KIND], access[at + t.A_MEMBERS], access[at + t.A_SIZE]
        place = event * noted(room, r.WIDTH) + VALUE * access[at + t.A_COLUMN]
        if how == t.BY_CUTS:
            if values[place] not in (INTEGER, FLOAT, DECIMAL):
                continue
            node = access[at + t.A_LEAVES] + _leaf(room, at, values[place], values[place + 1])
            bounds = access[at + t.A_NODES]
            while node > 0:
                for k in range(first + nodes[bounds + node], first + nodes[bounds + node + 1]):
                    picked[count] = members[k]
                    count += 1
                node >>= 1
            continue
        if how != t.ALWAYS:
            code = _group(room, at, values[place], values[place + 1])
            if code > 0:
                picked[count] = code - 1
                count += 1
            if code >= 0:
                continue
            first += ~code
            size = np.int64(members[first])
            first += 1
        for k in range(first, first + size):
            picked[count] = members[k]
            count += 1
    return count


@device_no_refcount
def sort_rules(picked: t.Int32s, count: int) -> None:
    """Sort rules by number (Shell sort, as they are few and mostly sorted)."""
    in_order = 1
    while in_order < count and picked[in_order - 1] < picked[in_order]:
        in_order += 1
    gap = 1 if in_order < count else 0
    while gap > 0 and gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            rule = picked[k]
            at = k
            while at >= gap and picked[at - gap] > rule:
                picked[at] = picked[at - gap]
                at -= gap
            picked[at] = rule
        gap //= 3
