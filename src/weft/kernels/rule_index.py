"""The index of the constants of rules: those that may start at an event, without a look at the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, kernel, spliced
from weft.kernels.prefetch import prefetch
from weft.kernels.tagged import FLOAT, INTEGER, MISSING, VALUE, float_of, mixed_in, normal

AHEAD = 16  # events from the first hint to its use
LARGE = 1 << 12  # smaller tables stay in the cache


@spliced
def _first_place(begin: Any, size: Any, kind: Any, word: Any) -> Any:
    """Where in a table of so many places a value is, unless others are there."""
    high = mixed_in(np.uint64(0), kind, word) >> np.uint64(32)
    return (begin + np.int64((high * np.uint64(size)) >> np.uint64(32))) * t.PLACE


@bare
def _place_of(places: t.Int64s, begin: Any, size: Any, kind: Any, word: Any) -> Any:
    """The place of a value in one of the tables, or the empty one where it would be."""
    first = begin * t.PLACE
    at = _first_place(begin, size, kind, word)
    while places[at + t.P_GROUP] != 0 and not (
        places[at + t.P_WORD] == word and places[at + t.P_GROUP] & ((1 << t.KIND_BITS) - 1) == kind
    ):
        at += t.PLACE
        if at == first + size * t.PLACE:
            at = first
    return at


@kernel
def enter_places(kinds: t.Int64s, words: t.Int64s, codes: t.Int64s, places: t.Int64s) -> None:
    """Enter the codes of groups of rules by the values that they are found by."""
    for k in range(len(kinds)):
        at = _place_of(places, 0, len(places) // t.PLACE, kinds[k], words[k])
        places[at + t.P_WORD] = words[k]
        places[at + t.P_GROUP] = (codes[k] << t.KIND_BITS) + kinds[k]


@spliced
def _leaf(index: t.Index, at: Any, kind: Any, word: Any) -> Any:
    """How many cuts of an access a number reaches."""
    low = index.access[at + t.A_CUTS]
    if kind == INTEGER:
        high = low + index.access[at + t.A_WHOLES]
        while low < high:
            middle = (low + high) >> 1
            if index.wholes[middle] <= word:
                low = middle + 1
            else:
                high = middle
    else:
        number = float_of(word)
        high = low + index.access[at + t.A_FLOATS]
        while low < high:
            middle = (low + high) >> 1
            if index.floats[middle] <= number:
                low = middle + 1
            else:
                high = middle
    return low - index.access[at + t.A_CUTS]


@spliced
def _group(index: t.Index, at: Any, kind: Any, word: Any) -> Any:
    """The code of the group of rules that an access finds by a value."""
    kind, word = normal(kind, word)
    size = index.access[at + t.A_SIZE]
    code = np.int64(0)
    if index.access[at + t.A_KIND] == t.BY_RANGE:
        offset = word - index.access[at + t.A_LOW]  # when that is too large for a word, it is out of range all the same
        if kind == index.access[at + t.A_TAG] and np.uint64(offset) < np.uint64(size):
            code = np.int64(index.members[index.access[at + t.A_MEMBERS] + offset])
    elif kind != MISSING:
        place = _place_of(index.places, index.access[at + t.A_PLACES], size, kind, word)
        code = index.places[place + t.P_GROUP] >> t.KIND_BITS
    return code


@spliced
def _expect(index: t.Index, batch: t.Batch, event: Any, store: t.Store, row_of: t.Int32s, is_near: bool) -> None:
    """Have in the cache what finds the rules of an event, and when it is near, which row they have."""
    of = np.int64(batch.types[event]) * t.KIND_OF_EVENT
    for access in range(store.types[of + t.ACCESS_AT], store.types[of + t.ACCESS_END]):
        at = access * t.ACCESS
        how, size = index.access[at + t.A_KIND], index.access[at + t.A_SIZE]
        if size < LARGE or (how != t.BY_RANGE and how != t.BY_KEY):
            continue
        column = store.columns[store.types[of + t.COLUMNS_AT] + index.access[at + t.A_COLUMN]]
        place = event * batch.width + VALUE * column
        if is_near:
            code = _group(index, at, batch.values[place], batch.values[place + 1])
            if code > 0:
                prefetch(row_of, code - 1)
            continue
        kind, word = normal(batch.values[place], batch.values[place + 1])
        if how == t.BY_KEY:
            prefetch(index.places, _first_place(index.access[at + t.A_PLACES], size, kind, word))
        elif np.uint64(word - index.access[at + t.A_LOW]) < np.uint64(size):
            prefetch(index.members, index.access[at + t.A_MEMBERS] + word - index.access[at + t.A_LOW])


@spliced
def expect_later(index: t.Index, batch: t.Batch, event: Any, store: t.Store, row_of: t.Int32s) -> None:
    """Have in the cache what later events of the batch need: memory is slow, but it answers many at once."""
    if event + AHEAD < len(batch.types):
        _expect(index, batch, event + AHEAD, store, row_of, False)
        _expect(index, batch, event + AHEAD // 2, store, row_of, True)


@spliced
def starting(index: t.Index, begin: Any, end: Any, event: Any, values: t.Int64s, width: Any, picked: t.Int32s) -> Any:
    """Write down the rules that may start at an event, and say how many they are."""
    count = np.int64(0)
    for at in range(begin * t.ACCESS, end * t.ACCESS, t.ACCESS):
        how = index.access[at + t.A_KIND]
        members = index.access[at + t.A_MEMBERS]
        place = event * width + VALUE * index.access[at + t.A_COLUMN]
        if how == t.BY_CUTS:
            if values[place] != INTEGER and values[place] != FLOAT:
                continue
            node = index.access[at + t.A_LEAVES] + _leaf(index, at, values[place], values[place + 1])
            nodes = index.access[at + t.A_NODES]
            while node > 0:
                for k in range(members + index.nodes[nodes + node], members + index.nodes[nodes + node + 1]):
                    picked[count] = index.members[k]
                    count += 1
                node >>= 1
            continue
        size = index.access[at + t.A_SIZE]
        if how != t.ALWAYS:
            code = _group(index, at, values[place], values[place + 1])
            if code > 0:
                picked[count] = code - 1
                count += 1
            if code >= 0:
                continue
            members += ~code
            size = np.int64(index.members[members])
            members += 1
        for k in range(members, members + size):
            picked[count] = index.members[k]
            count += 1
    return count


@bare
def sort_rules(picked: t.Int32s, count: int) -> None:
    """Put rules in their order (Shell's sort: there are few, mostly in order)."""
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
