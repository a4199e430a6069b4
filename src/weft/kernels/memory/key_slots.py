"""Hash table of partition keys, identified by two hashes: each key has a unique slot while it is live."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.kernels.jit import bare_kernel
from weft.kernels.memory.hashing import LOW, Bytes, Int32s, Int64s, Uint64s
from weft.kernels.memory.prefetch import prefetch

AHEAD = np.uint64(12)  # rows whose places are fetched before it is their turn
PAGE_BITS = 12  # slots per page of a snapshot, as a power of two


class KeyTable(NamedTuple):
    """The keys that have slots, and the slots.

    An entry of the table is two words: the second hash; the high half of the first hash and the slot + 1 (0: empty).
    Its place follows from the low half of the first hash. `state` is the number of slots ever used, the number of
    `free` slots, and the capacity. `changed` marks pages of slots.
    """

    table: Uint64s
    first: Uint64s
    second: Uint64s
    live: Bytes
    free: Int32s
    changed: Bytes
    state: Int64s


@bare_kernel
def find_keys(has: Bytes, first: Uint64s, second: Uint64s, row: int, keys: KeyTable, slots: Int32s) -> np.int64:
    """Find the slot of each row's key, or assign one; return the row where space ran out, or the number of rows."""
    table, free, state = keys.table, keys.free, keys.state
    mask = np.uint64(len(table) // 2 - 1)
    for i in range(np.uint64(row), np.uint64(len(has))):
        if i + AHEAD < np.uint64(len(has)):
            prefetch(table, (first[i + AHEAD] & mask) << np.uint64(1))
        if not has[i]:
            slots[i] = -1
            continue
        a, b = first[i], second[i]
        high = a & ~LOW
        place = (a & mask) << np.uint64(1)
        entry = table[place + np.uint64(1)]
        while entry != np.uint64(0) and (table[place] != b or (entry & ~LOW) != high):
            place = (((place >> np.uint64(1)) + np.uint64(1)) & mask) << np.uint64(1)
            entry = table[place + np.uint64(1)]
        if entry == np.uint64(0):
            if state[1] > 0:
                state[1] -= 1
                slot = np.int64(free[state[1]])
            elif state[0] < state[2]:
                slot = state[0]
                state[0] += 1
            else:
                return np.int64(i)
            table[place] = b
            entry = high | np.uint64(slot + 1)
            table[place + np.uint64(1)] = entry
            keys.first[slot], keys.second[slot], keys.live[slot] = a, b, 1
            keys.changed[slot >> PAGE_BITS] = 1
        slots[i] = np.int32(entry & LOW) - np.int32(1)
    return np.int64(len(has))


@bare_kernel
def place_keys(slot_first: Uint64s, slot_second: Uint64s, live: Bytes, count: int, table: Uint64s) -> None:
    """Add the keys of live slots to an empty table."""
    mask = np.uint64(len(table) // 2 - 1)
    for slot in range(np.uint64(count)):
        if slot + AHEAD < np.uint64(count):
            prefetch(table, (slot_first[slot + AHEAD] & mask) << np.uint64(1))
        if live[slot]:
            place = slot_first[slot] & mask
            while table[np.uint64(2) * place + np.uint64(1)] != np.uint64(0):
                place = (place + np.uint64(1)) & mask
            table[np.uint64(2) * place] = slot_second[slot]
            table[np.uint64(2) * place + np.uint64(1)] = (slot_first[slot] & ~LOW) | (slot + np.uint64(1))


@bare_kernel
def release_keys(slots: Int32s, keys: KeyTable) -> None:
    """Remove the keys of these slots. Later entries of a probe sequence move up, so that probes still find them."""
    table, slot_first, live, state = keys.table, keys.first, keys.live, keys.state
    mask = np.uint64(len(table) // 2 - 1)
    two, one = np.uint64(2), np.uint64(1)
    for i in range(np.uint64(len(slots))):
        slot = slots[i]
        if slot < 0 or not live[slot]:
            continue
        hole = slot_first[slot] & mask
        while (table[two * hole + one] & LOW) != np.uint64(slot + 1):
            hole = (hole + one) & mask
        place = (hole + one) & mask
        while table[two * place + one] != np.uint64(0):
            home = slot_first[(table[two * place + one] & LOW) - one] & mask
            if ((place - home) & mask) >= ((place - hole) & mask):
                table[two * hole] = table[two * place]
                table[two * hole + one] = table[two * place + one]
                hole = place
            place = (place + one) & mask
        table[two * hole + one] = np.uint64(0)
        live[slot] = 0
        keys.changed[slot >> PAGE_BITS] = 1
        keys.free[state[1]] = slot
        state[1] += 1
