"""The partitions of a situation's context: opened, filled and closed as events arrive and time passes.

An event schedules work in the partitions: a selection, or closing. That work is done before the next event arrives.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import bare_kernel, device_no_refcount, kernel
from weft.kernels.situations.blocks import ends_candidate, note_candidate
from weft.kernels.situations.participants import (
    ARRIVED,
    BLOCK_FROM,
    CHAIN,
    CHAINS,
    CHAINS_FREE,
    CLASS_AT,
    CLASS_SLOTS,
    CONTEXT,
    COUNT,
    COUNTS_EMPTY,
    DEFERRED,
    EAGER,
    EARLIER,
    END,
    ENTRIES_FREE,
    ENTRY_SIZE,
    FIRST_END,
    FIRST_PLACE,
    FREE_PART,
    INDEXED,
    KEY,
    KEY_COUNT,
    KEYS,
    KIND,
    KNOWN,
    LATER,
    LEAST_END,
    LEFT,
    LENGTH,
    LIMIT,
    LINK,
    NEEDED,
    NEEDED_CHAINS,
    NEVER,
    NEW,
    NEW_CLASS,
    NEXT_TODO,
    NUMBER,
    OLDEST,
    ORIGIN,
    OVERRIDE,
    PART_SIZE,
    PARTICIPANT,
    PARTITION,
    PARTS_FREE,
    REPEATED,
    RIGHT,
    RUNS,
    SHELF,
    SHELVES_FREE,
    SIDE,
    SLOTS,
    START,
    STEP,
    TABLE_SIZE,
    TAKEN,
    TIMERS,
    TODO,
    TOP,
    WORK,
    Int64s,
    Number,
    add_entry,
    clear_slots,
    remove_entry,
)

# Fields of a key: its open partitions; of windows that may be empty the first that has not closed, and the origin.
FIRST_PART, LAST_PART, OPEN_PARTS, NEXT_NUMBER, KEY_ORIGIN = range(5)
KEYED = 5
SEQUENCE, ALL, ANY, ABSENCE = range(4)  # kinds
WHOLE, WINDOWS, UNTIL, LASTING = range(4)  # contexts
# Roles of an event besides that of a participant, as bits. FINISH: no event; closes what ends with the input.
OPENS, CLOSES, FINISH = 1, 2, 4
SELECT, CLOSE = 1, 2  # work, as bits
FORGETS = 2  # of COUNTS_EMPTY: windows without events count for as long as their key is known
# Fields of an arriving event: its class (-1: no event, but the passing of time), its number among the
# stored events, its place in the input of the situation, the first position it consists of.
OF_CLASS, OF_KEY, STARTS, ENDS, OF_KIND, NUMBERED, PLACED, FROM = range(8)
ARRIVING = 8


@device_no_refcount
def _melded(m: Int64s, one: Number, other: Number) -> Number:
    """Merge two heaps of partitions, whose root ends first; a child replaces its sibling on the way."""
    if one == 0 or other == 0:
        return one + other
    if m[other + END] < m[one + END]:
        one, other = other, one
    root = one
    while other != 0:
        below = m[one + RIGHT]
        m[one + RIGHT] = m[one + LEFT]
        if below != 0 and m[below + END] < m[other + END]:
            below, other = other, below
        m[one + LEFT] = other
        one, other = other, below
    return root


@device_no_refcount
def _ask(m: Int64s, part: Number, work: Number) -> None:
    if m[part + TODO] == 0:
        m[part + NEXT_TODO] = m[WORK]
        m[WORK] = part
    m[part + TODO] |= work


@device_no_refcount
def _open(m: Int64s, key: Number, start: Number, end: Number, number: Number, origin: Number) -> Number:
    part: Number = m[FREE_PART]
    if part != 0:
        m[FREE_PART] = m[part + LATER]
        m[PARTS_FREE] -= 1
    else:
        part = m[TOP]
        m[TOP] += m[PART_SIZE]
    m[part : part + m[PART_SIZE]] = 0
    m[part + KEY], m[part + START], m[part + END], m[part + NUMBER], m[part + ORIGIN] = key, start, end, number, origin
    m[part + FIRST_END] = m[part + FIRST_PLACE] = NEVER
    for slot in range(m[COUNT]):
        m[part + PARTITION + slot * SIDE + LEAST_END] = NEVER
    own = m[KEYS] + key * KEYED
    last = m[own + LAST_PART]
    m[part + EARLIER] = last
    m[(own + FIRST_PART) if last == 0 else (last + LATER)] = part
    m[own + LAST_PART] = part
    m[own + OPEN_PARTS] += 1
    if end != NEVER and m[COUNTS_EMPTY] == 0:
        m[TIMERS] = _melded(m, m[TIMERS], part)
    return part


@device_no_refcount
def forget(m: Int64s, part: Number) -> None:
    """Remove a partition without entries."""
    own, later, earlier = m[KEYS] + m[part + KEY] * KEYED, m[part + LATER], m[part + EARLIER]
    m[(own + FIRST_PART) if earlier == 0 else (earlier + LATER)] = later
    m[(own + LAST_PART) if later == 0 else (later + EARLIER)] = earlier
    m[own + OPEN_PARTS] -= 1
    m[part + LATER] = m[FREE_PART]
    m[FREE_PART] = part
    m[PARTS_FREE] += 1


@device_no_refcount
def _enter(m: Int64s, room: Int64s, part: Number, arriving: Int64s, at: Number) -> None:
    """Add an event to the slots that it fits, and schedule a selection if one is due."""
    if m[part + TAKEN] != 0:
        return
    start, end = arriving[at + STARTS], arriving[at + ENDS]
    classes = m[CLASS_AT] + arriving[at + OF_CLASS]
    twin: Number = np.int64(0)
    for k in range(m[CLASS_SLOTS] + m[classes], m[CLASS_SLOTS] + m[classes + 1]):
        slot, fills = m[k] // 2, m[k] & 1
        if m[KIND] == ABSENCE:
            m[part + TAKEN] |= fills
            continue
        if m[m[SLOTS] + slot * PARTICIPANT + REPEATED] == OVERRIDE:
            clear_slots(m, part, slot, slot)
        # In a sequence no later event precedes this one: without a predecessor now it never has one.
        useful = m[KIND] != SEQUENCE or slot == 0 or m[part + PARTITION + (slot - 1) * SIDE + LEAST_END] < start
        if fills != 0 and useful:
            entry = add_entry(m, room, part, slot, arriving[at + NUMBERED], start, end, arriving[at + PLACED], twin)
            eager = m[m[SLOTS] + slot * PARTICIPANT + EAGER]
            if m[KIND] == ALL:
                if m[m[SLOTS] + slot * PARTICIPANT + BLOCK_FROM] != 0:
                    note_candidate(m, room, entry)
                twin = entry
            elif eager != 0 and not ends_candidate(m, room, entry, eager - 1):
                remove_entry(m, entry)
            else:
                twin = entry
    if twin != 0:
        if m[part + FIRST_END] == NEVER:
            m[part + FIRST_END], m[part + FIRST_PLACE] = end, arriving[at + PLACED]
        if m[DEFERRED] == 0:
            _ask(m, part, SELECT)


@device_no_refcount
def room_for(m: Int64s, arriving: Int64s, at: Number) -> bool:
    """Whether there is space for an event in all its partitions; if not, NEEDED has the missing space."""
    kind = arriving[at + OF_CLASS]
    if kind < 0:
        return True
    parts = np.int64(1)
    if m[CONTEXT] == WINDOWS:
        parts += max(arriving[at + STARTS] // m[STEP] - (arriving[at + ENDS] - m[LENGTH]) // m[STEP], 0)
    slots = m[m[CLASS_AT] + kind + 1] - m[m[CLASS_AT] + kind]
    entries = (m[m[KEYS] + arriving[at + OF_KEY] * KEYED + OPEN_PARTS] + parts) * slots
    chains = m[NEEDED_CHAINS] = entries * m[INDEXED]
    m[NEEDED] = (
        max(parts - m[PARTS_FREE], 0) * m[PART_SIZE]
        + max(entries - m[ENTRIES_FREE], 0) * m[ENTRY_SIZE]
        + max(chains - m[CHAINS_FREE], 0) * CHAIN
        + max(entries - m[SHELVES_FREE], 0) * SHELF
    )
    fits: bool = m[TOP] + m[NEEDED] <= len(m) and m[CHAINS] + chains <= m[TABLE_SIZE]
    return fits


@device_no_refcount
def _know(m: Int64s, own: Number, key: Number, start: Number, end: Number, origin: Number) -> None:
    """Count windows of a key from now on, including those without events; if keys are forgotten, for some time."""
    is_new = m[own + NEXT_NUMBER] == NEVER
    over = False  # whether all windows have closed for which the key was known until now
    if m[COUNTS_EMPTY] == FORGETS:
        known = m[KNOWN] + 1 + key
        until = end + m[m[KNOWN]]
        over = m[known] // m[STEP] <= m[LIMIT]
        if not is_new and start - m[LENGTH] < m[known] // m[STEP] * m[STEP]:
            until = max(until, m[known])
        else:
            is_new = True
        m[known] = until
    if is_new:
        m[own + NEXT_NUMBER], m[own + KEY_ORIGIN] = (start - m[LENGTH]) // m[STEP] + 1, origin
    if is_new or over:
        m[m[RUNS] + 1 + key] = m[own + NEXT_NUMBER]
        if m[own + NEXT_NUMBER] <= m[LIMIT]:
            m[LIMIT] = NEVER  # some of its windows have closed


@device_no_refcount
def _arrive_in_windows(m: Int64s, room: Int64s, arriving: Int64s, at: Number) -> None:
    """Add an event to the windows that contain it; windows not open yet are later than all open ones."""
    length, step, key = m[LENGTH], m[STEP], arriving[at + OF_KEY]
    own, start, origin = m[KEYS] + key * KEYED, arriving[at + STARTS], arriving[at + FROM]
    low, high = (arriving[at + ENDS] - length) // step + 1, start // step
    if m[COUNTS_EMPTY] != 0:
        _know(m, own, key, start, arriving[at + ENDS], origin)
        origin = m[own + KEY_ORIGIN]
    last = m[own + LAST_PART]
    for number in range(low if last == 0 else max(low, m[last + NUMBER] + 1), high + 1):
        _open(m, key, number * step, number * step + length, number, origin)
    part = m[own + LAST_PART]
    while part != 0 and m[part + NUMBER] >= low:
        if m[part + NUMBER] <= high:
            _enter(m, room, part, arriving, at)
        part = m[part + EARLIER]


@device_no_refcount
def _arrive_between(m: Int64s, room: Int64s, arriving: Int64s, at: Number) -> None:
    """Add an event to the partition of the whole stream, or to those that events open and close."""
    key, start, end = arriving[at + OF_KEY], arriving[at + STARTS], arriving[at + ENDS]
    origin, kind, own = arriving[at + FROM], arriving[at + OF_KIND], m[KEYS] + key * KEYED
    opens, closes = kind & OPENS != 0, kind & CLOSES != 0
    if m[CONTEXT] == WHOLE:
        opens = m[own + FIRST_PART] == 0
    number, never = np.int64(0), np.int64(NEVER)
    if opens and not closes:
        _open(m, key, start, start + m[LENGTH] if m[CONTEXT] == LASTING else never, number, origin)
    part = m[own + LAST_PART]
    while part != 0:
        if end < m[part + END]:
            _enter(m, room, part, arriving, at)
        if closes:
            m[part + END] = end
            _ask(m, part, CLOSE)
        part = m[part + EARLIER]
    if opens and closes:
        _enter(m, room, _open(m, key, start, never, number, origin), arriving, at)


@device_no_refcount
def arrive(m: Int64s, room: Int64s, arriving: Int64s, at: Number) -> None:
    """Process the next event, for which there must be space, and schedule the work it causes."""
    m[ARRIVED] += 1
    m[NEW], m[NEW_CLASS] = arriving[at + NUMBERED], arriving[at + OF_CLASS]
    if arriving[at + OF_KIND] == FINISH:
        m[TIMERS] = 0
        for key in range(m[KEY_COUNT]):
            part = m[m[KEYS] + key * KEYED + FIRST_PART]
            while part != 0:
                if m[CONTEXT] == WHOLE:
                    m[part + END] = arriving[at + ENDS]
                if m[part + END] != NEVER:
                    _ask(m, part, CLOSE)
                part = m[part + LATER]
    while m[TIMERS] != 0 and m[m[TIMERS] + END] <= arriving[at + ENDS]:
        part = m[TIMERS]
        m[TIMERS] = _melded(m, m[part + LEFT], m[part + RIGHT])
        _ask(m, part, CLOSE)
    if arriving[at + OF_CLASS] >= 0:
        m[KEY_COUNT] = max(m[KEY_COUNT], arriving[at + OF_KEY] + 1)
        if m[CONTEXT] == WINDOWS:
            _arrive_in_windows(m, room, arriving, at)
        else:
            _arrive_between(m, room, arriving, at)


# ---------------------------------------------------------------- stored entries


@kernel
def oldest(m: Int64s) -> tuple[Number, Number]:
    """Return the least end and the least place of an event in a partition without a selection, or NEVER."""
    end = place = np.int64(NEVER)
    for key in range(m[KEY_COUNT]):
        part = m[m[KEYS] + key * KEYED + FIRST_PART]
        while part != 0:
            if m[part + TAKEN] == 0:
                end, place = min(end, m[part + FIRST_END]), min(place, m[part + FIRST_PLACE])
            part = m[part + LATER]
    return end, place


@bare_kernel
def find_entries(m: Int64s, entries: Int64s) -> int:
    """Write the entries of all partitions, for which there must be space, and return how many there are."""
    count = 0
    for key in range(m[KEY_COUNT]):
        part = m[m[KEYS] + key * KEYED + FIRST_PART]
        while part != 0:
            for slot in range(m[COUNT]):
                entry = m[part + PARTITION + slot * SIDE + OLDEST]
                while entry != 0:
                    entries[count] = entry
                    count += 1
                    entry = m[entry + LINK]
            part = m[part + LATER]
    return count


@bare_kernel
def remove_entries(m: Int64s, entries: Int64s) -> None:
    """Take events out of the slots of their partitions."""
    for k in range(len(entries)):
        remove_entry(m, entries[k])
