"""Operators that forward: events as occurrences, filters, points in time, unions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed
from weft.kernels.follow import LEFT_AT, OUT, RIGHT_AT, ROWS, SLOTS_USED, give_out, in_order, join_row, no_room
from weft.kernels.jit import kernel
from weft.kernels.joint import Facts, borrow, holds
from weft.kernels.occurrences import (
    BRANCH,
    END,
    EVENT,
    EVENT_END,
    EVENT_START,
    FIRST,
    FIRST_END,
    KIND,
    LAST_START,
    LEFT,
    MOST,
    POINT,
    POSITION,
    RIGHT,
    ROW,
    SHIFT,
    SLOTS,
    SOURCE,
    START,
    enlarged,
)

Int64s = npt.NDArray[np.int64]


@kernel
def sources(
    where: Int64s,
    spec: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    chosen: Int64s,
    control: Int64s,
    out: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """An occurrence for each of the chosen events, if the conditions hold."""
    lent_rows, lent_slots, lent_out = rows, slots, out
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    where = borrowed(where)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    chosen = borrowed(chosen)
    control = borrowed(control)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    size = len(spec) // 3
    if (arena[ROWS] + len(chosen)) * ROW > len(rows) or arena[SLOTS_USED] + len(chosen) * size > len(slots):
        lent_rows = enlarged(rows, arena[ROWS] * ROW, len(chosen) * ROW)
        lent_slots = enlarged(slots, arena[SLOTS_USED], len(chosen) * size)
        rows, slots = borrowed(lent_rows), borrowed(lent_slots)
    if control[OUT] + len(chosen) > len(out):
        lent_out = enlarged(out, control[OUT], len(chosen))
        out = borrowed(lent_out)
    for event in chosen:
        row, slot = arena[ROWS], arena[SLOTS_USED]
        at = row * ROW
        start, end = events[event * EVENT + EVENT_START], events[event * EVENT + EVENT_END]
        rows[at + START], rows[at + END] = start, end
        rows[at + FIRST_END], rows[at + LAST_START] = end, start
        rows[at + LEFT], rows[at + RIGHT] = -1, event
        rows[at + KIND], rows[at + SHIFT], rows[at + SLOTS] = SOURCE, 0, slot
        rows[at + FIRST] = events[event * EVENT + POSITION]
        for k in range(size):
            slots[slot + k] = event
        if holds(where, facts, values, width, rows, slots, row, row):
            arena[ROWS] += 1
            arena[SLOTS_USED] += size
            out[control[OUT]] = row
            control[OUT] += 1
    return (lent_rows, lent_slots, lent_out)


@kernel
def keep(
    where: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    inputs: Int64s,
    input_count: int,
    bound: int,
    control: Int64s,
    out: Int64s,
) -> Int64s:
    """Pass on the occurrences that end before `bound` and satisfy the conditions."""
    lent_out = out
    out = borrowed(out)
    where = borrowed(where)
    rows = borrowed(rows)
    slots = borrowed(slots)
    inputs = borrowed(inputs)
    control = borrowed(control)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    while control[LEFT_AT] < input_count:
        one = inputs[control[LEFT_AT]]
        if rows[one * ROW + END] >= bound:
            break
        control[LEFT_AT] += 1
        if holds(where, facts, values, width, rows, slots, one, one):
            if control[OUT] == len(out):
                lent_out = enlarged(out, control[OUT], 1)
                out = borrowed(lent_out)
            out[control[OUT]] = one
            control[OUT] += 1
    return lent_out


@kernel
def later(
    ticks: int,
    spec: Int64s,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    inputs: Int64s,
    input_count: int,
    bound: int,
    control: Int64s,
    out: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """Each occurrence that ends before `bound` with a point in time after it."""
    lent_rows, lent_slots, lent_out = rows, slots, out
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    inputs = borrowed(inputs)
    control = borrowed(control)
    while control[LEFT_AT] < input_count:
        one = inputs[control[LEFT_AT]]
        if rows[one * ROW + END] >= bound:
            break
        control[LEFT_AT] += 1
        if no_room(rows, slots, arena, spec):
            lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
            lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
            rows, slots = borrowed(lent_rows), borrowed(lent_slots)
        row = join_row(rows, slots, arena, events, one, -1, POINT, 0, spec)
        at = row * ROW
        rows[at + END] = min(rows[at + END], MOST - ticks) + ticks
        rows[at + LAST_START] = rows[at + END]
        if control[OUT] == len(out):
            lent_out = enlarged(out, control[OUT], 1)
            out = borrowed(lent_out)
        out[control[OUT]] = row
        control[OUT] += 1
    return (lent_rows, lent_slots, lent_out)


@kernel
def unite(
    shift: int,
    spec: Int64s,
    other_spec: Int64s,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    lefts: Int64s,
    left_count: int,
    rights: Int64s,
    right_count: int,
    bound: int,
    control: Int64s,
    out: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """The occurrences of both sides that end before `bound`."""
    lent_rows, lent_slots, lent_out = rows, slots, out
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    spec = borrowed(spec)
    other_spec = borrowed(other_spec)
    arena = borrowed(arena)
    events = borrowed(events)
    lefts = borrowed(lefts)
    rights = borrowed(rights)
    control = borrowed(control)
    fresh = np.empty(64, np.int64)
    while True:
        time = MOST
        if control[LEFT_AT] < left_count:
            time = min(time, rows[lefts[control[LEFT_AT]] * ROW + END])
        if control[RIGHT_AT] < right_count:
            time = min(time, rows[rights[control[RIGHT_AT]] * ROW + END])
        if time >= bound:
            break
        count = 0
        while control[LEFT_AT] < left_count and rows[lefts[control[LEFT_AT]] * ROW + END] == time:
            if no_room(rows, slots, arena, spec):
                lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
                rows, slots = borrowed(lent_rows), borrowed(lent_slots)
            row = join_row(rows, slots, arena, events, lefts[control[LEFT_AT]], -1, BRANCH, 0, spec)
            control[LEFT_AT] += 1
            if count == len(fresh):
                fresh = enlarged(fresh, count, 1)
            fresh[count] = row
            count += 1
        while control[RIGHT_AT] < right_count and rows[rights[control[RIGHT_AT]] * ROW + END] == time:
            if no_room(rows, slots, arena, other_spec):
                lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(other_spec))
                rows, slots = borrowed(lent_rows), borrowed(lent_slots)
            row = join_row(rows, slots, arena, events, -1, rights[control[RIGHT_AT]], BRANCH, shift, other_spec)
            control[RIGHT_AT] += 1
            if count == len(fresh):
                fresh = enlarged(fresh, count, 1)
            fresh[count] = row
            count += 1
        count = in_order(rows, events, fresh, count, False, True)
        if control[OUT] + count > len(out):
            lent_out = enlarged(out, control[OUT], count)
            out = borrowed(lent_out)
        give_out(fresh, count, out, control)
    return (lent_rows, lent_slots, lent_out)
