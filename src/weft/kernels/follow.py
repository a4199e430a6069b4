"""One after the other: left occurrences joined with right ones they are before; also runs, which follow themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed
from weft.kernels.buckets import (
    ENTRY,
    HEAD,
    ID,
    MARK,
    NEXT,
    PLACE,
    USED,
    find,
    has_room,
    insert,
    is_crowded,
    is_expired,
    remove,
    widened,
)
from weft.kernels.jit import inlined, kernel, spliced
from weft.kernels.joint import Facts, borrow, holds, key_of
from weft.kernels.occurrences import (
    END,
    ROW,
    START,
    compare_histories,
    drop_repeated,
    enlarged,
    fill_slots,
    sort_group,
    write_row,
)

Int64s = npt.NDArray[np.int64]

EACH, FIRST_ONE, NEXT_ONES = range(3)  # what is picked
# Parameters of a node.
PICK, JOINED, SHIFTED, LIMIT, LIMIT_SLOT, REPEATS, RUNS, ORDERED = range(8)
# Fields of a node's control block, before those of its stores.
LEFT_AT, RIGHT_AT, OUT, STAMP = range(4)
CONTROL = 4
# Fields of the arena's control block: rows and slots used.
ROWS, SLOTS_USED = range(2)


@spliced
def no_room(rows: Int64s, slots: Int64s, arena: Int64s, spec: Int64s) -> bool:
    """Whether one more row, or its slots, would not fit."""
    return bool((arena[ROWS] + 1) * ROW > len(rows) or arena[SLOTS_USED] + len(spec) // 3 > len(slots))


@spliced
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


@inlined
def in_order(rows: Int64s, events: Int64s, fresh: Int64s, count: int, repeats: bool, ordered: bool) -> int:
    """Put occurrences that end together into processing order, if it matters, each once; how many there are."""
    if not (ordered or repeats) or count == 0:
        return count
    sort_group(rows, events, fresh, count)
    return drop_repeated(rows, events, fresh, count) if repeats else count


@spliced
def give_out(fresh: Int64s, count: int, out: Int64s, control: Int64s) -> None:
    """Append occurrences to a node's output, for which there must be room."""
    for k in range(count):
        out[control[OUT] + k] = fresh[k]
    control[OUT] += count


@inlined
def _by_history(rows: Int64s, rights: Int64s, begin: int, end: int) -> Int64s:
    """The occurrences in the order of their complete histories."""
    group = rights[begin:end].copy()
    for k in range(1, len(group)):
        one, at = group[k], k
        while at > 0 and compare_histories(rows, group[at - 1], one) > 0:
            group[at] = group[at - 1]
            at -= 1
        group[at] = one
    return group


@kernel
def follow(
    parameters: Int64s,
    where: Int64s,
    among: Int64s,
    first: Int64s,
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
    store: Int64s,
    out: Int64s,
    entries: Int64s,
    table: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Take the right occurrences that end before `bound`, group by group of equal ends."""
    lent_rows, lent_slots, lent_out, lent_entries, lent_table = rows, slots, out, entries, table
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    entries = borrowed(entries)
    table = borrowed(table)
    parameters = borrowed(parameters)
    where = borrowed(where)
    among = borrowed(among)
    first = borrowed(first)
    key = borrowed(key)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    lefts = borrowed(lefts)
    rights = borrowed(rights)
    control = borrowed(control)
    store = borrowed(store)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    pick, kind, shift, runs = parameters[PICK], parameters[JOINED], parameters[SHIFTED], parameters[RUNS] != 0
    limit, limit_slot, repeats = parameters[LIMIT], parameters[LIMIT_SLOT], parameters[REPEATS] != 0
    fresh = np.empty(64, np.int64)
    while control[RIGHT_AT] < right_count:
        begin = control[RIGHT_AT]
        time = rows[rights[begin] * ROW + END]
        if time >= bound:
            break
        while control[LEFT_AT] < (control[OUT] if runs else left_count):
            left = out[control[LEFT_AT]] if runs else lefts[control[LEFT_AT]]
            if rows[left * ROW + END] >= time:
                break
            control[LEFT_AT] += 1
            has, word = key_of(key, 0, values, width, rows, slots, left)
            if has and not is_expired(rows, slots, events, left, time, limit, limit_slot):
                if not has_room(entries, store):
                    lent_entries = enlarged(entries, store[USED] * ENTRY, ENTRY)
                    entries = borrowed(lent_entries)
                if is_crowded(table, store):
                    lent_table = widened(table)
                    table = borrowed(lent_table)
                insert(entries, table, store, word, left)
        end = begin + 1
        while end < right_count and rows[rights[end] * ROW + END] == time:
            end += 1
        group = rights
        at = begin
        if pick == NEXT_ONES and end - begin > 1:
            group, at, begin, end = _by_history(rows, rights, begin, end), 0, 0, end - begin
        count = 0
        stamp = np.int64(0)
        while at < end:
            right = group[at]
            if pick == NEXT_ONES and (at == begin or compare_histories(rows, group[at - 1], right) != 0):
                control[STAMP] += 1
                stamp = control[STAMP]
            at += 1
            if runs and holds(first, facts, values, width, rows, slots, right, right):
                if count == len(fresh):
                    fresh = enlarged(fresh, count, 1)
                fresh[count] = right
                count += 1
            has, word = key_of(key, 1, values, width, rows, slots, right)
            if not has:
                continue
            place = find(table, word)
            entry = table[place * PLACE + HEAD] if table[place * PLACE] != 0 else np.int64(-1)
            while entry >= 0:
                here = entry
                left = entries[here * ENTRY + ID]
                if rows[left * ROW + END] >= rows[right * ROW + START]:
                    break
                entry = entries[here * ENTRY + NEXT]
                mark = entries[here * ENTRY + MARK]
                if (mark != 0 and mark != stamp) or is_expired(rows, slots, events, left, time, limit, limit_slot):
                    remove(entries, table, store, place, here)
                    continue
                if pick == NEXT_ONES:
                    if not holds(among, facts, values, width, rows, slots, left, right):
                        continue
                    entries[here * ENTRY + MARK] = stamp
                if not holds(where, facts, values, width, rows, slots, left, right):
                    continue
                if no_room(rows, slots, arena, spec):
                    lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                    lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
                    rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                row = join_row(rows, slots, arena, events, left, right, kind, shift, spec)
                if count == len(fresh):
                    fresh = enlarged(fresh, count, 1)
                fresh[count] = row
                count += 1
                if pick == FIRST_ONE:
                    remove(entries, table, store, place, here)
        count = in_order(rows, events, fresh, count, repeats, parameters[ORDERED] != 0)
        if control[OUT] + count > len(out):
            lent_out = enlarged(out, control[OUT], count)
            out = borrowed(lent_out)
        give_out(fresh, count, out, control)
        control[RIGHT_AT] += end - begin
    return (
        lent_rows,
        lent_slots,
        lent_out,
        lent_entries,
        lent_table,
    )
