"""Occurrences of composite patterns as rows of one flat array.

A row links to the rows it was joined from, so the rows below it are its complete history. Ids are places in the
array: a row's parts have smaller ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.jit import always_inline, device, kernel
from weft.kernels.memory.growing import grown

Int64s = npt.NDArray[np.int64]

# Fields of a row. FIRST_END and LAST_START are of the first and the last constituent; LEFT and RIGHT are rows (-1:
# none) but the RIGHT of a source is an event; SHIFT is added to the number of variables on the right; SLOTS is where
# the row's slots begin; FIRST is the smallest position.
START, END, FIRST_END, LAST_START, LEFT, RIGHT, KIND, SHIFT, SLOTS, FIRST = range(10)
ROW = 10
SOURCE, PAIR, RUN, BRANCH, POINT = range(5)  # kinds of rows
# How a slot, which holds an event or -1, is filled: from one side; from the right one if it is bound; the event that
# starts first or ends last of both; nothing; the event of a source.
FROM_LEFT, FROM_RIGHT, LATER, LEAST, GREATEST, NOTHING, THE_EVENT = range(7)
MOST = np.int64(2**63 - 1)
FEWEST = np.int64(-(2**63))


class Memory(NamedTuple):
    """The row store: rows, their slots, the used numbers of both, and the events."""

    rows: Int64s
    slots: Int64s
    control: Int64s
    events: Int64s


@always_inline
def write_row(rows: Int64s, row: int, left: int, right: int, kind: int, shift: int, slots: int) -> None:
    """Write a row joined from one or two rows."""
    at, one, other = row * ROW, left * ROW, right * ROW
    if left < 0:
        one = other
    elif right < 0:
        other = one
    rows[at + START] = min(rows[one + START], rows[other + START])
    rows[at + END] = max(rows[one + END], rows[other + END])
    rows[at + FIRST_END] = min(rows[one + FIRST_END], rows[other + FIRST_END])
    later = one
    if rows[other + END] > rows[one + END] or (
        rows[other + END] == rows[one + END] and rows[other + LAST_START] > rows[one + LAST_START]
    ):
        later = other
    rows[at + LAST_START] = rows[later + LAST_START]
    rows[at + LEFT] = left
    rows[at + RIGHT] = right
    rows[at + KIND] = kind
    rows[at + SHIFT] = shift
    rows[at + SLOTS] = slots
    rows[at + FIRST] = min(rows[one + FIRST], rows[other + FIRST])


@always_inline
def fill_slots(rows: Int64s, slots: Int64s, events: Int64s, at: int, left: int, right: int, spec: Int64s) -> None:
    """Fill the slots of a joined row from those of its parts: `spec` has (how, left slot, right slot) for each."""
    ours = rows[left * ROW + SLOTS] if left >= 0 else np.int64(0)
    theirs = rows[right * ROW + SLOTS] if right >= 0 else np.int64(0)
    for k in range(len(spec) // 3):
        how = spec[3 * k]
        if how == FROM_LEFT:
            slots[at + k] = slots[ours + spec[3 * k + 1]]
        elif how == FROM_RIGHT:
            slots[at + k] = slots[theirs + spec[3 * k + 2]]
        elif how == NOTHING:
            slots[at + k] = -1
        else:
            one, other = slots[ours + spec[3 * k + 1]], slots[theirs + spec[3 * k + 2]]
            if other < 0 or (
                one >= 0
                and (
                    (how == LEAST and events[one * EVENT + EVENT_START] < events[other * EVENT + EVENT_START])
                    or (how == GREATEST and events[one * EVENT + EVENT_END] > events[other * EVENT + EVENT_END])
                )
            ):
                other = one
            slots[at + k] = other


@device
def parts_of(rows: Int64s, occurrence: int) -> tuple[Int64s, Int64s]:
    """Return the source rows and points of an occurrence, left to right, and the number of the variable of each."""
    found = np.empty(8, np.int64)
    numbers = np.empty(8, np.int64)
    count = 0
    stack = np.empty(16, np.int64)
    stack[0], stack[1] = occurrence, 0
    top = 2
    while top > 0:
        top -= 2
        row, shift = stack[top], stack[top + 1]
        at = row * ROW
        kind = rows[at + KIND]
        if kind in (SOURCE, POINT):
            found = grown(found, count, 1)
            numbers = grown(numbers, count, 1)
            found[count] = row
            numbers[count] = shift
            count += 1
        if kind == SOURCE:
            continue
        stack = grown(stack, top, 4)
        if rows[at + RIGHT] >= 0:
            stack[top], stack[top + 1] = rows[at + RIGHT], shift + rows[at + SHIFT]
            top += 2
        if rows[at + LEFT] >= 0:
            stack[top], stack[top + 1] = rows[at + LEFT], shift
            top += 2
    return found[:count], numbers[:count]


@device
def positions_of(rows: Int64s, events: Int64s, occurrence: int) -> Int64s:
    """Return the positions of an occurrence, ascending."""
    parts, _ = parts_of(rows, occurrence)
    positions = np.empty(len(parts), np.int64)
    count = 0
    for row in parts:
        if rows[row * ROW + KIND] == SOURCE:
            position = events[rows[row * ROW + RIGHT] * EVENT + POSITION]
            at = count
            while at > 0 and positions[at - 1] > position:  # nearly always in order already
                positions[at] = positions[at - 1]
                at -= 1
            positions[at] = position
            count += 1
    return positions[:count]


@device
def history_of(rows: Int64s, occurrence: int) -> tuple[Int64s, Int64s]:
    """Return the ends and starts of all constituents, sorted by end and start, descending."""
    parts, _ = parts_of(rows, occurrence)
    ends = np.empty(len(parts), np.int64)
    starts = np.empty(len(parts), np.int64)
    for i in range(len(parts)):
        at = parts[i] * ROW
        end = rows[at + END]
        start = end if rows[at + KIND] == POINT else rows[at + START]
        k = i
        while k > 0 and (ends[k - 1] < end or (ends[k - 1] == end and starts[k - 1] < start)):
            ends[k], starts[k] = ends[k - 1], starts[k - 1]
            k -= 1
        ends[k], starts[k] = end, start
    return ends, starts


@kernel
def report(rows: Int64s, events: Int64s, ids: Int64s, count: int) -> tuple[Int64s, Int64s, npt.NDArray[np.int32]]:
    """Return offsets, positions (ascending) and variable numbers of occurrences."""
    offsets = np.zeros(count + 1, np.int64)
    positions = np.empty(4 * count + 16, np.int64)
    labels = np.empty(4 * count + 16, np.int64)
    used = 0
    for i in range(count):
        parts, numbers = parts_of(rows, ids[i])
        positions = grown(positions, used, len(parts))
        labels = grown(labels, used, len(parts))
        begin = used
        for k in range(len(parts)):
            at = parts[k] * ROW
            if rows[at + KIND] != SOURCE:
                continue
            position = events[rows[at + RIGHT] * EVENT + POSITION]
            to = used
            while to > begin and positions[to - 1] > position:
                positions[to], labels[to] = positions[to - 1], labels[to - 1]
                to -= 1
            positions[to], labels[to] = position, numbers[k]
            used += 1
        offsets[i + 1] = used
    return offsets, positions[:used].copy(), labels[:used].astype(np.int32)


@kernel
def variable_events(rows: Int64s, events: Int64s, ids: Int64s, variable: int, which: int) -> Int64s:
    """Return one of the events that each occurrence binds to a variable: LATER, LEAST or GREATEST, or -1."""
    chosen = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        chosen[i] = -1
        parts, numbers = parts_of(rows, ids[i])
        for k in range(len(parts)):
            if numbers[k] != variable or rows[parts[k] * ROW + KIND] != SOURCE:
                continue
            event = rows[parts[k] * ROW + RIGHT]
            best = chosen[i]
            if (
                best < 0
                or which == LATER
                or (which == LEAST and events[event * EVENT + EVENT_START] < events[best * EVENT + EVENT_START])
                or (which == GREATEST and events[event * EVENT + EVENT_END] > events[best * EVENT + EVENT_END])
            ):
                chosen[i] = event
    return chosen
