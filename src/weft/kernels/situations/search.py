"""Search for matching sets in a partition: slot by slot, each clause tested as soon as its variables are bound.

At a slot under `first` or `last` the search stops after the first event that leads to a set: candidates are visited in
order, so no later one can precede it. When there is no space for a set the search returns, and resumes when it is
called again.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import device_no_refcount
from weft.kernels.situations.blocks import (
    AFTER,
    BEFORE,
    BLOCK,
    CODE_AT,
    CODE_END,
    FIRST_SLOT,
    INDEX_OF,
    LAST_SLOT,
    LINK_OF,
    OPENS_BLOCK,
    OTHER,
    OTHER_COLUMN,
    QUICK_AT,
    QUICK_END,
    SHARES,
    SLOT_OF,
    STEPPED,
    latest_start,
)
from weft.kernels.situations.clauses import holds
from weft.kernels.situations.found_sets import DONE, PAUSE, emit
from weft.kernels.situations.participants import (
    BLOCK_COUNT,
    BLOCKS,
    BOUND,
    COUNT,
    CURRENT,
    DEPTH,
    EVENT,
    EVENT_END,
    EVENT_START,
    FIRST,
    HEAD,
    HELD,
    HIGH,
    HOLDS_NEW,
    KIND,
    LAST,
    LASTING_EVENTS,
    LINK,
    LOOKED,
    LOW,
    NEVER,
    NEW,
    NEWEST,
    OLDEST,
    PARTICIPANT,
    PARTITION,
    REPEATED,
    SIDE,
    SINGLE,
    SLOTS,
    SOME,
    STEPS,
    TAIL,
    WIDTH,
    Int64s,
    Number,
    find_chain,
    first_after,
    last_before,
    last_in_chain,
    remove_entry,
)
from weft.kernels.situations.partitions import SEQUENCE


@device_no_refcount
def _times(m: Int64s, step: Number) -> tuple[Number, Number]:
    """Return the time range of an event that a step may bind."""
    slot = m[step + SLOT_OF]
    low, high = m[m[LOW] + slot], m[m[HIGH] + slot]
    if m[step + AFTER] >= 0:
        low = max(low, m[m[m[HELD] + m[step + AFTER]] + EVENT_END])
    if m[step + BEFORE] >= 0:
        high = min(high, m[m[m[HELD] + m[step + BEFORE]] + EVENT_START])
    return low, high


@device_no_refcount
def _next_entry(m: Int64s, step: Number, entry: Number) -> Number:
    """Return the next entry that may be bound, from an entry on, in the order of the slot's policy, or 0."""
    slot = m[step + SLOT_OF]
    backward = m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST
    link = m[step + LINK_OF] + (1 if backward else 0)
    low, high = _times(m, step)
    while entry != 0:
        m[LOOKED] += 1
        end = m[entry + EVENT_END]
        if (end <= low) if backward else (end >= high):  # entries are sorted by end
            return np.int64(0)
        free = m[entry + EVENT_START] > low and end < high
        if m[step + SHARES] != 0:
            for other in range(m[COUNT]):
                free = free and (other == slot or m[m[BOUND] + other] != m[entry + EVENT])
        if free:
            break
        entry = m[entry + link]
    return entry


@device_no_refcount
def _first_entry(m: Int64s, room: Int64s, part: Number, step: Number, must: bool) -> Number:
    """Return the first entry that a step may bind, or 0; with `must` only the new event's."""
    slot = m[step + SLOT_OF]
    if must:
        entry = m[part + PARTITION + slot * SIDE + NEWEST]
        return entry if entry != 0 and m[entry + EVENT] == m[NEW] else np.int64(0)
    backward = m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST
    if m[step + INDEX_OF] >= 0:
        at = m[m[BOUND] + m[step + OTHER]] * m[WIDTH] + 2 * m[step + OTHER_COLUMN]
        chain, _ = find_chain(m, room, part, m[step + INDEX_OF], at)
        if chain == 0:
            return np.int64(0)
        if not backward:
            return _next_entry(m, step, m[chain + HEAD])
        return _next_entry(m, step, last_in_chain(m, chain, m[step + LINK_OF], _times(m, step)[1]))
    low, high = _times(m, step)
    return _next_entry(m, step, last_before(m, part, slot, high) if backward else first_after(m, part, slot, low))


@device_no_refcount
def _narrow(m: Int64s, room: Int64s, part: Number, base: Number, last_own: Number) -> bool:
    """Compute the time range of each slot that leaves events for the slots around it; return False if one is empty.

    Events that lost their predecessors are removed, if that depends on no value or on the same one in all slots. So a
    search in a sequence of instants in which only times and values of the new event decide has no dead ends.
    """
    low, high, chains, links = m[LOW], m[HIGH], m[CURRENT], m[SOME]
    slots = m[COUNT] - 1 if last_own >= 0 else m[COUNT]
    new = m[part + PARTITION + (m[COUNT] - 1) * SIDE + NEWEST]
    m[low] = -NEVER
    tied, alike = np.int64(-1), True
    for slot in range(slots):
        column = np.int64(-1)
        entry = m[part + PARTITION + slot * SIDE + OLDEST]
        m[chains + slot], m[links + slot] = 0, LINK
        for step in range(base, base + m[COUNT] * STEPPED, STEPPED):
            by_new = m[step + INDEX_OF] >= 0 and last_own >= 0 and m[step + OTHER] == last_own
            if m[step + SLOT_OF] == slot and by_new:
                column = m[step + OTHER_COLUMN]
                at = m[new + EVENT] * m[WIDTH] + 2 * column
                chain, _ = find_chain(m, room, part, m[step + INDEX_OF], at)
                entry = m[chain + HEAD] if chain != 0 else np.int64(0)
                m[chains + slot], m[links + slot] = chain, m[step + LINK_OF]
        tied = column if slot == 0 else tied
        by_time = alike and tied < 0  # its predecessors depend on no value
        alike = alike and column == tied
        while entry != 0 and m[entry + EVENT_START] <= m[low + slot]:
            useless, entry = entry, m[entry + m[links + slot]]
            m[LOOKED] += 1
            if alike or by_time:
                remove_entry(m, useless)
        if entry == 0:
            return False
        if slot + 1 < m[COUNT]:
            m[low + slot + 1] = m[entry + EVENT_END]
    if m[BLOCK_COUNT] > 0:
        return _bound_blocks(m, room, part)
    bound = m[new + EVENT_START] if last_own >= 0 else np.int64(NEVER)
    for slot in range(slots - 1, -1, -1):
        chain = m[chains + slot]
        entry = m[part + PARTITION + slot * SIDE + NEWEST] if chain == 0 else m[chain + TAIL]
        while entry != 0 and m[entry + EVENT_END] >= bound:
            m[LOOKED] += 1
            entry = m[entry + m[links + slot] + 1]
        if entry == 0:
            return False
        m[high + slot] = bound
        bound = m[entry + EVENT_END]
    return True


@device_no_refcount
def _bound_blocks(m: Int64s, room: Int64s, part: Number) -> bool:
    """Compute the time before which each block must end so that later ones can be filled.

    Return False if a block cannot be filled.
    """
    bound: Number = np.int64(NEVER)
    for number in range(m[BLOCK_COUNT] - 1, -1, -1):
        block = m[BLOCKS] + number * BLOCK
        m[m[HIGH] + m[block + FIRST_SLOT] : m[HIGH] + m[block + LAST_SLOT] + 1] = bound
        bound = latest_start(m, room, part, block, bound)
        if bound == -NEVER:
            return False
        if m[LASTING_EVENTS] == 0:
            m[m[HIGH] + m[block + FIRST_SLOT]] = bound + 1
    return True


@device_no_refcount
def search(
    m: Int64s, room: Int64s, part: Number, way: Number, last_own: Number, out: Int64s, counting: bool, until: Number
) -> Number:
    """Find the sets of a partition. A new event must be bound at its slot `last_own`, unless it is bound already.

    It pauses after `until` entries.
    """
    count, current, some, holds_new = m[COUNT], m[CURRENT], m[SOME], m[HOLDS_NEW]
    base = m[STEPS] + way * count * STEPPED
    depth, entering = m[DEPTH], m[DEPTH] < 0
    if entering:
        if m[KIND] != SEQUENCE:
            m[m[LOW] : m[LOW] + count] = -NEVER
            m[m[HIGH] : m[HIGH] + count] = NEVER
        elif not _narrow(m, room, part, base, last_own):
            m[some] = 0
            return DONE
        m[m[BOUND] : m[BOUND] + count] = -1
        m[m[HELD] : m[HELD] + count] = 0
        m[holds_new] = 0
        depth = np.int64(0)
    while depth >= 0:
        step = base + depth * STEPPED
        slot = m[step + SLOT_OF]
        if entering:
            m[some + depth] = 0
            must = slot == last_own and m[holds_new + depth] == 0
            m[current + depth] = _first_entry(m, room, part, step, must)
            entering = False
        policy = m[m[SLOTS] + slot * PARTICIPANT + REPEATED]
        entry = m[current + depth]
        if entry == 0 or (m[some + depth] != 0 and (m[SINGLE] != 0 or policy in (FIRST, LAST))):
            m[m[BOUND] + slot], m[m[HELD] + slot] = -1, 0
            # If a block has no candidate at all, other choices for earlier steps cannot help.
            depth = np.int64(-1) if m[step + OPENS_BLOCK] != 0 and m[some + depth] == 0 else depth - 1
            if depth < 0:
                break
            m[some + depth] |= m[some + depth + 1]
            step = base + depth * STEPPED
            slot = m[step + SLOT_OF]
        else:
            m[m[BOUND] + slot], m[m[HELD] + slot] = m[entry + EVENT], entry
            if holds(m, room, m[step + QUICK_AT], m[step + QUICK_END], m[step + CODE_AT], m[step + CODE_END]):
                if depth + 1 < count:
                    depth += 1
                    m[holds_new + depth] = m[holds_new + depth - 1] | (1 if m[entry + EVENT] == m[NEW] else 0)
                    entering = True
                    continue
                status = emit(m, out, counting)
                if status != DONE:
                    m[DEPTH] = depth
                    return status
                m[some + depth] = 1
        # Continue with the entry after the bound one.
        entry = m[current + depth]
        m[m[BOUND] + slot], m[m[HELD] + slot] = -1, 0
        link = m[step + LINK_OF] + (1 if m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST else 0)
        bound_new = slot == last_own and m[holds_new + depth] == 0
        m[current + depth] = np.int64(0) if bound_new else _next_entry(m, step, m[entry + link])
        if m[LOOKED] > until:
            m[DEPTH] = depth
            return PAUSE
    m[DEPTH] = -1
    return DONE
