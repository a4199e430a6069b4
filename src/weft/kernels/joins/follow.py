"""One after the other: left occurrences joined with right ones they are before; also runs, which follow themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import inlined, kernel
from weft.kernels.joins.buckets import (
    ENDED,
    ENTRY,
    HEAD,
    ID,
    MARK,
    SINCE,
    TAIL,
    append,
    find,
    fits,
    is_full,
    probe_values,
    put_values,
    since_of,
    squeezed,
    with_room,
)
from weft.kernels.joins.joining import LEFT_AT, OUT, RIGHT_AT, STAMP, join_row, more_rows, no_room
from weft.kernels.joins.joint import Facts, all_hold, borrow, key_of
from weft.kernels.joins.occurrences import END, ROW, START, compare_histories, enlarged
from weft.kernels.memory.borrow import borrowed

Int64s = npt.NDArray[np.int64]

EACH, FIRST_ONE, NEXT_ONES = range(3)  # what is picked
# Parameters of a node.
PICK, JOINED, SHIFTED, LIMIT, LIMIT_SLOT, RUNS = range(6)


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
    tests: Int64s,
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
    """Take all that ends before `bound`, rights group by group of equal ends, each after the lefts that end before."""
    lent_rows, lent_slots, lent_out, lent_entries, lent_table = rows, slots, out, entries, table
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    entries = borrowed(entries)
    table = borrowed(table)
    parameters = borrowed(parameters)
    tests = borrowed(tests)
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
    limit, limit_slot = parameters[LIMIT], parameters[LIMIT_SLOT]
    at_end = False
    while not at_end:
        begin = control[RIGHT_AT]
        time = rows[rights[begin] * ROW + END] if begin < right_count else np.int64(bound)
        at_end = bool(time >= bound)
        if at_end and runs:  # what they gave out may still be put into order
            break
        time = min(time, np.int64(bound))
        while control[LEFT_AT] < (control[OUT] if runs else left_count):
            left = out[control[LEFT_AT]] if runs else lefts[control[LEFT_AT]]
            if rows[left * ROW + END] >= time:
                break
            control[LEFT_AT] += 1
            has, word = key_of(key, 0, values, width, rows, slots, left)
            since = since_of(rows, slots, events, left, limit_slot, time)
            if not has or (limit >= 0 and time - since > limit):
                continue
            place = find(table, word)
            if is_full(table, place):
                lent_entries, lent_table = with_room(lent_entries, lent_table, store, word, time, limit)
                entries, table = borrowed(lent_entries), borrowed(lent_table)
                place = find(table, word)
            to = append(entries, table, place, left, rows[left * ROW + END], since, 0)
            put_values(entries, to, tests, 0, values, width, rows, slots, left)
        if at_end:
            break
        end = begin + 1
        while end < right_count and rows[rights[end] * ROW + END] == time:
            end += 1
        control[RIGHT_AT] = end
        group = rights
        if pick == NEXT_ONES and end - begin > 1:
            group, begin, end = _by_history(rows, rights, begin, end), 0, end - begin
        stamp = np.int64(0)
        for k in range(begin, end):
            right = group[k]
            if pick == NEXT_ONES and (k == begin or compare_histories(rows, group[k - 1], right) != 0):
                control[STAMP] += 1
                stamp = control[STAMP]
            if runs and all_hold(first, facts, rows, slots, right, right):
                if control[OUT] == len(out):
                    lent_out = enlarged(out, control[OUT], 1)
                    out = borrowed(lent_out)
                out[control[OUT]] = right
                control[OUT] += 1
            has, word = key_of(key, 1, values, width, rows, slots, right)
            if not has:
                continue
            probe = probe_values(tests, 1, values, width, rows, slots, right)
            place = find(table, word)
            tail, gone = table[place + TAIL], 0
            here = table[place + HEAD]
            while here < tail:
                at = here * ENTRY
                if entries[at + ENDED] >= rows[right * ROW + START]:
                    break
                here += 1
                mark = entries[at + MARK]
                if (mark != 0 and mark != stamp) or (limit >= 0 and time - entries[at + SINCE] > limit):
                    entries[at + ID] = -1
                    gone += 1
                    continue
                if not fits(entries, at, tests, 0, probe, facts):
                    continue
                left = entries[at + ID]
                if pick == NEXT_ONES:
                    if len(among) > 0 and not all_hold(among, facts, rows, slots, left, right):
                        continue
                    entries[at + MARK] = stamp
                if len(where) > 0 and not all_hold(where, facts, rows, slots, left, right):
                    continue
                if no_room(rows, slots, arena, spec):
                    lent_rows, lent_slots = more_rows(rows, slots, arena, spec)
                    rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                if control[OUT] == len(out):
                    lent_out = enlarged(out, control[OUT], 1)
                    out = borrowed(lent_out)
                out[control[OUT]] = join_row(rows, slots, arena, events, left, right, kind, shift, spec)
                control[OUT] += 1
                if pick == FIRST_ONE:
                    entries[at + ID] = -1
                    gone += 1
            if gone > 0 and here == tail:
                table[place + TAIL] = squeezed(entries, table[place + HEAD], here, False)
            elif gone > 0:
                table[place + HEAD] = squeezed(entries, table[place + HEAD], here, True)
    return lent_rows, lent_slots, lent_out, lent_entries, lent_table
