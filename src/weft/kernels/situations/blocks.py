"""Blocks of a sequence or of `all` that no condition links: how late a candidate can begin, and whether there is one.

Sets of a sequence are searched block by block once the time before which each block must end is known. In a block
candidates are searched from the last event back, latest first, and only those that begin later than the best so far.
There are sets of `all` only if each block has a candidate, which is noted for the blocks that are evaluated early.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import device_no_refcount
from weft.kernels.situations.clauses import holds
from weft.kernels.situations.participants import (
    BACK,
    BLOCK_FROM,
    BLOCK_SIZE,
    BLOCK_STEPS,
    BLOCKS,
    BOUND,
    CANDIDATE,
    COUNT,
    EAGER,
    EVENT,
    EVENT_END,
    EVENT_START,
    HELD,
    LINK,
    LOOKED,
    NEVER,
    OLDEST,
    PART,
    PARTICIPANT,
    PARTITION,
    SIDE,
    SLOT,
    SLOTS,
    STARTS_BY,
    STEPS,
    UNTOLD,
    WALK,
    WIDTH,
    WITH,
    WITHOUT,
    Int64s,
    Number,
    find_chain,
    last_before,
    last_in_chain,
    remove_entry,
)

# Fields of a step: its slot, the index for the lookup (-1: none) and the slot with its value, the links of entries,
# the bound slots before and after it in a sequence (-1: none), whether other slots may hold the same event, whether it
# opens a block, its tests.
SLOT_OF, INDEX_OF, OTHER, OTHER_COLUMN, LINK_OF, AFTER, BEFORE, SHARES, OPENS_BLOCK = range(9)
QUICK_AT, QUICK_END, CODE_AT, CODE_END = range(9, 13)
STEPPED = 13
# Fields of a block: its first and last slot, and the first of its steps, which go from the last slot to the first.
FIRST_SLOT, LAST_SLOT, FIRST_STEP = range(3)
BLOCK = 3


@device_no_refcount
def _newest(m: Int64s, room: Int64s, part: Number, step: Number, time: Number) -> Number:
    """Return the newest entry before a time that a step may bind to, or 0."""
    if m[step + INDEX_OF] < 0:
        return last_before(m, part, m[step + SLOT_OF], time)
    at = m[m[BOUND] + m[step + OTHER]] * m[WIDTH] + 2 * m[step + OTHER_COLUMN]
    chain, _ = find_chain(m, room, part, m[step + INDEX_OF], at)
    return last_in_chain(m, chain, m[step + LINK_OF], time) if chain != 0 else np.int64(0)


@device_no_refcount
def _latest_with(m: Int64s, room: Int64s, part: Number, block: Number, last: Number, best: Number) -> Number:
    """Return the latest start of a block's candidates that end with an entry, if later than `best`, else `best`."""
    steps, top = m[BLOCK_STEPS] + m[block + FIRST_STEP] * STEPPED, m[block + LAST_SLOT] - m[block + FIRST_SLOT]
    depth: Number = np.int64(0)
    m[m[WALK]] = last
    while depth >= 0:
        step = steps + depth * STEPPED
        slot, entry = m[step + SLOT_OF], m[m[WALK] + depth]
        if entry == 0 or m[entry + EVENT_END] <= best:
            depth -= 1
            continue
        m[LOOKED] += 1
        m[m[WALK] + depth] = m[entry + m[step + LINK_OF] + 1] if depth > 0 else np.int64(0)
        m[m[BOUND] + slot], m[m[HELD] + slot] = m[entry + EVENT], entry
        if m[entry + EVENT_START] > best and holds(
            m, room, m[step + QUICK_AT], m[step + QUICK_END], m[step + CODE_AT], m[step + CODE_END]
        ):
            if depth == top:
                best = m[entry + EVENT_START]
            else:
                depth += 1
                m[m[WALK] + depth] = _newest(m, room, part, step + STEPPED, m[entry + EVENT_START])
    return best


@device_no_refcount
def ends_candidate(m: Int64s, room: Int64s, entry: Number, number: Number) -> bool:
    """Whether a candidate of a block ends with a new entry; store the latest start of these."""
    m[entry + STARTS_BY] = _latest_with(m, room, m[entry + PART], m[BLOCKS] + number * BLOCK, entry, np.int64(-NEVER))
    found: bool = m[entry + STARTS_BY] != -NEVER
    return found


@device_no_refcount
def latest_start(m: Int64s, room: Int64s, part: Number, block: Number, bound: Number) -> Number:
    """Return the latest start of a block's candidates that end before `bound`, or -NEVER.

    Entries that end no candidate never will: they are removed. Results for the others are cached.
    """
    best: Number = np.int64(-NEVER)
    entry = last_before(m, part, m[block + LAST_SLOT], bound)
    while entry != 0 and m[entry + EVENT_END] > best:
        earlier = m[entry + BACK]
        m[LOOKED] += 1
        if min(m[entry + EVENT_START], m[entry + STARTS_BY]) > best:
            found = _latest_with(m, room, part, block, entry, best)
            m[entry + STARTS_BY] = best = found
            if found == -NEVER:
                remove_entry(m, entry)
        entry = earlier
    return best


# ---------------------------------------------------------------- all


@device_no_refcount
def _is_in_candidate(m: Int64s, room: Int64s, entry: Number) -> bool:
    """Whether the block of an entry, in `all`, has a candidate with it."""
    own, count = m[entry + SLOT], m[COUNT]
    steps, top = m[STEPS] + (1 + own) * count * STEPPED, m[m[SLOTS] + own * PARTICIPANT + BLOCK_SIZE] - 1
    m[m[BOUND] : m[BOUND] + count] = -1
    depth: Number = np.int64(0)
    m[m[WALK]] = entry
    while depth >= 0:
        step = steps + depth * STEPPED
        slot, one = m[step + SLOT_OF], m[m[WALK] + depth]
        m[m[BOUND] + slot] = -1
        if one == 0:
            depth -= 1
            continue
        m[LOOKED] += 1
        m[m[WALK] + depth] = m[one + m[step + LINK_OF] + 1] if depth > 0 else np.int64(0)
        free = True
        if m[step + SHARES] != 0:
            for other in range(count):
                free = free and m[m[BOUND] + other] != m[one + EVENT]
        m[m[BOUND] + slot], m[m[HELD] + slot] = m[one + EVENT], one
        if free and holds(m, room, m[step + QUICK_AT], m[step + QUICK_END], m[step + CODE_AT], m[step + CODE_END]):
            if depth == top:
                return True
            depth += 1
            m[m[WALK] + depth] = _newest(m, room, m[entry + PART], step + STEPPED, np.int64(NEVER))
    return False


@device_no_refcount
def note_candidate(m: Int64s, room: Int64s, entry: Number) -> None:
    """Note whether the block of a new entry, in `all`, has a candidate now; if that is not worked out, that it may."""
    slot = m[SLOTS] + m[entry + SLOT] * PARTICIPANT
    noted = m[entry + PART] + PARTITION + (m[slot + BLOCK_FROM] - 1) * SIDE + CANDIDATE
    if m[slot + EAGER] == 0:
        m[noted] = UNTOLD
    elif m[noted] != WITH and _is_in_candidate(m, room, entry):
        m[noted] = WITH


@device_no_refcount
def has_candidates(m: Int64s, room: Int64s, part: Number) -> bool:
    """Whether each block of `all` that is worked out early has a candidate; where that is not known it is found out."""
    for slot in range(m[COUNT]):
        own, noted = m[SLOTS] + slot * PARTICIPANT, part + PARTITION + slot * SIDE + CANDIDATE
        if m[own + EAGER] == 0 or m[own + BLOCK_FROM] != slot + 1:
            continue
        if m[noted] == UNTOLD:
            entry = m[part + PARTITION + slot * SIDE + OLDEST]
            while entry != 0 and not _is_in_candidate(m, room, entry):
                entry = m[entry + LINK]
            m[noted] = WITHOUT if entry == 0 else WITH
        if m[noted] == WITHOUT:
            return False
    return True
