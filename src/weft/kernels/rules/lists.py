"""Lists of the events of a type with equal keys, in which rules that join by equality search."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import device_no_refcount
from weft.kernels.machine.tagged import MISSING, VALUE, mixed_in, normal
from weft.kernels.memory.room import noted, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t


@device_no_refcount
def slot_of(heads: t.Int64s, chain: Any, state: Any, kind: Any, word: Any) -> Any:
    """Return the slot of a list, or the empty one for it. The key's last value is compared, the rest by hash."""
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


@device_no_refcount
def list_event(room: t.Int64s, type_: Any, event: Any, number: Any) -> bool:
    """Add an event to all its lists; return False if one has no space, after those before it."""
    control, types = words(room, r.CONTROL), words(room, r.TYPES)
    of = type_ * t.KIND_OF_EVENT
    for chain in range(max(types[of + t.CHAINS_AT], control[t.LISTED_TO]), types[of + t.CHAINS_END]):
        if not place_in_list(room, chain, event, number, type_):
            control[t.LISTED_TO] = chain
            return False
    control[t.LISTED_TO] = 0
    return True


@device_no_refcount
def place_in_list(room: t.Int64s, chain: Any, event: Any, number: Any, type_: Any) -> bool:
    """Append an event to its list, and return False if there is no space."""
    control, heads, entries = words(room, r.CONTROL), words(room, r.HEADS), words(room, r.ENTRIES)
    at = _head_of(room, chain, event)
    if at < 0:
        return bool(at == -1)
    length, begin = heads[at + t.LENGTH], heads[at + t.BEGIN]
    if length == heads[at + t.CAPACITY]:
        gone = words(room, r.TYPES)[type_ * t.KIND_OF_EVENT + t.GONE]
        dead = 0
        while dead < length and entries[(begin + dead) * t.ENTRY + 1] < gone:
            dead += 1
        places, target = length, begin
        if 2 * dead <= length:
            places = max(2 * length, 4)
            target = control[t.ENTRIES]
            if (target + places) * t.ENTRY > len(entries):
                return False
            control[t.ENTRIES] += places
        for k in range((length - dead) * t.ENTRY):
            entries[target * t.ENTRY + k] = entries[(begin + dead) * t.ENTRY + k]
        begin, length = target, length - dead
        heads[at + t.BEGIN], heads[at + t.CAPACITY] = begin, places
    entries[(begin + length) * t.ENTRY] = words(room, r.TIMES)[event]
    entries[(begin + length) * t.ENTRY + 1] = number
    heads[at + t.LENGTH], heads[at + t.OF_TYPE] = length + 1, type_
    return True


@device_no_refcount
def _head_of(room: t.Int64s, chain: Any, event: Any) -> Any:
    """Return the place of the list of an event, -1 if a value of the key is missing, or -2 if there is no space."""
    control, heads, values = words(room, r.CONTROL), words(room, r.HEADS), words(room, r.VALUES)
    chains, columns = words(room, r.CHAINS), words(room, r.CHAIN_COLUMNS)
    id_ = chains[chain * t.CHAIN + t.C_ID]
    state = np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)
    kind, word = np.int64(0), np.int64(0)
    for k in range(chains[chain * t.CHAIN + t.C_BEGIN], chains[chain * t.CHAIN + t.C_END]):
        place = event * noted(room, r.WIDTH) + VALUE * columns[k]
        if values[place] == MISSING:
            return np.int64(-1)
        kind, word = normal(values[place], values[place + 1])
        state = mixed_in(state, kind, word)
    at = slot_of(heads, id_, state, kind, word) * t.HEAD
    if heads[at + t.WORD] == 0:
        if 2 * (control[t.LISTS] + 1) * t.HEAD > len(heads):
            return np.int64(-2)
        control[t.LISTS] += 1
        heads[at + t.WORD], heads[at + t.OF_CHAIN] = np.int64(state | np.uint64(1)), id_
        heads[at + t.KEY_KIND], heads[at + t.KEY_WORD] = kind, word
        heads[at + t.BEGIN] = heads[at + t.LENGTH] = heads[at + t.CAPACITY] = 0
    return at


@device_no_refcount
def list_of(room: t.Int64s, chain: Any, begin: Any, end: Any) -> Any:
    """Return the place of the list for a chain and the values of operands, or -1."""
    keys, frames, values, heads = (
        words(room, r.KEYS),
        words(room, r.FRAMES),
        words(room, r.VALUES),
        words(room, r.HEADS),
    )
    state = np.uint64(chain) * np.uint64(0x9E3779B97F4A7C15)
    kind, word = np.int64(0), np.int64(0)
    for at in range(begin * t.KEY, end * t.KEY, t.KEY):
        source, kind, word = keys[at], keys[at + 1], keys[at + 2]
        if source >= 0:
            place = frames[source * t.FRAME + t.BOUND] * noted(room, r.WIDTH) + VALUE * kind
            kind, word = values[place], values[place + 1]
        if kind == MISSING:
            return np.int64(-1)
        kind, word = normal(kind, word)
        state = mixed_in(state, kind, word)
    slot = slot_of(heads, chain, state, kind, word)
    return slot if heads[slot * t.HEAD + t.WORD] != 0 else np.int64(-1)
