"""Participants of situations: for each partition and slot the events that may fill it, as linked records.

All state of a situation is in one array `m`. It begins with a header of named numbers, followed by records; a record is
addressed by the place where it begins, and 0 is none. Free records of a kind are linked.

An entry is an event in one slot of one partition. The entries of a slot are linked from oldest to newest, and again
with those that have the same value in an indexed attribute: such a chain is found by hashing. The entries of one event
in one partition form a ring, as they are consumed together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.machine.machine import VALUES
from weft.kernels.machine.tagged import MISSING, mixed_in, normal
from weft.kernels.memory.room import words

Int64s = npt.NDArray[np.int64]
Number = int | np.int64

NEVER = np.iinfo(np.int64).max
# Numbers at the beginning. What the situation is, and where its tables are:
KIND, DEFERRED, SINGLE, CONTEXT, LENGTH, STEP, COUNTS_EMPTY, OVERLAPS, COUNT, ENTRY_SIZE, PART_SIZE, WIDTH = range(12)
SLOTS, COLUMNS, INDEXED, CLASS_AT, CLASS_SLOTS, STEPS, QUICK, BLOCKS = range(12, 20)
# records: the end of what is used, those that are free, hashed chains, keys, timers;
TOP, FREE_ENTRY, ENTRIES_FREE, FREE_PART, PARTS_FREE, FREE_CHAIN, CHAINS_FREE, NEEDED = range(20, 28)
CHAINS, TABLE, TABLE_SIZE, KEYS, KEY_COUNT, TIMERS = range(28, 34)
# what is under way: the event, partitions with work, the search (DEPTH -1: none), sets found and seen, to be consumed;
ARRIVED, NEW, NEW_CLASS, WORK, DEPTH, FOUND, SEEN, SEEN_SIZE, SEEN_COUNT, STAMP, GONE, SWEPT, LIMIT = range(34, 47)
KNOWN = SEEN  # an absence selects no sets: how long keys are known after their last event, and for each until when
RUNS = GONE  # and it consumes nothing: how many windows of a run are told singly, and where each key's run begins
# and of each step of the search the entry, whether it led to a set, whether the new event was bound before it; of each
# slot the event and the entry that are bound, and between which times an event must be; of each step in a block the
# entry. LOOKED counts the entries that were looked at; LASTING_EVENTS says whether some were no instants.
CURRENT, SOME, HOLDS_NEW, BOUND, HELD, LOW, HIGH, NEEDED_CHAINS, LAST_NUMBER = range(47, 56)
WALK, BLOCK_STEPS, BLOCK_COUNT, LOOKED, LASTING_EVENTS, FREE_SHELF, SHELVES_FREE = range(56, 63)
HEADER = 63
# Fields of a slot of the situation. EAGER: 1 + the number of the block that is worked out when an event ends it here.
# In `all` BLOCK_FROM is 1 + the first slot of its block, or 0 if there is only one, and EAGER 1 if it is worked out.
REPEATED, CONSUMES, INDEX, INDEXES, EAGER, BLOCK_FROM, BLOCK_SIZE = range(7)
PARTICIPANT = 7
EVERY, FIRST, LAST, OVERRIDE = range(4)
# Fields of an entry. STARTS_BY: no candidate of its block that ends with it starts later. After them, for each
# attribute of the slot that is looked up: its chain, next and previous.
EVENT, EVENT_START, EVENT_END, LINK, BACK, STARTS_BY, SHELVED, PLACE, PART, SLOT, TWIN, MARK, NEXT_GONE = range(13)
ENTRY = 13
CHAINED = 3
# Fields of a partition. LATER and EARLIER link those of one key that are open; LEFT and RIGHT are those that end no
# earlier. After them for each slot the oldest and the newest entry, the least end of any event that was in it, and the
# shelves where entries were found by time: the next search begins there. CANDIDATE, of the first slot of a block of
# `all`: whether the block has one.
KEY, START, END, ORIGIN, TAKEN, FIRST_END, FIRST_PLACE, NUMBER, LATER, EARLIER = range(10)
FILLED, TODO, NEXT_TODO, LEFT, RIGHT = range(10, 15)
PARTITION = 15
OLDEST, NEWEST, LEAST_END, AFTER_TIME, BEFORE_TIME, CANDIDATE = range(6)
SIDE = 6
UNTOLD, WITHOUT, WITH = range(3)  # of CANDIDATE
# Fields of a shelf: some entries of a slot that follow each other, so that a search by time passes them by.
FIRST_ON, ON_SHELF, NEXT_SHELF, SHELF_BEFORE = range(4)
SHELF = 4
FULL_SHELF = 32
# Fields of a chain; BUCKET is the next one with the same place in the table, ASKED where an entry was found by time.
HASH, OWNER, OWN_INDEX, HEAD, TAIL, BUCKET, ASKED = range(7)
CHAIN = 7


# ---------------------------------------------------------------- chains


@device_no_refcount
def find_chain(m: Int64s, room: Int64s, part: Number, index: Number, at: Number) -> tuple[Number, Number]:
    """Return the chain of the value at a place of the values, or 0; and its hash, or -1 if it is missing."""
    values = words(room, VALUES)
    if values[at] == MISSING:
        return np.int64(0), np.int64(-1)
    kind, word = normal(values[at], values[at + 1])
    hashed = np.int64(mixed_in(np.uint64(part + index), kind, word) >> np.uint64(1))
    chain = m[m[TABLE] + (hashed & (m[TABLE_SIZE] - 1))]
    while chain != 0 and (m[chain + HASH] != hashed or m[chain + OWNER] != part or m[chain + OWN_INDEX] != index):
        chain = m[chain + BUCKET]
    return chain, hashed


@device_no_refcount
def _join_chain(m: Int64s, room: Int64s, entry: Number, link: Number, index: Number, at: Number) -> None:
    """Add an entry as the newest to the chain of its value; its links to the chain are at `link`."""
    chain, hashed = find_chain(m, room, m[entry + PART], index, at)
    m[entry + link] = chain
    if hashed < 0:
        return
    if chain == 0:
        chain = m[FREE_CHAIN]
        if chain != 0:
            m[FREE_CHAIN] = m[chain + BUCKET]
            m[CHAINS_FREE] -= 1
        else:
            chain = m[TOP]
            m[TOP] += CHAIN
        m[CHAINS] += 1
        place = m[TABLE] + (hashed & (m[TABLE_SIZE] - 1))
        m[chain + HASH], m[chain + OWNER], m[chain + OWN_INDEX] = hashed, m[entry + PART], index
        m[chain + HEAD], m[chain + TAIL], m[chain + BUCKET], m[chain + ASKED] = 0, 0, m[place], 0
        m[place] = chain
    last = m[chain + TAIL]
    m[entry + link], m[entry + link + 1], m[entry + link + 2] = chain, 0, last
    m[(chain + HEAD) if last == 0 else (last + link + 1)] = entry
    m[chain + TAIL] = entry


@device_no_refcount
def _leave_chain(m: Int64s, entry: Number, link: Number) -> None:
    chain, after, before = m[entry + link], m[entry + link + 1], m[entry + link + 2]
    if chain == 0:
        return
    m[(chain + HEAD) if before == 0 else (before + link + 1)] = after
    m[(chain + TAIL) if after == 0 else (after + link + 2)] = before
    if m[chain + ASKED] == entry:
        m[chain + ASKED] = before if before != 0 else after
    if before == 0 and after == 0:
        place = m[TABLE] + (m[chain + HASH] & (m[TABLE_SIZE] - 1))
        while m[place] != chain:
            place = m[place] + BUCKET
        m[place] = m[chain + BUCKET]
        m[chain + BUCKET] = m[FREE_CHAIN]
        m[FREE_CHAIN] = chain
        m[CHAINS_FREE] += 1
        m[CHAINS] -= 1


@device_no_refcount
def last_in_chain(m: Int64s, chain: Number, link: Number, time: Number) -> Number:
    """Return the last entry of a chain, linked at `link`, that ends before a time, or 0."""
    entry: Number = m[chain + TAIL]
    if m[entry + EVENT_END] < time:
        return entry
    if m[chain + ASKED] != 0:
        entry = m[chain + ASKED]
    while m[entry + link] != 0 and m[m[entry + link] + EVENT_END] < time:
        m[LOOKED] += 1
        entry = m[entry + link]
    while entry != 0 and m[entry + EVENT_END] >= time:
        m[LOOKED] += 1
        m[chain + ASKED] = entry
        entry = m[entry + link + 1]
    if entry != 0:
        m[chain + ASKED] = entry
    return entry


@bare_kernel
def rehash(m: Int64s, table: int, size: int) -> None:
    """Move all chains to another, empty table."""
    for k in range(m[TABLE_SIZE]):
        chain = m[m[TABLE] + k]
        while chain != 0:
            after = m[chain + BUCKET]
            place = table + (m[chain + HASH] & (size - 1))
            m[chain + BUCKET] = m[place]
            m[place] = chain
            chain = after
    m[TABLE], m[TABLE_SIZE] = table, size


# ---------------------------------------------------------------- shelves


@device_no_refcount
def _put_on_shelf(m: Int64s, entry: Number, last: Number) -> None:
    """Add the newest entry of a slot to the shelf of the previous one, or to a new shelf."""
    before = m[last + SHELVED] if last != 0 else np.int64(0)
    shelf = before
    if before == 0 or m[before + ON_SHELF] == FULL_SHELF:
        shelf = m[FREE_SHELF]
        if shelf != 0:
            m[FREE_SHELF] = m[shelf + NEXT_SHELF]
            m[SHELVES_FREE] -= 1
        else:
            shelf = m[TOP]
            m[TOP] += SHELF
        m[shelf + FIRST_ON], m[shelf + ON_SHELF], m[shelf + NEXT_SHELF], m[shelf + SHELF_BEFORE] = entry, 0, 0, before
        if before != 0:
            m[before + NEXT_SHELF] = shelf
    m[entry + SHELVED] = shelf
    m[shelf + ON_SHELF] += 1


@device_no_refcount
def _take_off_shelf(m: Int64s, side: Number, entry: Number) -> None:
    """Remove an entry, which is still linked to the next, from its shelf."""
    shelf = m[entry + SHELVED]
    m[shelf + ON_SHELF] -= 1
    if m[shelf + ON_SHELF] > 0:
        if m[shelf + FIRST_ON] == entry:
            m[shelf + FIRST_ON] = m[entry + LINK]
        return
    after, before = m[shelf + NEXT_SHELF], m[shelf + SHELF_BEFORE]
    if before != 0:
        m[before + NEXT_SHELF] = after
    if after != 0:
        m[after + SHELF_BEFORE] = before
    near = before if before != 0 else after
    if m[side + AFTER_TIME] == shelf:
        m[side + AFTER_TIME] = near
    if m[side + BEFORE_TIME] == shelf:
        m[side + BEFORE_TIME] = near
    m[shelf + NEXT_SHELF] = m[FREE_SHELF]
    m[FREE_SHELF] = shelf
    m[SHELVES_FREE] += 1


@device_no_refcount
def first_after(m: Int64s, part: Number, slot: Number, time: Number) -> Number:
    """Return the first entry of a slot that ends after a time, or 0."""
    side = part + PARTITION + slot * SIDE
    entry: Number = m[side + OLDEST]
    if entry == 0 or m[entry + EVENT_END] > time:
        return entry
    shelf = m[side + AFTER_TIME] if m[side + AFTER_TIME] != 0 else m[entry + SHELVED]
    while m[shelf + NEXT_SHELF] != 0 and m[m[m[shelf + NEXT_SHELF] + FIRST_ON] + EVENT_END] <= time:
        m[LOOKED] += 1
        shelf = m[shelf + NEXT_SHELF]
    while m[m[shelf + FIRST_ON] + EVENT_END] > time:
        m[LOOKED] += 1
        shelf = m[shelf + SHELF_BEFORE]
    m[side + AFTER_TIME], entry = shelf, m[shelf + FIRST_ON]
    while entry != 0 and m[entry + EVENT_END] <= time:
        m[LOOKED] += 1
        entry = m[entry + LINK]
    return entry


@device_no_refcount
def last_before(m: Int64s, part: Number, slot: Number, time: Number) -> Number:
    """Return the last entry of a slot that ends before a time, or 0."""
    side = part + PARTITION + slot * SIDE
    entry: Number = m[side + NEWEST]
    if entry == 0 or m[entry + EVENT_END] < time:
        return entry
    shelf = m[side + BEFORE_TIME] if m[side + BEFORE_TIME] != 0 else m[entry + SHELVED]
    while m[shelf + NEXT_SHELF] != 0 and m[m[m[shelf + NEXT_SHELF] + FIRST_ON] + EVENT_END] < time:
        m[LOOKED] += 1
        shelf = m[shelf + NEXT_SHELF]
    while m[m[shelf + FIRST_ON] + EVENT_END] >= time:
        m[LOOKED] += 1
        if m[shelf + SHELF_BEFORE] == 0:
            return np.int64(0)
        shelf = m[shelf + SHELF_BEFORE]
    m[side + BEFORE_TIME], entry = shelf, m[shelf + FIRST_ON]
    while m[entry + LINK] != 0 and m[m[entry + LINK] + EVENT_END] < time:
        m[LOOKED] += 1
        entry = m[entry + LINK]
    return entry


# ---------------------------------------------------------------- entries


@device_no_refcount
def add_entry(
    m: Int64s,
    room: Int64s,
    part: Number,
    slot: Number,
    event: Number,
    start: Number,
    end: Number,
    place: Number,
    twin: Number,
) -> Number:
    """Add an event to a slot as the newest; `twin` is its entry in another slot of the partition, or 0."""
    entry: Number = m[FREE_ENTRY]
    if entry != 0:
        m[FREE_ENTRY] = m[entry + LINK]
        m[ENTRIES_FREE] -= 1
    else:
        entry = m[TOP]
        m[TOP] += m[ENTRY_SIZE]
    side = part + PARTITION + slot * SIDE
    last = m[side + NEWEST]
    m[entry + EVENT], m[entry + PART], m[entry + SLOT], m[entry + MARK] = event, part, slot, 0
    m[entry + EVENT_START], m[entry + EVENT_END], m[entry + PLACE] = start, end, place
    m[entry + LINK], m[entry + BACK], m[entry + TWIN], m[entry + STARTS_BY] = 0, last, entry, NEVER
    if last == 0:
        m[part + FILLED] += 1
    _put_on_shelf(m, entry, last)
    m[(side + OLDEST) if last == 0 else (last + LINK)] = entry
    m[side + NEWEST] = entry
    m[LASTING_EVENTS] |= start != end
    m[side + LEAST_END] = min(m[side + LEAST_END], end)
    if twin != 0:
        m[entry + TWIN], m[twin + TWIN] = m[twin + TWIN], entry
    first = m[m[SLOTS] + slot * PARTICIPANT + INDEX]
    for k in range(m[m[SLOTS] + slot * PARTICIPANT + INDEXES]):
        at = event * m[WIDTH] + 2 * m[m[COLUMNS] + first + k]
        _join_chain(m, room, entry, ENTRY + CHAINED * k, first + k, at)
    return entry


@device_no_refcount
def remove_entry(m: Int64s, entry: Number) -> None:
    """Remove an event from a slot."""
    part, slot, after, before = m[entry + PART], m[entry + SLOT], m[entry + LINK], m[entry + BACK]
    side = part + PARTITION + slot * SIDE
    m[(side + OLDEST) if before == 0 else (before + LINK)] = after
    m[(side + NEWEST) if after == 0 else (after + BACK)] = before
    if before == 0 and after == 0:
        m[part + FILLED] -= 1
    _take_off_shelf(m, side, entry)
    block = m[m[SLOTS] + slot * PARTICIPANT + BLOCK_FROM]
    if block != 0 and m[part + PARTITION + (block - 1) * SIDE + CANDIDATE] == WITH:
        m[part + PARTITION + (block - 1) * SIDE + CANDIDATE] = UNTOLD
    other = m[entry + TWIN]
    while m[other + TWIN] != entry:
        other = m[other + TWIN]
    m[other + TWIN] = m[entry + TWIN]
    for k in range(m[m[SLOTS] + slot * PARTICIPANT + INDEXES]):
        _leave_chain(m, entry, ENTRY + CHAINED * k)
    m[entry + LINK] = m[FREE_ENTRY]
    m[FREE_ENTRY] = entry
    m[ENTRIES_FREE] += 1


@device_no_refcount
def clear_slots(m: Int64s, part: Number, first: Number, last: Number) -> None:
    """Remove all events from a range of slots."""
    for slot in range(first, last + 1):
        while m[part + PARTITION + slot * SIDE + OLDEST] != 0:
            remove_entry(m, m[part + PARTITION + slot * SIDE + OLDEST])


@device_no_refcount
def mark_consumed(m: Int64s, entry: Number) -> None:
    """Mark an event that will be consumed."""
    if m[entry + MARK] == 0:
        m[entry + NEXT_GONE] = m[GONE]
        m[GONE] = entry
        while m[entry + MARK] == 0:
            m[entry + MARK] = 1
            entry = m[entry + TWIN]


@device_no_refcount
def consume(m: Int64s) -> None:
    """Remove the marked events from all slots of their partition."""
    while m[GONE] != 0:
        entry = m[GONE]
        m[GONE] = m[entry + NEXT_GONE]
        while m[entry + TWIN] != entry:
            remove_entry(m, m[entry + TWIN])
        remove_entry(m, entry)
