"""Joint conditions on two occurrences, or on a single one, as lines of four numbers.

Quick tests come first. The others are code for the machine, each piece after the lines with its bindings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START
from weft.kernels.jit import always_inline, device
from weft.kernels.joins.occurrences import END, FEWEST, KIND, MOST, RIGHT, ROW, SLOTS, SOURCE, START, parts_of
from weft.kernels.machine.machine import ALONE, CHOSEN, LIST, LISTS, NOTES, RESULTS, VALUES, Machine, evaluate
from weft.kernels.machine.machine import WIDTH as EVENT_WIDTH
from weft.kernels.machine.machine import holds as compares
from weft.kernels.machine.tagged import INTEGER, MISSING, VALUE, Int64s, mixed_in, normal, satisfies
from weft.kernels.memory.borrow import borrowed
from weft.kernels.memory.growing import grown
from weft.kernels.memory.room import lend, noted, words

# Lines. QUICK is a comparison of two attributes, SPAN one of the length of the whole with a number of ticks. EVENT_OF
# and EACH_OF bind the next slot of the machine: to the event in a slot, or to all events of a variable. TIME is the
# next result. RUN runs code; the slots and results after it are those of the next piece.
QUICK, SPAN, EVENT_OF, EACH_OF, TIME, RUN = range(6)
# The side of a slot: left, right, or the right one if it is bound, else the left one.
ON_LEFT, ON_RIGHT, ON_EITHER = range(3)
WIDTH = 4
SIDE, SLOT, COLUMN = 1 << 40, 1 << 20, 1  # an operand of QUICK is their weighted sum
EVENTS = NOTES  # the times of events, after the arrays of the machine


class Facts(NamedTuple):
    """The arrays that conditions read: values and times of events, and the array table for the machine."""

    values: Int64s
    width: int
    events: Int64s
    room: Int64s
    machine: Machine


@device
def borrow(facts: Facts) -> Facts:
    """Return the same facts, borrowed, and register the arrays in the array table."""
    lend(facts.room, 0, facts.machine)
    lend(facts.room, EVENTS, (facts.events,))
    return Facts(borrowed(facts.values), facts.width, borrowed(facts.events), borrowed(facts.room), facts.machine)


@always_inline
def slot_of(rows: Int64s, slots: Int64s, side: int, slot: int, left: int, right: int) -> Any:
    """Return the event in a slot, or -1."""
    one = left if side == ON_LEFT else right
    event = slots[rows[one * ROW + SLOTS] + slot]
    if event < 0 and side == ON_EITHER:
        event = slots[rows[left * ROW + SLOTS] + slot]
    return event


@always_inline
def attribute_of(event: int, column: int, values: Int64s, width: int) -> Any:
    """Return the kind and word of an attribute of an event, or MISSING without an event."""
    kind, word = np.int64(MISSING), np.int64(0)
    if event >= 0:
        kind, word = values[event * width + VALUE * column], values[event * width + VALUE * column + 1]
    return kind, word


@always_inline
def _read(packed: int, rows: Int64s, slots: Int64s, left: int, right: int, values: Int64s, width: int) -> Any:
    """Return the attribute that an operand of QUICK refers to."""
    event = slot_of(rows, slots, packed // SIDE, packed % SIDE // SLOT, left, right)
    return attribute_of(event, packed % SLOT, values, width)


@device
def _bound(rows: Int64s, slots: Int64s, events: Int64s, packed: int, latest: bool, left: int, right: int) -> Any:
    """Return the least start or greatest end of a variable's events; without events MOST or FEWEST."""
    side, slot = packed // SIDE, packed % SIDE
    one = slots[rows[left * ROW + SLOTS] + slot] if side != ON_RIGHT else np.int64(-1)
    other = slots[rows[right * ROW + SLOTS] + slot] if side != ON_LEFT else np.int64(-1)
    if latest:
        end = events[one * EVENT + EVENT_END] if one >= 0 else FEWEST
        return max(end, events[other * EVENT + EVENT_END]) if other >= 0 else end
    start = events[one * EVENT + EVENT_START] if one >= 0 else MOST
    return min(start, events[other * EVENT + EVENT_START]) if other >= 0 else start


@device
def _elapsed(
    rows: Int64s, slots: Int64s, events: Int64s, first: int, last: int, whole: int, left: int, right: int
) -> Any:
    """Return the ticks from a start to an end; -1 for `first` or `last` means the start or end of `whole`."""
    if first >= 0:
        start = _bound(rows, slots, events, first, False, left, right)
    elif whole == ON_RIGHT:
        start = rows[right * ROW + START]
    else:
        start = min(rows[left * ROW + START], rows[right * ROW + START])
    if last >= 0:
        end = _bound(rows, slots, events, last, True, left, right)
    elif whole == ON_RIGHT:
        end = rows[right * ROW + END]
    else:
        end = max(rows[left * ROW + END], rows[right * ROW + END])
    known = start != MOST and end != FEWEST
    return np.int64(INTEGER if known else MISSING), end - start


@device
def _list_events(rows: Int64s, occurrence: int, variable: int, slot: int, size: int, lists: Int64s) -> Int64s:
    """Append the list of all events that an occurrence binds to a variable, and return the lists."""
    used = size
    for k in range(slot):
        used = max(used, lists[LIST * k + 1])
    parts, numbers = parts_of(rows, occurrence)
    lists = grown(lists, used, len(parts))
    lists[LIST * slot] = used
    for k in range(len(parts)):
        if numbers[k] == variable and rows[parts[k] * ROW + KIND] == SOURCE:
            lists[used] = rows[parts[k] * ROW + RIGHT]
            used += 1
    lists[LIST * slot + 1] = used
    return lists


@device
def _runs(where: Int64s, at: int, room: Int64s, rows: Int64s, slots: Int64s, left: int, right: int) -> bool:
    """Whether all conditions from a line on hold, none of which is quick."""
    chosen, results, lists = words(room, CHOSEN), words(room, RESULTS), words(room, LISTS)
    slot = result = 0
    while at < len(where):
        kind, x, y, z = where[at], where[at + 1], where[at + 2], where[at + 3]
        at += WIDTH
        if kind == EVENT_OF:
            chosen[slot] = slot_of(rows, slots, x, y, left, right)
            lists[LIST * slot + 1] = 0
            slot += 1
        elif kind == EACH_OF:
            lists = _list_events(rows, left if x == ON_LEFT else right, y, slot, z, lists)
            lend(room, LISTS, (lists,))
            slot += 1
        elif kind == TIME:
            ticks = _elapsed(rows, slots, words(room, EVENTS), x, y, z, left, right)
            results[VALUE * result], results[VALUE * result + 1] = ticks
            result += 1
        else:
            if evaluate(room, x, y, ALONE)[1] == 0:
                return False
            slot = result = 0
    return True


@always_inline
def holds(
    where: Int64s, room: Int64s, values: Int64s, width: int, rows: Int64s, slots: Int64s, left: int, right: int
) -> bool:
    """Whether all conditions hold. `values` and `width` are hoisted out of the loop by the caller."""
    found = True
    for at in range(0, len(where), WIDTH):
        if where[at] == QUICK:
            kind, word = _read(where[at + 2], rows, slots, left, right, values, width)
            other_kind, other = _read(where[at + 3], rows, slots, left, right, values, width)
            found = compares(room, where[at + 1], kind, word, other_kind, other)
        elif where[at] == SPAN:
            start = min(rows[left * ROW + START], rows[right * ROW + START])
            ticks = max(rows[left * ROW + END], rows[right * ROW + END]) - start - where[at + 2]
            found = satisfies(where[at + 1], np.int64(ticks > 0) - np.int64(ticks < 0))
        else:
            found = _runs(where, at, room, rows, slots, left, right)
            break
        if not found:
            break
    return found


@device
def _all_hold(where: Int64s, room: Int64s, rows: Int64s, slots: Int64s, left: Any, right: Any) -> bool:
    return holds(where, room, words(room, VALUES), noted(room, EVENT_WIDTH), rows, slots, left, right)


@always_inline
def all_hold(where: Int64s, facts: Facts, rows: Int64s, slots: Int64s, left: Any, right: Any) -> bool:
    """Like `holds`, but as a call, which keeps kernels small that test most conditions elsewhere."""
    return _all_hold(where, facts.room, rows, slots, left, right)


@always_inline
def key_of(
    key: Int64s, which: int, values: Int64s, width: int, rows: Int64s, slots: Int64s, occurrence: Any
) -> tuple[bool, np.uint64]:
    """Return whether an occurrence has all values of a key, and their hash.

    `key` has (slot, column) pairs for both sides.
    """
    state = np.uint64(0x243F6A8885A308D3)
    has = True
    for k in range(len(key) // 4):
        event = slots[rows[occurrence * ROW + SLOTS] + key[4 * k + 2 * which]]
        kind, word = attribute_of(event, key[4 * k + 2 * which + 1], values, width)
        has = has and kind != MISSING
        if not has:
            break
        kind, word = normal(kind, word)
        state = mixed_in(state, kind, word)
    return has, state
