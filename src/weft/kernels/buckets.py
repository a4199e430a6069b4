"""Stored occurrences by key: per key a list in order of their ends, linked both ways.

An entry is four numbers, a place of the table three. Keys are known by their hashes only: whoever finds an entry
tests the condition itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import inlined, kernel, spliced
from weft.kernels.occurrences import EVENT, EVENT_START, ROW, SLOTS, START

Int64s = npt.NDArray[np.int64]

ID, NEXT, BEFORE, MARK = range(4)  # fields of an entry
ENTRY = 4
WORD, HEAD, TAIL = range(3)  # fields of a place; the word is never 0
PLACE = 3
# Fields of a store's own numbers.
USED, FREE, KEYS, LIVE = range(4)
STORE = 4


@spliced
def find(table: Int64s, word: np.uint64) -> Any:
    """The place of a key, or the empty place where it would be."""
    mask = len(table) // PLACE - 1
    key = np.int64(word | np.uint64(1))
    at = (key >> 1) & mask
    while table[at * PLACE + WORD] != 0 and table[at * PLACE + WORD] != key:
        at = (at + 1) & mask
    return at


@inlined
def widened(table: Int64s) -> Int64s:
    """A table with the same keys, twice as wide."""
    larger = np.zeros(2 * len(table), np.int64)
    mask = len(larger) // PLACE - 1
    for k in range(len(table) // PLACE):
        word = table[k * PLACE + WORD]
        if word == 0:
            continue
        at = (word >> 1) & mask
        while larger[at * PLACE + WORD] != 0:
            at = (at + 1) & mask
        for field in range(PLACE):
            larger[at * PLACE + field] = table[k * PLACE + field]
    return larger


@spliced
def has_room(entries: Int64s, store: Int64s) -> bool:
    """Whether one more entry fits."""
    return bool(store[FREE] >= 0) or bool((store[USED] + 1) * ENTRY <= len(entries))


@spliced
def is_crowded(table: Int64s, store: Int64s) -> bool:
    """Whether the table should be widened before one more key comes."""
    return bool(2 * (store[KEYS] + 1) * PLACE >= len(table))


@spliced
def insert(entries: Int64s, table: Int64s, store: Int64s, word: np.uint64, occurrence: int) -> Any:
    """Put an occurrence at the end of its key's list, for which there must be room; the entry."""
    entry = store[FREE]
    if entry >= 0:
        store[FREE] = entries[entry * ENTRY + NEXT]
    else:
        entry = store[USED]
        store[USED] += 1
    at = find(table, word) * PLACE
    if table[at + WORD] == 0:
        table[at + WORD] = np.int64(word | np.uint64(1))
        table[at + HEAD] = table[at + TAIL] = -1
        store[KEYS] += 1
    tail = table[at + TAIL]
    to = entry * ENTRY
    entries[to + ID], entries[to + NEXT], entries[to + BEFORE], entries[to + MARK] = occurrence, -1, tail, 0
    if tail >= 0:
        entries[tail * ENTRY + NEXT] = entry
    else:
        table[at + HEAD] = entry
    table[at + TAIL] = entry
    store[LIVE] += 1
    return entry


@spliced
def remove(entries: Int64s, table: Int64s, store: Int64s, place: int, entry: Any) -> None:
    """Take an entry out of its list."""
    at = entry * ENTRY
    after, before = entries[at + NEXT], entries[at + BEFORE]
    if before >= 0:
        entries[before * ENTRY + NEXT] = after
    else:
        table[place * PLACE + HEAD] = after
    if after >= 0:
        entries[after * ENTRY + BEFORE] = before
    else:
        table[place * PLACE + TAIL] = before
    entries[at + ID] = -1
    entries[at + NEXT] = store[FREE]
    store[FREE] = entry
    store[LIVE] -= 1


@spliced
def is_expired(rows: Int64s, slots: Int64s, events: Int64s, occurrence: int, time: Any, limit: int, slot: int) -> bool:
    """Whether at `time` more than `limit` ticks (negative: no limit) have passed since the start that counts."""
    start = time
    if limit >= 0:
        start = rows[occurrence * ROW + START]
        if slot >= 0:
            event = slots[rows[occurrence * ROW + SLOTS] + slot]
            start = events[event * EVENT + EVENT_START] if event >= 0 else time
    return limit >= 0 and time - start > limit


@kernel
def rebuild(
    entries: Int64s,
    table: Int64s,
    store: Int64s,
    rows: Int64s,
    slots: Int64s,
    events: Int64s,
    time: int,
    limit: int,
    limit_slot: int,
    marks: bool,
) -> None:
    """Take out what has expired or (`marks`) was decided, and the keys of which nothing is left."""
    for place in range(len(table) // PLACE):
        entry = table[place * PLACE + HEAD] if table[place * PLACE + WORD] != 0 else np.int64(-1)
        while entry >= 0:
            here, entry = entry, entries[entry * ENTRY + NEXT]
            decided = marks and entries[here * ENTRY + MARK] != 0
            if decided or is_expired(rows, slots, events, entries[here * ENTRY + ID], time, limit, limit_slot):
                remove(entries, table, store, place, here)
    old = table.copy()
    table[:] = 0
    store[KEYS] = 0
    mask = len(table) // PLACE - 1
    for place in range(len(old) // PLACE):
        word = old[place * PLACE + WORD]
        if word == 0 or old[place * PLACE + HEAD] < 0:
            continue
        at = (word >> 1) & mask
        while table[at * PLACE + WORD] != 0:
            at = (at + 1) & mask
        store[KEYS] += 1
        for field in range(PLACE):
            table[at * PLACE + field] = old[place * PLACE + field]
