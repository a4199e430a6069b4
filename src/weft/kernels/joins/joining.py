"""Shared code of operators that add rows: control words, space for rows, joining, and sorting of new rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.jit import always_inline, bare_kernel, device, kernel
from weft.kernels.joins.joint import Facts, borrow, holds
from weft.kernels.joins.occurrences import (
    BRANCH,
    END,
    FIRST,
    FIRST_END,
    KIND,
    LAST_START,
    LEFT,
    RIGHT,
    ROW,
    SHIFT,
    SLOTS,
    SOURCE,
    START,
    Memory,
    fill_slots,
    write_row,
)
from weft.kernels.joins.ordering import drop_repeated, sort_group
from weft.kernels.memory.borrow import borrowed
from weft.kernels.memory.growing import enlarged

Int64s = npt.NDArray[np.int64]

# Fields of a node's control block: rows read of each input, rows emitted, the last stamp; the others are specific to
# the node. CONTROL words are saved with the state; STEPS_LEFT is how many partners are visited until a pause.
LEFT_AT, RIGHT_AT, OUT, STAMP = range(4)
OWN = 4
CONTROL = 7
STEPS_LEFT = 7
# Fields of the row store's control block: rows and slots used.
ROWS, SLOTS_USED = range(2)


class Asked(NamedTuple):
    """The description of a join: parameters, tests and conditions, key, and how to fill the slots of rows.

    `among` and `first` are used by `follow`: the conditions that decide, and those on the first member of a run.
    """

    parameters: Int64s
    tests: Int64s
    where: Int64s
    among: Int64s
    first: Int64s
    key: Int64s
    spec: Int64s


class Inputs(NamedTuple):
    """The output of the operands, the used length of each, and the time up to which it may be read."""

    lefts: Int64s
    left_count: int
    rights: Int64s
    right_count: int
    bound: int


@device
def borrow_asked(asked: Asked) -> Asked:
    """Return the same arrays, borrowed."""
    return Asked(
        borrowed(asked.parameters),
        borrowed(asked.tests),
        borrowed(asked.where),
        borrowed(asked.among),
        borrowed(asked.first),
        borrowed(asked.key),
        borrowed(asked.spec),
    )


@device
def borrow_memory(memory: Memory) -> Memory:
    """Return the same arrays, borrowed."""
    return Memory(borrowed(memory.rows), borrowed(memory.slots), borrowed(memory.control), borrowed(memory.events))


@device
def borrow_inputs(inputs: Inputs) -> Inputs:
    """Return the same arrays, borrowed."""
    return Inputs(borrowed(inputs.lefts), inputs.left_count, borrowed(inputs.rights), inputs.right_count, inputs.bound)


@always_inline
def no_room(rows: Int64s, slots: Int64s, row_counts: Int64s, spec: Int64s) -> bool:
    """Whether there is no space for another row and its slots."""
    return bool((row_counts[ROWS] + 1) * ROW > len(rows) or row_counts[SLOTS_USED] + len(spec) // 3 > len(slots))


@device
def more_rows(rows: Int64s, slots: Int64s, row_counts: Int64s, spec: Int64s) -> tuple[Int64s, Int64s]:
    """Return copies of twice the size."""
    return (
        enlarged(rows, row_counts[ROWS] * ROW, len(rows)),
        enlarged(slots, row_counts[SLOTS_USED], len(slots) + len(spec)),
    )


@always_inline
def join_row(
    rows: Int64s,
    slots: Int64s,
    row_counts: Int64s,
    events: Int64s,
    left: int,
    right: int,
    kind: int,
    shift: int,
    spec: Int64s,
) -> Any:
    """Append a row joined from one or two rows, and return it. There must be space for it."""
    row, slot = row_counts[ROWS], row_counts[SLOTS_USED]
    write_row(rows, row, left, right, kind, shift, slot)
    fill_slots(rows, slots, events, slot, left, right, spec)
    row_counts[ROWS] += 1
    row_counts[SLOTS_USED] += len(spec) // 3
    return row


@bare_kernel
def join_all(
    lefts: Int64s,
    rights: Int64s,
    kind: int,
    shift: int,
    spec: Int64s,
    rows: Int64s,
    slots: Int64s,
    row_counts: Int64s,
    events: Int64s,
) -> None:
    """Append a row for each pair. There must be space for all."""
    rows = borrowed(rows)
    slots = borrowed(slots)
    spec = borrowed(spec)
    row_counts = borrowed(row_counts)
    events = borrowed(events)
    for k in range(len(lefts)):
        join_row(rows, slots, row_counts, events, lefts[k], rights[k], kind, shift, spec)


@bare_kernel
def join_branches(
    lefts: Int64s,
    rights: Int64s,
    shift: int,
    left_spec: Int64s,
    right_spec: Int64s,
    rows: Int64s,
    slots: Int64s,
    row_counts: Int64s,
    events: Int64s,
) -> None:
    """Append a row for each row of two lists, merged by end, left ones first."""
    rows = borrowed(rows)
    slots = borrowed(slots)
    row_counts = borrowed(row_counts)
    events = borrowed(events)
    specs = borrowed(left_spec), borrowed(right_spec)
    one, other = 0, 0
    while one < len(lefts) or other < len(rights):
        is_left = one < len(lefts)
        if is_left and other < len(rights):
            is_left = rows[lefts[one] * ROW + END] <= rows[rights[other] * ROW + END]
        if is_left:
            join_row(rows, slots, row_counts, events, lefts[one], -1, BRANCH, 0, specs[0])
            one += 1
        else:
            join_row(rows, slots, row_counts, events, -1, rights[other], BRANCH, shift, specs[1])
            other += 1


@bare_kernel
def add_sources(chosen: Int64s, size: int, rows: Int64s, slots: Int64s, row_counts: Int64s, events: Int64s) -> None:
    """Append a row of `size` slots for each of the chosen events. There must be space for all."""
    for event in chosen:
        row, slot = row_counts[ROWS], row_counts[SLOTS_USED]
        at = row * ROW
        start, end = events[event * EVENT + EVENT_START], events[event * EVENT + EVENT_END]
        rows[at + START], rows[at + END] = start, end
        rows[at + FIRST_END], rows[at + LAST_START] = end, start
        rows[at + LEFT], rows[at + RIGHT] = -1, event
        rows[at + KIND], rows[at + SHIFT], rows[at + SLOTS] = SOURCE, 0, slot
        rows[at + FIRST] = events[event * EVENT + POSITION]
        for k in range(size):
            slots[slot + k] = event
        row_counts[ROWS] += 1
        row_counts[SLOTS_USED] += size


@bare_kernel
def count_before(ids: Int64s, time: int, rows: Int64s) -> int:
    """Return how many of the rows, which are sorted by end, end before a time."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if rows[ids[middle] * ROW + END] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def satisfied(
    code: Int64s, facts: Facts, rows: Int64s, slots: Int64s, lefts: Int64s, rights: Int64s
) -> npt.NDArray[np.bool_]:
    """Return for which pairs all conditions of the code hold."""
    code = borrowed(code)
    rows = borrowed(rows)
    slots = borrowed(slots)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    found = np.empty(len(lefts), np.bool_)
    for k in range(len(lefts)):
        found[k] = holds(code, facts.room, values, width, rows, slots, lefts[k], rights[k])
    return found


@kernel
def order_new(rows: Int64s, events: Int64s, out: Int64s, begin: int, end: int, repeats: bool) -> int:
    """Sort occurrences with equal end into processing order, remove duplicates if `repeats`, and return the new end."""
    rows = borrowed(rows)
    events = borrowed(events)
    out = borrowed(out)
    to = begin
    while begin < end:
        after = begin + 1
        while after < end and rows[out[after] * ROW + END] == rows[out[begin] * ROW + END]:
            after += 1
        count = after - begin
        if count > 1:
            group = out[begin:after]
            sort_group(rows, events, group, count, False)
            if repeats:
                count = drop_repeated(rows, events, group, count)
        for k in range(count):
            out[to + k] = out[begin + k]
        to += count
        begin = after
    return to
