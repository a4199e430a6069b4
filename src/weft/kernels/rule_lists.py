"""Lists of a type's events that agree in a key: what rules that join by equalities look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, spliced
from weft.kernels.tagged import MISSING, VALUE, mixed_in, normal


@spliced
def slot_of(heads: t.Int64s, chain: Any, state: Any, kind: Any, word: Any) -> Any:
    """The slot of a list, or the empty one where it would be. Its key's last value is compared, the others by hash."""
    mask = len(heads) // t.HEAD - 1
    sought = np.int64(state | np.uint64(1))
    slot = (sought >> 1) & mask
    while heads[slot * t.HEAD + t.WORD] != 0 and not (
        heads[slot * t.HEAD + t.WORD] == sought
        and heads[slot * t.HEAD + t.OF_CHAIN] == chain
        and heads[slot * t.HEAD + t.KEY_KIND] == kind
        and heads[slot * t.HEAD + t.KEY_WORD] == word
    ):
        slot = (slot + 1) & mask
    return slot


@bare
def list_event(type_: int, event: int, number: int, store: t.Store, width: int, control: t.Int64s) -> bool:
    """Put an event into all its lists; False when there is no room for one, and it is in those before that."""
    of = type_ * t.KIND_OF_EVENT
    for chain in range(max(store.types[of + t.CHAINS_AT], control[t.LISTED_TO]), store.types[of + t.CHAINS_END]):
        if not place_in_list(chain, event, number, type_, store, width, control):
            control[t.LISTED_TO] = chain
            return False
    control[t.LISTED_TO] = 0
    return True


@bare
def place_in_list(
    chain: int, event: int, number: int, type_: int, store: t.Store, width: int, control: t.Int64s
) -> bool:
    """Put an event at the end of its list; False when there is no room for that."""
    heads, entries = store.heads, store.entries
    id_ = store.chains[chain * t.CHAIN + t.C_ID]
    state = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    kind, word = np.int64(0), np.int64(0)
    for k in range(store.chains[chain * t.CHAIN + t.C_BEGIN], store.chains[chain * t.CHAIN + t.C_END]):
        place = event * width + VALUE * store.chain_columns[k]
        if store.values[place] == MISSING:
            return True
        kind, word = normal(store.values[place], store.values[place + 1])
        state = mixed_in(state, kind, word)
    at = slot_of(heads, id_, state, kind, word) * t.HEAD
    if heads[at + t.WORD] == 0:
        if 2 * (control[t.LISTS] + 1) * t.HEAD > len(heads):
            return False
        control[t.LISTS] += 1
        heads[at + t.WORD], heads[at + t.OF_CHAIN] = np.int64(state | np.uint64(1)), id_
        heads[at + t.KEY_KIND], heads[at + t.KEY_WORD] = kind, word
        heads[at + t.BEGIN] = heads[at + t.LENGTH] = heads[at + t.CAPACITY] = 0
        heads[at + t.OF_TYPE] = type_
    length, begin = heads[at + t.LENGTH], heads[at + t.BEGIN]
    if length == heads[at + t.CAPACITY]:
        gone = store.types[type_ * t.KIND_OF_EVENT + t.GONE]
        dead = 0
        while dead < length and entries[(begin + dead) * t.ENTRY + 1] < gone:
            dead += 1
        room, target = length, begin
        if 2 * dead <= length:
            room = max(2 * length, 4)
            target = control[t.ENTRIES]
            if (target + room) * t.ENTRY > len(entries):
                return False
            control[t.ENTRIES] += room
        for k in range((length - dead) * t.ENTRY):
            entries[target * t.ENTRY + k] = entries[(begin + dead) * t.ENTRY + k]
        begin, length = target, length - dead
        heads[at + t.BEGIN], heads[at + t.CAPACITY] = begin, room
    entries[(begin + length) * t.ENTRY] = store.times[event]
    entries[(begin + length) * t.ENTRY + 1] = number
    heads[at + t.LENGTH] = length + 1
    return True
