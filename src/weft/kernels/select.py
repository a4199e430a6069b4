"""The search for matching sets in a partition: slot by slot, each clause tested as soon as its variables are bound.

At a slot under `first` or `last` the search stops after the first event that leads to a set: the walk is in the order
in which candidates stand, so nothing later can come before. What is found is written out; when that is full the
search stops where it is and goes on there when it is called again.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.clauses import holds
from weft.kernels.jit import bare, kernel
from weft.kernels.participants import (
    ARRIVED,
    BOUND,
    CLASS_AT,
    CLASS_SLOTS,
    CONSUMES,
    COUNT,
    COUNTS_EMPTY,
    CURRENT,
    DEFERRED,
    DEPTH,
    END,
    EVENT,
    EVENT_END,
    EVENT_START,
    EVERY,
    FILLED,
    FIRST,
    FOUND,
    GONE,
    HEAD,
    HELD,
    HIGH,
    HOLDS_NEW,
    KEY,
    KEY_COUNT,
    KEYS,
    KIND,
    LAST,
    LAST_NUMBER,
    LENGTH,
    LIMIT,
    LINK,
    LOW,
    NEVER,
    NEW,
    NEW_CLASS,
    NEWEST,
    NEXT_TODO,
    NUMBER,
    OLDEST,
    ORIGIN,
    OVERLAPS,
    OVERRIDE,
    PARTICIPANT,
    PARTITION,
    PLACE,
    REPEATED,
    SEEN,
    SEEN_COUNT,
    SEEN_SIZE,
    SIDE,
    SINGLE,
    SLOT,
    SLOTS,
    SOME,
    STAMP,
    START,
    STEP,
    STEPS,
    SWEPT,
    TAIL,
    TAKEN,
    TODO,
    WIDTH,
    WORK,
    Facts,
    Int64s,
    Number,
    clear_slots,
    consume,
    find_chain,
    mark_consumed,
    remove_entry,
)
from weft.kernels.partitions import (
    ABSENCE,
    ANY,
    ARRIVING,
    CLOSE,
    ENDS,
    FINISH,
    FIRST_PART,
    KEY_ORIGIN,
    KEYED,
    NEXT_NUMBER,
    OF_KIND,
    SELECT,
    SEQUENCE,
    arrive,
    forget,
    room_for,
)

DONE, FULL, GROW, CROWDED = range(4)  # CROWDED: the table of sets that were selected has no room
# Fields of a step: its slot, the index that is looked up (-1: none) and whose value there, where entries are linked,
# the bound slots before and after it in a sequence (-1: none), whether other slots may hold the same event, its tests.
SLOT_OF, INDEX_OF, OTHER, OTHER_COLUMN, LINK_OF, AFTER, BEFORE, SHARES = range(8)
QUICK_AT, QUICK_END, CODE_AT, CODE_END = range(8, 12)
STEPPED = 12
ABSENT = 4  # numbers of an absence: key, start, end, origin


# ---------------------------------------------------------------- sets


@bare
def _is_new(m: Int64s) -> bool:
    """Whether the set that is bound was not selected before, by the event at hand or at all; it is remembered."""
    first, second = np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344)
    least = np.int64(NEVER - 1)
    for slot in range(m[COUNT]):
        entry = m[m[HELD] + slot]
        place = np.int64(-1)
        if entry != 0:
            place = m[entry + PLACE]
            least = min(least, place)
        first = (first ^ np.uint64(place)) * np.uint64(0x9E3779B97F4A7C15)
        first ^= first >> np.uint64(29)
        second = (second ^ np.uint64(place)) * np.uint64(0xBF58476D1CE4E5B9)
        second ^= second >> np.uint64(32)
    one, other = np.int64(first), np.int64(second)
    mark = least + 1 if m[DEFERRED] != 0 else m[STAMP]
    k = np.int64(first >> np.uint64(1)) % m[SEEN_SIZE]
    while m[m[SEEN] + 3 * k + 2] != 0 and (m[DEFERRED] != 0 or m[m[SEEN] + 3 * k + 2] == mark):
        at = m[SEEN] + 3 * k
        if m[at] == one and m[at + 1] == other:
            return False
        k = (k + 1) % m[SEEN_SIZE]
    at = m[SEEN] + 3 * k
    m[at], m[at + 1], m[at + 2] = one, other, mark
    m[SEEN_COUNT] += 1
    return True


@kernel
def place_seen(sets: Int64s, table: Int64s) -> None:
    """Put sets that were selected into an empty table."""
    for k in range(0, len(sets), 3):
        at = np.int64(np.uint64(sets[k]) >> np.uint64(1)) % (len(table) // 3)
        while table[3 * at + 2] != 0:
            at = (at + 1) % (len(table) // 3)
        table[3 * at], table[3 * at + 1], table[3 * at + 2] = sets[k], sets[k + 1], sets[k + 2]


@bare
def _emit(m: Int64s, out: Int64s, counting: bool) -> Number:
    """Write out the set that is bound and note what it consumes; DONE, or what must be done before that can be."""
    if not counting and (m[FOUND] + 1) * m[COUNT] > len(out):
        return FULL
    if m[OVERLAPS] != 0 and 2 * m[SEEN_COUNT] >= m[SEEN_SIZE]:
        return CROWDED
    if m[OVERLAPS] == 0 or _is_new(m):
        if not counting:
            for slot in range(m[COUNT]):
                out[m[FOUND] * m[COUNT] + slot] = m[m[BOUND] + slot]
        m[FOUND] += 1
    for slot in range(m[COUNT]):
        entry = m[m[HELD] + slot]
        if entry != 0 and m[m[SLOTS] + slot * PARTICIPANT + CONSUMES] != 0:
            mark_consumed(m, entry)
    return DONE


# ---------------------------------------------------------------- all slots


@bare
def _next_entry(m: Int64s, step: Number, entry: Number) -> Number:
    """From an entry on, in the order of the slot's policy: the one that may be bound next, 0 when there is none."""
    slot = m[step + SLOT_OF]
    backward = m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST
    link = m[step + LINK_OF] + (1 if backward else 0)
    low, high = m[m[LOW] + slot], m[m[HIGH] + slot]
    if m[step + AFTER] >= 0:
        low = max(low, m[m[m[HELD] + m[step + AFTER]] + EVENT_END])
    if m[step + BEFORE] >= 0:
        high = min(high, m[m[m[HELD] + m[step + BEFORE]] + EVENT_START])
    while entry != 0:
        end = m[entry + EVENT_END]
        if (end <= low) if backward else (end >= high):  # entries stand by end
            return np.int64(0)
        free = m[entry + EVENT_START] > low and end < high
        if m[step + SHARES] != 0:
            for other in range(m[COUNT]):
                free = free and (other == slot or m[m[BOUND] + other] != m[entry + EVENT])
        if free:
            break
        entry = m[entry + link]
    return entry


@bare
def _first_entry(m: Int64s, facts: Facts, part: Number, step: Number, must: bool) -> Number:
    """The first entry that a step may bind; with `must` that is the new event's or none."""
    slot = m[step + SLOT_OF]
    side = part + PARTITION + slot * SIDE
    entry = m[side + NEWEST]
    if must:
        return entry if entry != 0 and m[entry + EVENT] == m[NEW] else np.int64(0)
    backward = m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST
    if m[step + INDEX_OF] >= 0:
        at = m[m[BOUND] + m[step + OTHER]] * m[WIDTH] + 2 * m[step + OTHER_COLUMN]
        chain, _ = find_chain(m, facts, part, m[step + INDEX_OF], at)
        if chain == 0:
            return np.int64(0)
        entry = m[chain + (TAIL if backward else HEAD)]
    elif not backward:
        entry = m[side + OLDEST]
    return _next_entry(m, step, entry)


@bare
def _narrow(m: Int64s, facts: Facts, part: Number, base: Number, last_own: Number) -> bool:
    """Between which times an event of each slot must be to leave others before and after it; False: there is none.

    What nothing is before any more is forgotten. So a search in a sequence of instants in which only times and values
    of the new event decide meets no dead ends.
    """
    low, high, chains, links = m[LOW], m[HIGH], m[CURRENT], m[SOME]
    slots = m[COUNT] - 1 if last_own >= 0 else m[COUNT]
    new = m[part + PARTITION + (m[COUNT] - 1) * SIDE + NEWEST]
    m[low] = -NEVER
    for slot in range(slots):
        entry = m[part + PARTITION + slot * SIDE + OLDEST]
        m[chains + slot], m[links + slot] = 0, LINK
        for step in range(base, base + m[COUNT] * STEPPED, STEPPED):
            by_new = m[step + INDEX_OF] >= 0 and last_own >= 0 and m[step + OTHER] == last_own
            if m[step + SLOT_OF] == slot and by_new:
                at = m[new + EVENT] * m[WIDTH] + 2 * m[step + OTHER_COLUMN]
                chain, _ = find_chain(m, facts, part, m[step + INDEX_OF], at)
                entry = m[chain + HEAD] if chain != 0 else np.int64(0)
                m[chains + slot], m[links + slot] = chain, m[step + LINK_OF]
        while entry != 0 and m[entry + EVENT_START] <= m[low + slot]:
            useless, entry = entry, m[entry + m[links + slot]]
            remove_entry(m, useless)
        if entry == 0:
            return False
        if slot + 1 < m[COUNT]:
            m[low + slot + 1] = m[entry + EVENT_END]
    bound = m[new + EVENT_START] if last_own >= 0 else np.int64(NEVER)
    for slot in range(slots - 1, -1, -1):
        chain = m[chains + slot]
        entry = m[part + PARTITION + slot * SIDE + NEWEST] if chain == 0 else m[chain + TAIL]
        while entry != 0 and m[entry + EVENT_END] >= bound:
            entry = m[entry + m[links + slot] + 1]
        if entry == 0:
            return False
        m[high + slot] = bound
        bound = m[entry + EVENT_END]
    return True


@bare
def _search(
    m: Int64s, facts: Facts, part: Number, way: Number, last_own: Number, out: Int64s, counting: bool
) -> Number:
    """Find the sets of a partition. A new event must be bound at its slot `last_own`, if it was not before."""
    count, current, some, holds_new = m[COUNT], m[CURRENT], m[SOME], m[HOLDS_NEW]
    base = m[STEPS] + way * count * STEPPED
    depth, entering = m[DEPTH], m[DEPTH] < 0
    if entering:
        if m[KIND] != SEQUENCE:
            m[m[LOW] : m[LOW] + count] = -NEVER
            m[m[HIGH] : m[HIGH] + count] = NEVER
        elif not _narrow(m, facts, part, base, last_own):
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
            m[current + depth] = _first_entry(m, facts, part, step, must)
            entering = False
        policy = m[m[SLOTS] + slot * PARTICIPANT + REPEATED]
        entry = m[current + depth]
        if entry == 0 or (m[some + depth] != 0 and (m[SINGLE] != 0 or policy in (FIRST, LAST))):
            m[m[BOUND] + slot], m[m[HELD] + slot] = -1, 0
            depth -= 1
            if depth < 0:
                break
            m[some + depth] |= m[some + depth + 1]
            step = base + depth * STEPPED
            slot = m[step + SLOT_OF]
        else:
            m[m[BOUND] + slot], m[m[HELD] + slot] = m[entry + EVENT], entry
            if holds(m, facts, m[step + QUICK_AT], m[step + QUICK_END], m[step + CODE_AT], m[step + CODE_END]):
                if depth + 1 < count:
                    depth += 1
                    m[holds_new + depth] = m[holds_new + depth - 1] | (1 if m[entry + EVENT] == m[NEW] else 0)
                    entering = True
                    continue
                status = _emit(m, out, counting)
                if status != DONE:
                    m[DEPTH] = depth
                    return status
                m[some + depth] = 1
        # Go on with the entry after the one that was bound.
        entry = m[current + depth]
        m[m[BOUND] + slot], m[m[HELD] + slot] = -1, 0
        link = m[step + LINK_OF] + (1 if m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == LAST else 0)
        bound_new = slot == last_own and m[holds_new + depth] == 0
        m[current + depth] = np.int64(0) if bound_new else _next_entry(m, step, m[entry + link])
    m[DEPTH] = -1
    return DONE


# ---------------------------------------------------------------- one slot of all


@bare
def _extreme(m: Int64s, part: Number, policy: Number) -> Number:
    """The earliest entry of all slots under FIRST, or the latest of those under LAST; EVERY: the earliest of others."""
    best = np.int64(0)
    for slot in range(m[COUNT]):
        repeated = m[m[SLOTS] + slot * PARTICIPANT + REPEATED]
        if repeated == policy or (policy == EVERY and repeated == OVERRIDE):
            entry = m[part + PARTITION + slot * SIDE + (NEWEST if policy == LAST else OLDEST)]
            # Of one event in several slots: the first slot, but the last slot under LAST.
            if entry != 0 and (best == 0 or (m[entry + PLACE] >= m[best + PLACE]) == (policy == LAST)):
                best = entry
    return best


@bare
def _earlier(m: Int64s, one: Number, other: Number) -> Number:
    """Which of two entries, each of which may be 0, is earlier; of one event, that in the smaller slot."""
    if one == 0 or other == 0:
        return one + other
    if m[one + PLACE] == m[other + PLACE]:
        return one if m[one + SLOT] < m[other + SLOT] else other
    return one if m[one + PLACE] < m[other + PLACE] else other


@bare
def _alternatives(m: Int64s, part: Number, out: Int64s, counting: bool) -> Number:
    """The sets of one event each: the earliest under FIRST, the latest under LAST, and all others."""
    earliest, latest = _extreme(m, part, np.int64(FIRST)), _extreme(m, part, np.int64(LAST))
    only = _earlier(m, _earlier(m, earliest, latest), _extreme(m, part, np.int64(EVERY)))
    if m[DEPTH] < 0:
        m[DEPTH] = m[m[SOME]] = 0
        m[m[CURRENT]] = m[part + PARTITION + OLDEST]
    while m[DEPTH] < m[COUNT]:
        slot, entry = m[DEPTH], m[m[CURRENT]]
        if entry == 0:
            m[DEPTH] += 1
            if m[DEPTH] < m[COUNT]:
                m[m[CURRENT]] = m[part + PARTITION + m[DEPTH] * SIDE + OLDEST]
            continue
        policy = m[m[SLOTS] + slot * PARTICIPANT + REPEATED]
        chosen = entry == (earliest if policy == FIRST else latest if policy == LAST else entry)
        if chosen and (m[SINGLE] == 0 or entry == only):
            m[m[BOUND] : m[BOUND] + m[COUNT]] = -1
            m[m[HELD] : m[HELD] + m[COUNT]] = 0
            m[m[BOUND] + slot], m[m[HELD] + slot] = m[entry + EVENT], entry
            status = _emit(m, out, counting)
            if status != DONE:
                return status
            m[m[SOME]] = 1
        m[m[CURRENT]] = m[entry + LINK]
    m[DEPTH] = -1
    return DONE


# ---------------------------------------------------------------- work


@bare
def _select(m: Int64s, facts: Facts, part: Number, immediate: bool, out: Int64s, counting: bool) -> Number:
    """One selection in a partition; the first of SOME tells whether there was a set."""
    if m[KIND] == ANY:
        return _alternatives(m, part, out, counting)
    if m[DEPTH] < 0:
        m[m[SOME]] = 0
        if m[part + FILLED] < m[COUNT]:
            return DONE
    way: Number = np.int64(0)
    last_own: Number = np.int64(-1)
    if immediate and m[KIND] == SEQUENCE:
        # Nothing that has arrived is after the new event.
        last_own = m[COUNT] - 1
        way = m[COUNT]
    elif immediate:
        # The new event must be a member: if nothing else it is bound in that of its slots which comes last.
        begin = m[CLASS_SLOTS] + m[m[CLASS_AT] + m[NEW_CLASS]]
        end = m[CLASS_SLOTS] + m[m[CLASS_AT] + m[NEW_CLASS] + 1]
        for depth in range(m[COUNT]):
            slot = m[m[STEPS] + depth * STEPPED + SLOT_OF] if end - begin > 1 else depth
            for k in range(begin, end):
                if m[k] == 2 * slot + 1:
                    last_own = slot
        if end - begin == 1:
            way = 1 + last_own
    return _search(m, facts, part, way, last_own, out, counting)


@bare
def _write_absence(
    m: Int64s, out: Int64s, counting: bool, key: Number, start: Number, end: Number, origin: Number
) -> bool:
    """Write out a partition without a candidate, if there is room."""
    if not counting:
        at = ABSENT * m[FOUND]
        if at + ABSENT > len(out):
            return False
        out[at], out[at + 1], out[at + 2], out[at + 3] = key, start, end, origin
    m[FOUND] += 1
    return True


@bare
def _work(m: Int64s, facts: Facts, out: Int64s, counting: bool) -> Number:
    """Do what the event at hand asked for."""
    while m[WORK] != 0:
        part = m[WORK]
        closing = m[part + TODO] & SELECT == 0
        again = m[KIND] != ABSENCE and m[part + TAKEN] == 0 and (not closing or m[DEFERRED] != 0)
        while again:
            status = _select(m, facts, part, not closing, out, counting)
            if status != DONE:
                return status
            again = closing and m[GONE] != 0
            consume(m)
            if m[m[SOME]] != 0 and m[SINGLE] != 0:
                m[part + TAKEN] = 1
                clear_slots(m, part, np.int64(0), m[COUNT] - 1)
                again = False
        key, start, end, origin = m[part + KEY], m[part + START], m[part + END], m[part + ORIGIN]
        absent = closing and m[KIND] == ABSENCE and m[part + TAKEN] == 0
        if absent and not _write_absence(m, out, counting, key, start, end, origin):
            return FULL
        # What completes a sequence at once never does so again, nor does an event alone.
        whole = closing or m[KIND] == ANY
        if whole or m[KIND] == SEQUENCE:
            clear_slots(m, part, np.int64(0) if whole else m[COUNT] - 1, m[COUNT] - 1)
        m[part + TODO] &= CLOSE if not closing else 0
        if m[part + TODO] == 0:
            m[WORK] = m[part + NEXT_TODO]
            if closing:
                forget(m, part)
    return DONE


@bare
def _sweep_windows(m: Int64s, last: Number, out: Int64s, counting: bool) -> Number:
    """Close the windows up to a number, of all keys, those without events too."""
    while m[SWEPT] < m[KEY_COUNT]:
        own = m[KEYS] + m[SWEPT] * KEYED
        while m[own + NEXT_NUMBER] <= last:
            number, part = m[own + NEXT_NUMBER], m[own + FIRST_PART]
            known = part != 0 and m[part + NUMBER] == number
            if not known or m[part + TAKEN] == 0:
                start, origin = number * m[STEP], m[own + KEY_ORIGIN]
                if not _write_absence(m, out, counting, m[SWEPT], start, start + m[LENGTH], origin):
                    return FULL
            if known:
                forget(m, part)
            m[own + NEXT_NUMBER] = number + 1
        m[SWEPT] += 1
    m[SWEPT] = 0
    return DONE


@kernel
def advance_situation(m: Int64s, facts: Facts, arriving: Int64s, out: Int64s, counting: bool) -> Number:
    """Take events until all are done or the answer says what is missing; called again it goes on from there.

    With `counting` nothing is written.
    """
    while True:
        status = _work(m, facts, out, counting)
        if status != DONE:
            return status
        at = m[ARRIVED] * ARRIVING
        if at == len(arriving):
            return DONE
        if m[COUNTS_EMPTY] != 0:
            finish = arriving[at + OF_KIND] == FINISH
            last = min((arriving[at + ENDS] - (0 if finish else m[LENGTH])) // m[STEP], m[LAST_NUMBER])
            if m[SWEPT] > 0 or last != m[LIMIT]:
                status = _sweep_windows(m, last, out, counting)
                if status != DONE:
                    return status
                m[LIMIT] = last
        if not room_for(m, arriving, at):
            return GROW
        if m[DEFERRED] == 0:  # at another event no set can be the same
            m[STAMP] += 1
            m[SEEN_COUNT] = 0
        arrive(m, facts, arriving, at)
