"""One after the other: left occurrences joined with right ones they are before; also runs, which follow themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed, owned
from weft.kernels.buckets import ENTRY, HEAD, ID, MARK, NEXT, PLACE, find, insert, is_expired, remove
from weft.kernels.jit import inlined, kernel, spliced
from weft.kernels.joint import Facts, borrow, holds, key_of
from weft.kernels.occurrences import (
    END,
    ROW,
    START,
    compare_histories,
    drop_repeated,
    fill_slots,
    grown,
    sort_group,
    write_row,
)

Int64s = npt.NDArray[np.int64]

EACH, FIRST_ONE, NEXT_ONES = range(3)  # what is picked
# Parameters of a node.
PICK, JOINED, SHIFTED, LIMIT, LIMIT_SLOT, REPEATS, RUNS = range(7)
PARAMETERS = 7
# Fields of a node's control block, before those of its stores.
LEFT_AT, RIGHT_AT, OUT, STAMP = range(4)
CONTROL = 4
# Fields of the arena's control block: rows and slots used.
ROWS, SLOTS_USED = range(2)


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
) -> tuple[Int64s, Int64s, int]:
    """Append a row joined from two; the arrays, which may be new, and the row."""
    row, slot = arena[ROWS], arena[SLOTS_USED]
    size = len(spec) // 3
    if (row + 1) * ROW > len(rows):
        rows = grown(rows, row * ROW, ROW)
    if slot + size > len(slots):
        slots = grown(slots, slot, size)
    write_row(rows, row, left, right, kind, shift, slot)
    fill_slots(rows, slots, events, slot, left, right, spec)
    arena[ROWS] += 1
    arena[SLOTS_USED] += size
    return rows, slots, row


@inlined
def give_out(
    rows: Int64s, events: Int64s, fresh: Int64s, count: int, repeats: bool, out: Int64s, control: Int64s
) -> Int64s:
    """Append occurrences that end together to a node's output, in processing order."""
    sort_group(rows, events, fresh, count)
    if repeats:
        count = drop_repeated(rows, events, fresh, count)
    out = grown(out, control[OUT], count)
    for k in range(count):
        out[control[OUT] + k] = fresh[k]
    control[OUT] += count
    return out


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
                entries, table, _ = insert(entries, table, store, word, left)
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
                    fresh = grown(fresh, count, 1)
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
                rows, slots, row = join_row(rows, slots, arena, events, left, right, kind, shift, spec)
                if count == len(fresh):
                    fresh = grown(fresh, count, 1)
                fresh[count] = row
                count += 1
                if pick == FIRST_ONE:
                    remove(entries, table, store, place, here)
        out = give_out(rows, events, fresh, count, repeats, out, control)
        control[RIGHT_AT] += end - begin
    return (
        owned(rows, lent_rows),
        owned(slots, lent_slots),
        owned(out, lent_out),
        owned(entries, lent_entries),
        owned(table, lent_table),
    )
