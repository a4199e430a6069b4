"""The participants of situations: for each partition and slot the events that may fill it, as linked rows.

An entry is an event in one slot of one partition. The entries of a slot are linked from oldest to newest, and once
more with those that have the same value in an attribute which is looked up: such a chain is found by hashing. The
entries of one event in one partition form a ring, for they are consumed together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed
from weft.kernels.conditions import TEXT
from weft.kernels.jit import inlined, kernel

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NONE = -1
NEVER = np.iinfo(np.int64).max
# Fields of an entry. After them, for each attribute of the slot that is looked up: its chain, next and previous.
EVENT, PART, LINK, BACK, TWIN, SLOT, MARK = range(7)
ENTRY = 7
CHAINED = 3
# Fields of a partition. LATER and EARLIER link those of one key that are open. After them the SLOTS, of three each:
# the oldest and the newest entry, and the least end that any event in it ever had.
KEY, START, END, ORIGIN, TAKEN, FIRST_END, FIRST_PLACE, NUMBER, LATER, EARLIER, FILLED, OPEN = range(12)
PARTITION = 12
OLDEST, NEWEST, LEAST_END = range(3)
SIDE = 3
# Fields of a chain: the owner is a partition and an index; BUCKET is the next chain with the same place in the table.
HASH, OWNER, HEAD, TAIL, BUCKET = range(5)
CHAIN = 5
# Fields of an event, and of a slot of the situation.
PLACE, EVENT_START, EVENT_END = range(3)
HAPPENING = 3
REPEATED, CONSUMES, INDEX, INDEXES = range(4)
PARTICIPANT = 4
EVERY, FIRST, LAST, OVERRIDE = range(4)
# Places of the control array. DEPTH is -1 when no search is under way; LIMIT is the last window that was swept.
(
    ARRIVED,
    WORK_AT,
    WORK_COUNT,
    DEPTH,
    FOUND,
    NEW,
    NEW_CLASS,
    FREE_ENTRY,
    ENTRY_TOP,
    ENTRIES_USED,
    FREE_PART,
    PART_TOP,
    PARTS_USED,
    FREE_CHAIN,
    CHAIN_TOP,
    TIMERS,
    SEEN_COUNT,
    GONE_COUNT,
    LIMIT,
    SWEPT,
    NEED_ENTRIES,
    NEED_PARTS,
    KEYS,
    STAMP,
) = range(24)
CONTROLS = 24


class Rows(NamedTuple):
    """The state of one situation."""

    control: Int64s
    entries: Int64s
    parts: Int64s
    chains: Int64s
    table: Int64s  # by hash: the first chain
    keys: Int64s  # by key: see `weft.kernels.partitions`
    timers: Int64s  # a heap of (end, partition)
    work: Int64s  # what is left to do for the event at hand: (action, partition)
    gone: Int64s  # entries to be consumed
    seen: Int64s  # sets that were selected, as a hash table of (hash, hash, mark)
    current: Int64s  # of the search: the entry at each step
    bound: Int64s  # the event in each slot
    some: Int64s  # whether a step led to a set
    holds_new: Int64s  # whether the new event was bound before a step


class Facts(NamedTuple):
    """What is known of events: times and places, and the values that are looked up and tested."""

    events: Int64s
    values: Floats
    width: int
    slots: Int64s
    columns: Int64s  # by index: what is looked up
    entry: int  # numbers of an entry
    part: int  # numbers of a partition


@inlined
def borrow_rows(rows: Rows) -> Rows:
    """The same rows, borrowed."""
    return Rows(
        borrowed(rows.control),
        borrowed(rows.entries),
        borrowed(rows.parts),
        borrowed(rows.chains),
        borrowed(rows.table),
        borrowed(rows.keys),
        borrowed(rows.timers),
        borrowed(rows.work),
        borrowed(rows.gone),
        borrowed(rows.seen),
        borrowed(rows.current),
        borrowed(rows.bound),
        borrowed(rows.some),
        borrowed(rows.holds_new),
    )


@inlined
def borrow_facts(facts: Facts) -> Facts:
    """The same facts, borrowed."""
    return Facts(
        borrowed(facts.events),
        borrowed(facts.values),
        facts.width,
        borrowed(facts.slots),
        borrowed(facts.columns),
        facts.entry,
        facts.part,
    )


# ---------------------------------------------------------------- chains


@inlined
def hash_value(value: float, rest: float, owner: int) -> int:
    """A hash of a value; those that compare as equal have the same."""
    word = np.uint64(np.float64(value + 0.0).view(np.int64)) ^ (np.uint64(owner) * np.uint64(0x9E3779B97F4A7C15))
    if rest >= TEXT:
        word += np.uint64(0x9E3779B97F4A7C15) if rest == TEXT else np.uint64(0xA4093822299F31D0)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(32)
    return np.int64(word >> np.uint64(1))


@inlined
def find_chain(rows: Rows, hashed: int, owner: int) -> int:
    """The chain of a value, NONE when there is none."""
    chains = rows.chains
    chain = rows.table[hashed & (len(rows.table) - 1)]
    while chain >= 0 and (chains[chain * CHAIN + HASH] != hashed or chains[chain * CHAIN + OWNER] != owner):
        chain = chains[chain * CHAIN + BUCKET]
    return np.int64(chain)


@inlined
def _add_to_chain(rows: Rows, facts: Facts, entry: int, at: int, owner: int, value: float, rest: float) -> None:
    """Make an entry the newest of the chain of its value. `at` is where its links to the chain are."""
    control, entries, chains = rows.control, rows.entries, rows.chains
    hashed = hash_value(value, rest, owner)
    chain = find_chain(rows, hashed, owner)
    if chain < 0:
        chain = control[FREE_CHAIN]
        if chain >= 0:
            control[FREE_CHAIN] = chains[chain * CHAIN + BUCKET]
        else:
            chain = control[CHAIN_TOP]
            control[CHAIN_TOP] += 1
        place = hashed & (len(rows.table) - 1)
        chains[chain * CHAIN + HASH] = hashed
        chains[chain * CHAIN + OWNER] = owner
        chains[chain * CHAIN + HEAD] = NONE
        chains[chain * CHAIN + TAIL] = NONE
        chains[chain * CHAIN + BUCKET] = rows.table[place]
        rows.table[place] = chain
    last = chains[chain * CHAIN + TAIL]
    entries[at] = chain
    entries[at + 1] = NONE
    entries[at + 2] = last
    if last < 0:
        chains[chain * CHAIN + HEAD] = entry
    else:
        entries[last * facts.entry + (at - entry * facts.entry) + 1] = entry
    chains[chain * CHAIN + TAIL] = entry


@inlined
def _leave_chain(rows: Rows, facts: Facts, entry: int, at: int) -> None:
    control, entries, chains = rows.control, rows.entries, rows.chains
    chain, after, before = entries[at], entries[at + 1], entries[at + 2]
    if chain < 0:
        return
    link = at - entry * facts.entry
    if before < 0:
        chains[chain * CHAIN + HEAD] = after
    else:
        entries[before * facts.entry + link + 1] = after
    if after < 0:
        chains[chain * CHAIN + TAIL] = before
    else:
        entries[after * facts.entry + link + 2] = before
    if before < 0 and after < 0:
        place = chains[chain * CHAIN + HASH] & (len(rows.table) - 1)
        other = rows.table[place]
        if other == chain:
            rows.table[place] = chains[chain * CHAIN + BUCKET]
        else:
            while chains[other * CHAIN + BUCKET] != chain:
                other = chains[other * CHAIN + BUCKET]
            chains[other * CHAIN + BUCKET] = chains[chain * CHAIN + BUCKET]
        chains[chain * CHAIN + OWNER] = NONE
        chains[chain * CHAIN + BUCKET] = control[FREE_CHAIN]
        control[FREE_CHAIN] = chain


@kernel
def place_chains(chains: Int64s, top: int, table: Int64s) -> None:
    """Fill an empty table with the chains in use."""
    for chain in range(top):
        if chains[chain * CHAIN + OWNER] >= 0:
            place = chains[chain * CHAIN + HASH] & (len(table) - 1)
            chains[chain * CHAIN + BUCKET] = table[place]
            table[place] = chain


# ---------------------------------------------------------------- entries


@inlined
def add_entry(rows: Rows, facts: Facts, part: int, slot: int, event: int, twin: int) -> int:
    """Put an event into a slot, as the newest; `twin` is its entry in another slot of the partition, or NONE."""
    control, entries, parts = rows.control, rows.entries, rows.parts
    entry = control[FREE_ENTRY]
    if entry >= 0:
        control[FREE_ENTRY] = entries[entry * facts.entry + LINK]
    else:
        entry = control[ENTRY_TOP]
        control[ENTRY_TOP] += 1
    control[ENTRIES_USED] += 1
    at, side = entry * facts.entry, part * facts.part + PARTITION + slot * SIDE
    last = parts[side + NEWEST]
    entries[at + EVENT], entries[at + PART], entries[at + SLOT] = event, part, slot
    entries[at + LINK], entries[at + BACK], entries[at + MARK] = NONE, last, 0
    if last < 0:
        parts[side + OLDEST] = entry
        parts[part * facts.part + FILLED] += 1
    else:
        entries[last * facts.entry + LINK] = entry
    parts[side + NEWEST] = entry
    parts[side + LEAST_END] = min(parts[side + LEAST_END], facts.events[event * HAPPENING + EVENT_END])
    entries[at + TWIN] = entry
    if twin >= 0:
        entries[at + TWIN] = entries[twin * facts.entry + TWIN]
        entries[twin * facts.entry + TWIN] = entry
    first = facts.slots[slot * PARTICIPANT + INDEX]
    for k in range(facts.slots[slot * PARTICIPANT + INDEXES]):
        link = at + ENTRY + CHAINED * k
        value = facts.values[event * facts.width + 2 * facts.columns[first + k]]
        rest = facts.values[event * facts.width + 2 * facts.columns[first + k] + 1]
        entries[link] = NONE
        if not np.isnan(value):
            _add_to_chain(rows, facts, entry, link, part * len(facts.columns) + first + k, value, rest)
    return np.int64(entry)


@inlined
def remove_entry(rows: Rows, facts: Facts, entry: int) -> None:
    """Take an event out of a slot."""
    control, entries, parts = rows.control, rows.entries, rows.parts
    at = entry * facts.entry
    part, slot = entries[at + PART], entries[at + SLOT]
    side = part * facts.part + PARTITION + slot * SIDE
    after, before = entries[at + LINK], entries[at + BACK]
    if before < 0:
        parts[side + OLDEST] = after
    else:
        entries[before * facts.entry + LINK] = after
    if after < 0:
        parts[side + NEWEST] = before
    else:
        entries[after * facts.entry + BACK] = before
    if before < 0 and after < 0:
        parts[part * facts.part + FILLED] -= 1
    other = entries[at + TWIN]
    while entries[other * facts.entry + TWIN] != entry:
        other = entries[other * facts.entry + TWIN]
    entries[other * facts.entry + TWIN] = entries[at + TWIN]
    for k in range(facts.slots[slot * PARTICIPANT + INDEXES]):
        _leave_chain(rows, facts, entry, at + ENTRY + CHAINED * k)
    entries[at + EVENT] = NONE
    entries[at + LINK] = control[FREE_ENTRY]
    control[FREE_ENTRY] = entry
    control[ENTRIES_USED] -= 1


@inlined
def clear_slot(rows: Rows, facts: Facts, part: int, slot: int) -> None:
    """Take all events out of a slot."""
    side = part * facts.part + PARTITION + slot * SIDE
    while rows.parts[side + OLDEST] >= 0:
        remove_entry(rows, facts, rows.parts[side + OLDEST])


@inlined
def clear_partition(rows: Rows, facts: Facts, part: int) -> None:
    """Take all events out of a partition."""
    for slot in range(len(facts.slots) // PARTICIPANT):
        clear_slot(rows, facts, part, slot)


@inlined
def mark_consumed(rows: Rows, facts: Facts, entry: int) -> None:
    """Note that an event will be consumed."""
    control, entries = rows.control, rows.entries
    if entries[entry * facts.entry + MARK] == 0:
        rows.gone[control[GONE_COUNT]] = entry
        control[GONE_COUNT] += 1
        other = entry
        while entries[other * facts.entry + MARK] == 0:
            entries[other * facts.entry + MARK] = 1
            other = entries[other * facts.entry + TWIN]


@inlined
def consume(rows: Rows, facts: Facts) -> None:
    """Take the noted events out of all slots of the partition."""
    control, entries = rows.control, rows.entries
    for k in range(control[GONE_COUNT]):
        entry = rows.gone[k]
        while entries[entry * facts.entry + TWIN] != entry:
            remove_entry(rows, facts, entries[entry * facts.entry + TWIN])
        remove_entry(rows, facts, entry)
    control[GONE_COUNT] = 0
