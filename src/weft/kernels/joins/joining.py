"""What operators that make rows share: the numbers each keeps, room for rows, joining, and the order of what is new."""

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

# Fields of a node's control block: how much was taken of each input, what was given out, the last mark; the rest is
# the node's own. CONTROL words are kept when state is saved; STEPS_LEFT is how many partners are tried until a pause.
LEFT_AT, RIGHT_AT, OUT, STAMP = range(4)
OWN = 4
CONTROL = 7
STEPS_LEFT = 7
# Fields of the arena's control block: rows and slots used.
ROWS, SLOTS_USED = range(2)


class Asked(NamedTuple):
    """What an operator asks for: its numbers, tests and conditions, its key, and how it fills the slots of rows.

    `among` and `first` are those of `follow`: what decides, and what the first member of a run must be.
    """

    parameters: Int64s
    tests: Int64s
    where: Int64s
    among: Int64s
    first: Int64s
    key: Int64s
    spec: Int64s


class Inputs(NamedTuple):
    """What the operands gave out, how much of it, and the time before which it may be taken."""

    lefts: Int64s
    left_count: int
    rights: Int64s
    right_count: int
    bound: int


@device
def borrow_asked(asked: Asked) -> Asked:
    """The same arrays, borrowed."""
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
    """The same arrays, borrowed."""
    return Memory(borrowed(memory.rows), borrowed(memory.slots), borrowed(memory.control), borrowed(memory.events))


@device
def borrow_inputs(inputs: Inputs) -> Inputs:
    """The same arrays, borrowed."""
    return Inputs(borrowed(inputs.lefts), inputs.left_count, borrowed(inputs.rights), inputs.right_count, inputs.bound)


@always_inline
def no_room(rows: Int64s, slots: Int64s, arena: Int64s, spec: Int64s) -> bool:
    """Whether one more row, or its slots, would not fit."""
    return bool((arena[ROWS] + 1) * ROW > len(rows) or arena[SLOTS_USED] + len(spec) // 3 > len(slots))


@device
def more_rows(rows: Int64s, slots: Int64s, arena: Int64s, spec: Int64s) -> tuple[Int64s, Int64s]:
    """Copies with room for as many again."""
    return (
        enlarged(rows, arena[ROWS] * ROW, len(rows)),
        enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec)),
    )


@always_inline
def join_row(
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    left: int,
    right: int,
    kind: int,
    shift: int,
    spec: Int64s,
) -> Any:
    """Append a row joined from one or two, for which there must be room; the row."""
    row, slot = arena[ROWS], arena[SLOTS_USED]
    write_row(rows, row, left, right, kind, shift, slot)
    fill_slots(rows, slots, events, slot, left, right, spec)
    arena[ROWS] += 1
    arena[SLOTS_USED] += len(spec) // 3
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
    arena: Int64s,
    events: Int64s,
) -> None:
    """Append a row for each pair, for all of which there must be room."""
    rows = borrowed(rows)
    slots = borrowed(slots)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    for k in range(len(lefts)):
        join_row(rows, slots, arena, events, lefts[k], rights[k], kind, shift, spec)


@bare_kernel
def join_branches(
    lefts: Int64s,
    rights: Int64s,
    shift: int,
    left_spec: Int64s,
    right_spec: Int64s,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
) -> None:
    """Append a row for each of two lists, each by end: by end, so that they lie as they are read; left ones first."""
    rows = borrowed(rows)
    slots = borrowed(slots)
    arena = borrowed(arena)
    events = borrowed(events)
    specs = borrowed(left_spec), borrowed(right_spec)
    one, other = 0, 0
    while one < len(lefts) or other < len(rights):
        is_left = one < len(lefts)
        if is_left and other < len(rights):
            is_left = rows[lefts[one] * ROW + END] <= rows[rights[other] * ROW + END]
        if is_left:
            join_row(rows, slots, arena, events, lefts[one], -1, BRANCH, 0, specs[0])
            one += 1
        else:
            join_row(rows, slots, arena, events, -1, rights[other], BRANCH, shift, specs[1])
            other += 1


@bare_kernel
def add_sources(chosen: Int64s, size: int, rows: Int64s, slots: Int64s, arena: Int64s, events: Int64s) -> None:
    """Append a row of `size` slots for each of the chosen events; there must be room for all."""
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
        arena[ROWS] += 1
        arena[SLOTS_USED] += size


@bare_kernel
def count_before(ids: Int64s, time: int, rows: Int64s) -> int:
    """How many of some rows, which are by end, end before a time."""
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
    """For which of the pairs all conditions of the code hold."""
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
    """Put occurrences that end together, and stand together, into processing order, each once; where they end now."""
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
