"""Execution of situations: process arriving events and write the selected sets.

A selection is a search for sets with an event for each slot, or in `any` a choice among single events. A partition that
closes without a candidate may be an absence.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.machine.machine import CHOSEN, Machine
from weft.kernels.memory.room import lend
from weft.kernels.situations.blocks import SLOT_OF, STEPPED, has_candidates
from weft.kernels.situations.found_sets import DONE, FULL, GROW, PAUSE, emit
from weft.kernels.situations.participants import (
    ARRIVED,
    BOUND,
    CLASS_AT,
    CLASS_SLOTS,
    COUNT,
    COUNTS_EMPTY,
    CURRENT,
    DEFERRED,
    DEPTH,
    END,
    EVENT,
    EVERY,
    FILLED,
    FIRST,
    FOUND,
    GONE,
    HELD,
    KEY,
    KEY_COUNT,
    KEYS,
    KIND,
    KNOWN,
    LAST,
    LAST_NUMBER,
    LENGTH,
    LIMIT,
    LINK,
    LOOKED,
    NEVER,
    NEW_CLASS,
    NEWEST,
    NEXT_TODO,
    NUMBER,
    OLDEST,
    ORIGIN,
    OVERRIDE,
    PARTICIPANT,
    PARTITION,
    PLACE,
    REPEATED,
    RUNS,
    SEEN_COUNT,
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
    TAKEN,
    TODO,
    WORK,
    Int64s,
    Number,
    clear_slots,
    consume,
)
from weft.kernels.situations.partitions import (
    ABSENCE,
    ALL,
    ANY,
    ARRIVING,
    CLOSE,
    ENDS,
    FINISH,
    FIRST_PART,
    FORGETS,
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
from weft.kernels.situations.search import search

ABSENT = 4  # numbers of an absence: key, start, end, origin


# ---------------------------------------------------------------- one slot of all


@device_no_refcount
def _extreme(m: Int64s, part: Number, policy: Number) -> Number:
    """Return the earliest entry of all slots under FIRST, or the latest under LAST.

    Under EVERY, return the earliest of the other slots.
    """
    best = np.int64(0)
    for slot in range(m[COUNT]):
        repeated = m[m[SLOTS] + slot * PARTICIPANT + REPEATED]
        if repeated == policy or (policy == EVERY and repeated == OVERRIDE):
            entry = m[part + PARTITION + slot * SIDE + (NEWEST if policy == LAST else OLDEST)]
            # Of one event in several slots: the first slot, but the last slot under LAST.
            if entry != 0 and (best == 0 or (m[entry + PLACE] >= m[best + PLACE]) == (policy == LAST)):
                best = entry
    return best


@device_no_refcount
def _earlier(m: Int64s, one: Number, other: Number) -> Number:
    """Return the earlier of two entries, each of which may be 0; of one event, that in the smaller slot."""
    if one == 0 or other == 0:
        return one + other
    if m[one + PLACE] == m[other + PLACE]:
        return one if m[one + SLOT] < m[other + SLOT] else other
    return one if m[one + PLACE] < m[other + PLACE] else other


@device_no_refcount
def _alternatives(m: Int64s, part: Number, out: Int64s, counting: bool) -> Number:
    """Select sets of one event each: the earliest under FIRST, the latest under LAST, and every remaining one."""
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
            status = emit(m, out, counting)
            if status != DONE:
                return status
            m[m[SOME]] = 1
        m[m[CURRENT]] = m[entry + LINK]
    m[DEPTH] = -1
    return DONE


# ---------------------------------------------------------------- work


@device_no_refcount
def _select(
    m: Int64s, room: Int64s, part: Number, immediate: bool, out: Int64s, counting: bool, until: Number
) -> Number:
    """Make one selection in a partition; the first item of SOME says whether there was a set."""
    if m[KIND] == ANY:
        return _alternatives(m, part, out, counting)
    if m[DEPTH] < 0:
        m[m[SOME]] = 0
        if m[part + FILLED] < m[COUNT] or (m[KIND] == ALL and not has_candidates(m, room, part)):
            return DONE
    way: Number = np.int64(0)
    last_own: Number = np.int64(-1)
    if immediate and m[KIND] == SEQUENCE:
        # No stored event is after the new one.
        last_own = m[COUNT] - 1
        way = m[COUNT]
    elif immediate:
        # The new event must be a member: at the latest it is bound in the last of its slots.
        begin = m[CLASS_SLOTS] + m[m[CLASS_AT] + m[NEW_CLASS]]
        end = m[CLASS_SLOTS] + m[m[CLASS_AT] + m[NEW_CLASS] + 1]
        for depth in range(m[COUNT]):
            slot = m[m[STEPS] + depth * STEPPED + SLOT_OF] if end - begin > 1 else depth
            for k in range(begin, end):
                if m[k] == 2 * slot + 1:
                    last_own = slot
        if end - begin == 1:
            way = 1 + last_own
    return search(m, room, part, way, last_own, out, counting, until)


@device_no_refcount
def _write_absence(
    m: Int64s, out: Int64s, counting: bool, key: Number, start: Number, end: Number, origin: Number
) -> bool:
    """Write a partition without a candidate; return False if there is no space."""
    if not counting:
        at = ABSENT * m[FOUND]
        if at + ABSENT > len(out):
            return False
        out[at], out[at + 1], out[at + 2], out[at + 3] = key, start, end, origin
    m[FOUND] += 1
    return True


@device_no_refcount
def _work(m: Int64s, room: Int64s, out: Int64s, counting: bool, until: Number) -> Number:
    """Do the selections that the current event requires."""
    while m[WORK] != 0:
        part = m[WORK]
        closing = m[part + TODO] & SELECT == 0
        again = m[KIND] != ABSENCE and m[part + TAKEN] == 0 and (not closing or m[DEFERRED] != 0)
        while again:
            status = _select(m, room, part, not closing, out, counting, until)
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
        # An event that completed a sequence, or was selected alone, does so only once.
        whole = closing or m[KIND] == ANY
        if whole or m[KIND] == SEQUENCE:
            clear_slots(m, part, np.int64(0) if whole else m[COUNT] - 1, m[COUNT] - 1)
        m[part + TODO] &= CLOSE if not closing else 0
        if m[part + TODO] == 0:
            m[WORK] = m[part + NEXT_TODO]
            if closing:
                forget(m, part)
    return DONE


@device_no_refcount
def _close_window(m: Int64s, own: Number, out: Int64s, counting: bool) -> bool:
    """Close the next window of a key, and write it if it had no candidate; return False if there is no space."""
    number, part = m[own + NEXT_NUMBER], m[own + FIRST_PART]
    known = part != 0 and m[part + NUMBER] == number
    taken = known and m[part + TAKEN] != 0
    if not taken:
        start = number * m[STEP]
        if not _write_absence(m, out, counting, m[SWEPT], start, start + m[LENGTH], m[own + KEY_ORIGIN]):
            return False
    else:
        m[m[RUNS] + 1 + m[SWEPT]] = number + 1
    if known:
        forget(m, part)
    m[own + NEXT_NUMBER] = number + 1
    return True


@device_no_refcount
def _stretch_end(m: Int64s, own: Number, bound: Number, ends: bool) -> Number:
    """Return the last window of the next range of a long run, which is emitted as one, or NEVER if it is still open.

    With `ends` the run has no window after the bound.
    """
    begin, number = m[m[RUNS] + 1 + m[SWEPT]], m[own + NEXT_NUMBER]
    size = m[m[RUNS]]
    while size <= number - begin:
        size = 2 * size if size <= NEVER // 2 else np.int64(NEVER)
    end = begin + size - 1
    part = m[own + FIRST_PART]
    while part != 0 and m[part + NUMBER] <= bound and m[part + TAKEN] == 0:
        forget(m, part)
        part = m[own + FIRST_PART]
    if part != 0 and m[part + TAKEN] != 0:
        end = min(end, m[part + NUMBER] - 1)
    if ends:
        end = min(end, bound)
    return end if end <= bound else np.int64(NEVER)


@device_no_refcount
def _sweep_windows(m: Int64s, last: Number, out: Int64s, counting: bool, finish: bool) -> Number:
    """Close the windows up to a number, of all keys, including those without events."""
    while m[SWEPT] < m[KEY_COUNT]:
        own = m[KEYS] + m[SWEPT] * KEYED
        bound, ends = last, finish
        if m[COUNTS_EMPTY] == FORGETS:
            known = m[m[KNOWN] + 1 + m[SWEPT]] // m[STEP]
            bound, ends = min(last, known), finish or known <= last
        while m[own + NEXT_NUMBER] <= bound:
            number = m[own + NEXT_NUMBER]
            if number - m[m[RUNS] + 1 + m[SWEPT]] < m[m[RUNS]]:
                if not _close_window(m, own, out, counting):
                    return FULL
                continue
            end = _stretch_end(m, own, bound, ends)
            if end == NEVER:
                break
            if end < number:  # it ended with the window before
                m[m[RUNS] + 1 + m[SWEPT]] = number
                continue
            start, stop = number * m[STEP], end * m[STEP] + m[LENGTH]
            if not _write_absence(m, out, counting, m[SWEPT], start, stop, m[own + KEY_ORIGIN]):
                return FULL
            m[own + NEXT_NUMBER] = end + 1
        m[SWEPT] += 1
    m[SWEPT] = 0
    return DONE


@bare_kernel
def advance_situation(
    m: Int64s, room: Int64s, machine: Machine, arriving: Int64s, out: Int64s, counting: bool, most_visited: int
) -> Number:
    """Process events until all are done or something must be enlarged; call it again to resume.

    With `counting` no output is written. Input of conditions is registered in the array table. It pauses after about
    `most_visited` entries.
    """
    until = m[LOOKED] + most_visited
    lend(room, 0, machine)
    lend(room, CHOSEN, (m[m[BOUND] :],))
    while True:
        status = _work(m, room, out, counting, until)
        if status != DONE:
            return status
        at = m[ARRIVED] * ARRIVING
        if at == len(arriving):
            return DONE
        if m[LOOKED] > until:
            return PAUSE
        if m[COUNTS_EMPTY] != 0:
            finish = arriving[at + OF_KIND] == FINISH
            last = min((arriving[at + ENDS] - (0 if finish else m[LENGTH])) // m[STEP], m[LAST_NUMBER])
            if m[SWEPT] > 0 or finish or last != m[LIMIT]:
                status = _sweep_windows(m, last, out, counting, finish)
                if status != DONE:
                    return status
                m[LIMIT] = last
        if not room_for(m, arriving, at):
            return GROW
        if m[DEFERRED] == 0:  # at another event no set can be the same
            m[STAMP] += 1
            m[SEEN_COUNT] = 0
        arrive(m, room, arriving, at)
