"""At the same time, or not at all: occurrences that overlap, and those with no unwanted one about them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed
from weft.kernels.buckets import (
    BEFORE,
    ENTRY,
    HEAD,
    ID,
    NEXT,
    PLACE,
    TAIL,
    USED,
    find,
    has_room,
    insert,
    is_crowded,
    is_expired,
    remove,
    widened,
)
from weft.kernels.follow import LEFT_AT, OUT, RIGHT_AT, ROWS, SLOTS_USED, give_out, in_order, join_row, no_room
from weft.kernels.jit import inlined, kernel
from weft.kernels.joint import Facts, borrow, holds, key_of
from weft.kernels.occurrences import (
    END,
    FIRST,
    FIRST_END,
    KIND,
    LAST_START,
    MOST,
    PAIR,
    ROW,
    SOURCE,
    START,
    enlarged,
    positions_of,
)

Int64s = npt.NDArray[np.int64]

# Parameters of `overlap`; SHARE: the operands may have events in common.
SHIFT_RIGHT, SPAN, SHARE, IN_ORDER = range(4)
BEFORE_IT, DURING, BETWEEN = range(3)  # where an unwanted occurrence must not stand


@inlined
def _common(rows: Int64s, events: Int64s, one: int, other: int) -> tuple[bool, bool]:
    """Whether two occurrences have a position in common, and whether all of the other's are the one's."""
    if rows[one * ROW + KIND] == SOURCE and rows[other * ROW + KIND] == SOURCE:
        same = rows[one * ROW + FIRST] == rows[other * ROW + FIRST]
        return same, same
    positions, others = positions_of(rows, events, one), positions_of(rows, events, other)
    shared, i = 0, 0
    for position in others:
        while i < len(positions) and positions[i] < position:
            i += 1
        if i < len(positions) and positions[i] == position:
            shared += 1
    return shared > 0, shared == len(others)


@kernel
def overlap(
    parameters: Int64s,
    where: Int64s,
    key: Int64s,
    spec: Int64s,
    facts: Facts,
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
    left_store: Int64s,
    right_store: Int64s,
    out: Int64s,
    left_entries: Int64s,
    left_table: Int64s,
    right_entries: Int64s,
    right_table: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Take the occurrences of both sides that end before `bound`, group by group of equal ends, lefts first."""
    lent_rows, lent_slots, lent_out, lent_left_entries, lent_left_table, lent_right_entries, lent_right_table = (
        rows,
        slots,
        out,
        left_entries,
        left_table,
        right_entries,
        right_table,
    )
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    left_entries = borrowed(left_entries)
    left_table = borrowed(left_table)
    right_entries = borrowed(right_entries)
    right_table = borrowed(right_table)
    parameters = borrowed(parameters)
    where = borrowed(where)
    key = borrowed(key)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    lefts = borrowed(lefts)
    rights = borrowed(rights)
    control = borrowed(control)
    left_store = borrowed(left_store)
    right_store = borrowed(right_store)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    shift, span, share = parameters[SHIFT_RIGHT], parameters[SPAN], parameters[SHARE] != 0
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
        for side in range(2):
            cursor, total = (LEFT_AT, left_count) if side == 0 else (RIGHT_AT, right_count)
            inputs = lefts if side == 0 else rights
            entries = right_entries if side == 0 else left_entries
            table = right_table if side == 0 else left_table
            store = right_store if side == 0 else left_store
            while control[cursor] < total and rows[inputs[control[cursor]] * ROW + END] == time:
                one = inputs[control[cursor]]
                control[cursor] += 1
                has, word = key_of(key, side, values, width, rows, slots, one)
                if not has:
                    continue
                place = find(table, word)
                entry = table[place * PLACE + TAIL] if table[place * PLACE] != 0 else np.int64(-1)
                while entry >= 0:
                    here = entry
                    other = entries[here * ENTRY + ID]
                    if rows[other * ROW + END] < rows[one * ROW + START]:
                        break
                    entry = entries[here * ENTRY + BEFORE]
                    if is_expired(rows, slots, events, other, time, span, -1):
                        remove(entries, table, store, place, here)
                        continue
                    left, right = (one, other) if side == 0 else (other, one)
                    if not holds(where, facts, values, width, rows, slots, left, right):
                        continue
                    if share and _common(rows, events, left, right)[0]:
                        continue
                    if no_room(rows, slots, arena, spec):
                        lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                        lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
                        rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                    row = join_row(rows, slots, arena, events, left, right, PAIR, shift, spec)
                    if count == len(fresh):
                        fresh = enlarged(fresh, count, 1)
                    fresh[count] = row
                    count += 1
                if side == 0:
                    if not has_room(left_entries, left_store):
                        lent_left_entries = enlarged(left_entries, left_store[USED] * ENTRY, ENTRY)
                        left_entries = borrowed(lent_left_entries)
                    if is_crowded(left_table, left_store):
                        lent_left_table = widened(left_table)
                        left_table = borrowed(lent_left_table)
                    insert(left_entries, left_table, left_store, word, one)
                else:
                    if not has_room(right_entries, right_store):
                        lent_right_entries = enlarged(right_entries, right_store[USED] * ENTRY, ENTRY)
                        right_entries = borrowed(lent_right_entries)
                    if is_crowded(right_table, right_store):
                        lent_right_table = widened(right_table)
                        right_table = borrowed(lent_right_table)
                    insert(right_entries, right_table, right_store, word, one)
        count = in_order(rows, events, fresh, count, False, parameters[IN_ORDER] != 0)
        if control[OUT] + count > len(out):
            lent_out = enlarged(out, control[OUT], count)
            out = borrowed(lent_out)
        give_out(fresh, count, out, control)
    return (
        lent_rows,
        lent_slots,
        lent_out,
        lent_left_entries,
        lent_left_table,
        lent_right_entries,
        lent_right_table,
    )


@inlined
def _stands(rows: Int64s, events: Int64s, unwanted: int, one: int, when: int) -> bool:
    """Whether the unwanted occurrence, which has ended when the one ends, stands where it must not."""
    u, c = unwanted * ROW, one * ROW
    if when == BEFORE_IT:
        return bool(rows[u + END] < rows[c + START])
    if when == BETWEEN:
        return bool(rows[c + FIRST_END] < rows[u + START] and rows[u + END] < rows[c + LAST_START])
    return rows[c + START] <= rows[u + START] and not _common(rows, events, one, unwanted)[1]


@kernel
def without(
    when: int,
    where: Int64s,
    key: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    events: Int64s,
    inputs: Int64s,
    input_count: int,
    others: Int64s,
    other_count: int,
    bound: int,
    control: Int64s,
    store: Int64s,
    out: Int64s,
    entries: Int64s,
    table: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """Pass on the occurrences that end before `bound` and have no unwanted one where it must not stand."""
    lent_out, lent_entries, lent_table = out, entries, table
    out = borrowed(out)
    entries = borrowed(entries)
    table = borrowed(table)
    where = borrowed(where)
    key = borrowed(key)
    rows = borrowed(rows)
    slots = borrowed(slots)
    events = borrowed(events)
    inputs = borrowed(inputs)
    others = borrowed(others)
    control = borrowed(control)
    store = borrowed(store)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    while control[LEFT_AT] < input_count:
        one = inputs[control[LEFT_AT]]
        time = rows[one * ROW + END]
        if time >= bound:
            break
        control[LEFT_AT] += 1
        while control[RIGHT_AT] < other_count and rows[others[control[RIGHT_AT]] * ROW + END] <= time:
            unwanted = others[control[RIGHT_AT]]
            control[RIGHT_AT] += 1
            has, word = key_of(key, 1, values, width, rows, slots, unwanted)
            if has and not (when == BEFORE_IT and len(where) == 0 and store[0] > 0):  # then the first one is enough
                if not has_room(entries, store):
                    lent_entries = enlarged(entries, store[USED] * ENTRY, ENTRY)
                    entries = borrowed(lent_entries)
                if is_crowded(table, store):
                    lent_table = widened(table)
                    table = borrowed(lent_table)
                insert(entries, table, store, word, unwanted)
        spoilt = False
        has, word = key_of(key, 0, values, width, rows, slots, one)
        entry = np.int64(-1)
        forward = when == BEFORE_IT
        if has:
            place = find(table, word)
            if table[place * PLACE] != 0:
                entry = table[place * PLACE + (HEAD if forward else TAIL)]
        earliest = rows[one * ROW + (FIRST_END if when == BETWEEN else START)]
        while entry >= 0 and not spoilt:
            unwanted = entries[entry * ENTRY + ID]
            end = rows[unwanted * ROW + END]
            if end >= earliest if forward else end < earliest:
                break
            entry = entries[entry * ENTRY + (NEXT if forward else BEFORE)]
            spoilt = _stands(rows, events, unwanted, one, when) and holds(
                where, facts, values, width, rows, slots, one, unwanted
            )
        if not spoilt:
            if control[OUT] == len(out):
                lent_out = enlarged(out, control[OUT], 1)
                out = borrowed(lent_out)
            out[control[OUT]] = one
            control[OUT] += 1
    return (lent_out, lent_entries, lent_table)
