"""The index of the constants of rules: those that may start at an event, without a look at the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import inlined, kernel
from weft.kernels.tagged import FLOAT, INTEGER, MISSING, VALUE, float_of, mixed_in, normal


@inlined
def _place_of(places: t.Int64s, access: int, kind: Any, word: Any) -> Any:
    """The place of the rules that an access finds by a value, or the empty one where it would be."""
    kind, word = normal(kind, word)
    mask = len(places) // t.PLACE - 1
    slot = np.int64(mixed_in(np.uint64(access), kind, word) >> np.uint64(3)) & mask
    while places[slot * t.PLACE + t.P_ACCESS] != 0 and not (
        places[slot * t.PLACE + t.P_ACCESS] == access + 1
        and places[slot * t.PLACE + t.P_KIND] == kind
        and places[slot * t.PLACE + t.P_WORD] == word
    ):
        slot = (slot + 1) & mask
    return slot * t.PLACE


@kernel
def enter_places(
    access: t.Int64s, kinds: t.Int64s, words: t.Int64s, begins: t.Int64s, ends: t.Int64s, places: t.Int64s
) -> None:
    """Enter groups of rules, each under an access and a value; a group's members are from its begin to its end."""
    for k in range(len(access)):
        slot = _place_of(places, access[k], kinds[k], words[k])
        places[slot + t.P_ACCESS] = access[k] + 1
        places[slot + t.P_KIND], places[slot + t.P_WORD] = normal(kinds[k], words[k])
        places[slot + t.P_BEGIN], places[slot + t.P_END] = begins[k], ends[k]


@inlined
def _leaf(index: t.Index, at: int, kind: int, word: int) -> Any:
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


@inlined
def starting(index: t.Index, begin: int, end: int, event: int, values: t.Int64s, width: int, picked: t.Int32s) -> Any:
    """Write down the rules that may start at an event, and say how many they are."""
    count = np.int64(0)
    for at in range(begin * t.ACCESS, end * t.ACCESS, t.ACCESS):
        how = index.access[at + t.A_KIND]
        place = event * width + VALUE * index.access[at + t.A_COLUMN]
        if how == t.ALWAYS:
            for k in range(index.access[at + t.A_BEGIN], index.access[at + t.A_END]):
                picked[count] = index.members[k]
                count += 1
        elif how == t.BY_KEY:
            if values[place] == MISSING:
                continue
            slot = _place_of(index.places, at, values[place], values[place + 1])
            if index.places[slot + t.P_ACCESS] != 0:
                for k in range(index.places[slot + t.P_BEGIN], index.places[slot + t.P_END]):
                    picked[count] = index.members[k]
                    count += 1
        elif values[place] == INTEGER or values[place] == FLOAT:
            node = index.access[at + t.A_LEAVES] + _leaf(index, at, values[place], values[place + 1])
            nodes = index.access[at + t.A_NODES]
            while node > 0:
                for k in range(index.nodes[nodes + node], index.nodes[nodes + node + 1]):
                    picked[count] = index.members[k]
                    count += 1
                node >>= 1
    return count


@inlined
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
