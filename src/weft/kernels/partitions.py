"""The partitions of a situation's context: opened, entered and closed as events arrive and time passes.

What an event asks for is written down as work: to select in a partition, or to close it. The work of one event is
done before the next event arrives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.kernels.borrow import borrowed
from weft.kernels.jit import inlined
from weft.kernels.participants import (
    ARRIVED,
    EARLIER,
    END,
    ENTRIES_USED,
    EVENT_END,
    EVENT_START,
    FILLED,
    FIRST_END,
    FIRST_PLACE,
    FREE_PART,
    HAPPENING,
    KEY,
    KEYS,
    LATER,
    LEAST_END,
    LIMIT,
    NEED_ENTRIES,
    NEED_PARTS,
    NEVER,
    NEW,
    NEW_CLASS,
    NEWEST,
    NONE,
    NUMBER,
    OLDEST,
    OPEN,
    ORIGIN,
    OVERRIDE,
    PART_TOP,
    PARTICIPANT,
    PARTITION,
    PARTS_USED,
    PLACE,
    REPEATED,
    SIDE,
    START,
    TAKEN,
    TIMERS,
    WORK_AT,
    WORK_COUNT,
    Facts,
    Int64s,
    Rows,
    add_entry,
    clear_slot,
)

# Fields of a key: its open partitions; of windows that may be empty the first that has not closed, and the origin.
FIRST_PART, LAST_PART, OPEN_PARTS, NEXT_NUMBER, KEY_ORIGIN = range(5)
KEYED = 5
# What the situation is: places of `shape`.
KIND, DEFERRED, SINGLE, CONTEXT, LENGTH, STEP, COUNTS_EMPTY, OVERLAPS = range(8)
SHAPE = 8
SEQUENCE, ALL, ANY, ABSENCE = range(4)
WHOLE, WINDOWS, UNTIL, LASTING = range(4)
# What an event is besides a participant, as bits. FINISH: it is none, and closes all that ends with the input.
OPENS, CLOSES, FINISH = 1, 2, 4
SELECT, CLOSE = range(2)  # kinds of work


class Batch(NamedTuple):
    """Arriving events: what they are to the situation, and their numbers among the events that are kept."""

    classes: Int64s  # which slots they are for, -1: no event but time that has passed
    keys: Int64s
    starts: Int64s
    ends: Int64s
    kinds: Int64s
    events: Int64s
    origins: Int64s


class Layout(NamedTuple):
    """The situation as tables."""

    shape: Int64s
    class_at: Int64s  # the slots of class c are class_slots[class_at[c] : class_at[c + 1]]
    class_slots: Int64s  # a slot times two, plus one when the event may fill it: otherwise it only overrides
    steps: Int64s
    quick: Int64s
    code: Int64s


@inlined
def borrow_batch(batch: Batch) -> Batch:
    """The same batch, borrowed."""
    return Batch(
        borrowed(batch.classes),
        borrowed(batch.keys),
        borrowed(batch.starts),
        borrowed(batch.ends),
        borrowed(batch.kinds),
        borrowed(batch.events),
        borrowed(batch.origins),
    )


@inlined
def borrow_layout(layout: Layout) -> Layout:
    """The same tables, borrowed."""
    return Layout(
        borrowed(layout.shape),
        borrowed(layout.class_at),
        borrowed(layout.class_slots),
        borrowed(layout.steps),
        borrowed(layout.quick),
        borrowed(layout.code),
    )


# ---------------------------------------------------------------- time


@inlined
def _add_timer(rows: Rows, end: int, part: int) -> None:
    timers = rows.timers
    at = rows.control[TIMERS]
    rows.control[TIMERS] += 1
    while at > 0 and timers[(at - 1) // 2 * 2] > end:
        above = (at - 1) // 2
        timers[2 * at], timers[2 * at + 1] = timers[2 * above], timers[2 * above + 1]
        at = above
    timers[2 * at], timers[2 * at + 1] = end, part


@inlined
def _take_timer(rows: Rows) -> int:
    """Remove the partition that ends first."""
    timers = rows.timers
    part = timers[1]
    rows.control[TIMERS] -= 1
    count = rows.control[TIMERS]
    end, last = timers[2 * count], timers[2 * count + 1]
    at = 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and timers[2 * below + 2] < timers[2 * below]:
            below += 1
        if timers[2 * below] >= end:
            break
        timers[2 * at], timers[2 * at + 1] = timers[2 * below], timers[2 * below + 1]
        at = below
    timers[2 * at], timers[2 * at + 1] = end, last
    return np.int64(part)


@inlined
def _ask_for(rows: Rows, action: int, part: int) -> None:
    at = 2 * rows.control[WORK_COUNT]
    rows.work[at], rows.work[at + 1] = action, part
    rows.control[WORK_COUNT] += 1


# ---------------------------------------------------------------- opening and closing


@inlined
def _open(rows: Rows, facts: Facts, layout: Layout, key: int, start: int, end: int, number: int, origin: int) -> int:
    control, parts, keys = rows.control, rows.parts, rows.keys
    part = control[FREE_PART]
    if part >= 0:
        control[FREE_PART] = parts[part * facts.part + LATER]
    else:
        part = control[PART_TOP]
        control[PART_TOP] += 1
    control[PARTS_USED] += 1
    at = part * facts.part
    parts[at + KEY], parts[at + START], parts[at + END], parts[at + ORIGIN] = key, start, end, origin
    parts[at + TAKEN], parts[at + FILLED], parts[at + NUMBER], parts[at + OPEN] = 0, 0, number, 1
    parts[at + FIRST_END] = parts[at + FIRST_PLACE] = NEVER
    for slot in range(len(facts.slots) // PARTICIPANT):
        side = at + PARTITION + slot * SIDE
        parts[side + OLDEST], parts[side + NEWEST], parts[side + LEAST_END] = NONE, NONE, NEVER
    last = keys[key * KEYED + LAST_PART]
    parts[at + EARLIER], parts[at + LATER] = last, NONE
    if last < 0:
        keys[key * KEYED + FIRST_PART] = part
    else:
        parts[last * facts.part + LATER] = part
    keys[key * KEYED + LAST_PART] = part
    keys[key * KEYED + OPEN_PARTS] += 1
    if end != NEVER and layout.shape[COUNTS_EMPTY] == 0:
        _add_timer(rows, end, part)
    return np.int64(part)


@inlined
def forget(rows: Rows, facts: Facts, part: int) -> None:
    """A partition without entries is there no more."""
    parts, keys = rows.parts, rows.keys
    at = part * facts.part
    key, later, earlier = parts[at + KEY], parts[at + LATER], parts[at + EARLIER]
    if earlier < 0:
        keys[key * KEYED + FIRST_PART] = later
    else:
        parts[earlier * facts.part + LATER] = later
    if later < 0:
        keys[key * KEYED + LAST_PART] = earlier
    else:
        parts[later * facts.part + EARLIER] = earlier
    keys[key * KEYED + OPEN_PARTS] -= 1
    parts[at + OPEN] = 0
    parts[at + LATER] = rows.control[FREE_PART]
    rows.control[FREE_PART] = part
    rows.control[PARTS_USED] -= 1


# ---------------------------------------------------------------- events


@inlined
def _enter(rows: Rows, facts: Facts, layout: Layout, part: int, kind: int, event: int) -> None:
    """Put an event into the slots that it is for, and ask for a selection if one is due."""
    at = part * facts.part
    parts, shape = rows.parts, layout.shape
    if parts[at + TAKEN] != 0:
        return
    begin, end = layout.class_at[kind], layout.class_at[kind + 1]
    if shape[KIND] == ABSENCE:
        for k in range(begin, end):
            parts[at + TAKEN] |= layout.class_slots[k] & 1
        return
    twin = NONE
    filled = False
    for k in range(begin, end):
        slot = layout.class_slots[k] // 2
        side = at + PARTITION + slot * SIDE
        if facts.slots[slot * PARTICIPANT + REPEATED] == OVERRIDE:
            clear_slot(rows, facts, part, slot)
        if layout.class_slots[k] & 1 == 0:
            continue
        if shape[KIND] == SEQUENCE and slot > 0:
            # Nothing that arrives later is before this event: without anything before it now it is no use.
            if parts[side - SIDE + LEAST_END] >= facts.events[event * HAPPENING + EVENT_START]:
                continue
        twin = add_entry(rows, facts, part, slot, event, twin)
        filled = True
    if filled:
        if parts[at + FIRST_END] == NEVER:
            parts[at + FIRST_END] = facts.events[event * HAPPENING + EVENT_END]
            parts[at + FIRST_PLACE] = facts.events[event * HAPPENING + PLACE]
        if shape[DEFERRED] == 0:
            _ask_for(rows, SELECT, part)


@inlined
def room_for(rows: Rows, facts: Facts, layout: Layout, batch: Batch, at: int) -> bool:
    """Whether there is room for an event in all its partitions; if not, `control` says how much it needs."""
    control, shape = rows.control, layout.shape
    kind, key = batch.classes[at], batch.keys[at]
    if kind < 0:
        return True
    parts = 1
    if shape[CONTEXT] == WINDOWS:
        parts = batch.starts[at] // shape[STEP] - (batch.ends[at] - shape[LENGTH]) // shape[STEP] + 1
    slots = layout.class_at[kind + 1] - layout.class_at[kind]
    control[NEED_PARTS] = max(parts, 1)
    control[NEED_ENTRIES] = (rows.keys[key * KEYED + OPEN_PARTS] + control[NEED_PARTS]) * slots
    return (
        control[PARTS_USED] + control[NEED_PARTS] <= len(rows.parts) // facts.part
        and control[ENTRIES_USED] + control[NEED_ENTRIES] <= len(rows.entries) // facts.entry
    )


@inlined
def _arrive_in_windows(rows: Rows, facts: Facts, layout: Layout, batch: Batch, at: int) -> None:
    """The windows that an event lies wholly in: those not open yet are later than all that are."""
    length, step = layout.shape[LENGTH], layout.shape[STEP]
    key = batch.keys[at]
    keys, parts = rows.keys, rows.parts
    low, high = (batch.ends[at] - length) // step + 1, batch.starts[at] // step
    origin = batch.origins[at]
    if layout.shape[COUNTS_EMPTY] != 0:
        if keys[key * KEYED + NEXT_NUMBER] == NEVER:
            keys[key * KEYED + NEXT_NUMBER] = (batch.starts[at] - length) // step + 1
            keys[key * KEYED + KEY_ORIGIN] = origin
            rows.control[LIMIT] = NEVER  # some of its windows may have closed
        origin = keys[key * KEYED + KEY_ORIGIN]
    last = keys[key * KEYED + LAST_PART]
    fresh = low if last < 0 else max(low, parts[last * facts.part + NUMBER] + 1)
    for number in range(fresh, high + 1):
        _open(rows, facts, layout, key, number * step, number * step + length, number, origin)
    part = keys[key * KEYED + LAST_PART]
    while part >= 0 and parts[part * facts.part + NUMBER] >= low:
        if parts[part * facts.part + NUMBER] <= high:
            _enter(rows, facts, layout, part, batch.classes[at], batch.events[at])
        part = parts[part * facts.part + EARLIER]


@inlined
def _arrive_between(rows: Rows, facts: Facts, layout: Layout, batch: Batch, at: int) -> None:
    """The partitions that events open, and close."""
    context, kind = layout.shape[CONTEXT], batch.kinds[at]
    key, start, end, origin = batch.keys[at], batch.starts[at], batch.ends[at], batch.origins[at]
    keys, parts = rows.keys, rows.parts
    opens, closes = kind & OPENS != 0, context == UNTIL and kind & CLOSES != 0
    if opens and not closes:
        _open(rows, facts, layout, key, start, start + layout.shape[LENGTH] if context == LASTING else NEVER, 0, origin)
    part = keys[key * KEYED + LAST_PART]
    while part >= 0:
        if context == UNTIL or end < parts[part * facts.part + END]:
            _enter(rows, facts, layout, part, batch.classes[at], batch.events[at])
        if closes:
            parts[part * facts.part + END] = end
            _ask_for(rows, CLOSE, part)
        part = parts[part * facts.part + EARLIER]
    if opens and closes:
        part = _open(rows, facts, layout, key, start, NEVER, 0, origin)
        _enter(rows, facts, layout, part, batch.classes[at], batch.events[at])


@inlined
def _finish(rows: Rows, facts: Facts, layout: Layout, last: int) -> None:
    """Ask to close the partitions that end with the input."""
    parts = rows.parts
    rows.control[TIMERS] = 0
    for part in range(rows.control[PART_TOP]):
        at = part * facts.part
        if parts[at + OPEN] != 0:
            if layout.shape[CONTEXT] == WHOLE:
                parts[at + END] = last
            if parts[at + END] != NEVER:
                _ask_for(rows, CLOSE, part)


@inlined
def arrive(rows: Rows, facts: Facts, layout: Layout, batch: Batch, at: int) -> None:
    """Take the next event, for which there must be room, and write down what it asks for."""
    control, keys = rows.control, rows.keys
    control[ARRIVED] += 1
    control[WORK_AT] = control[WORK_COUNT] = 0
    control[NEW], control[NEW_CLASS] = batch.events[at], batch.classes[at]
    if batch.kinds[at] & FINISH != 0:
        _finish(rows, facts, layout, batch.ends[at])
    while control[TIMERS] > 0 and rows.timers[0] <= batch.ends[at]:
        _ask_for(rows, CLOSE, _take_timer(rows))
    if batch.classes[at] < 0:
        return
    key = batch.keys[at]
    control[KEYS] = max(control[KEYS], key + 1)
    if layout.shape[CONTEXT] == WHOLE:
        part = keys[key * KEYED + FIRST_PART]
        if part < 0:
            part = _open(rows, facts, layout, key, batch.starts[at], NEVER, 0, batch.origins[at])
        _enter(rows, facts, layout, part, batch.classes[at], batch.events[at])
    elif layout.shape[CONTEXT] == WINDOWS:
        _arrive_in_windows(rows, facts, layout, batch, at)
    else:
        _arrive_between(rows, facts, layout, batch, at)
