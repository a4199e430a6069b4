"""Iterations that report their first and last member: all sub-sequences, or one longest run at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.borrow import borrowed
from weft.kernels.buckets import ENTRY, HEAD, ID, MARK, NEXT, PLACE, USED, find, has_room, insert, is_crowded, widened
from weft.kernels.follow import OUT, RIGHT_AT, ROWS, SLOTS_USED, give_out, in_order, join_row, no_room
from weft.kernels.jit import inlined, kernel
from weft.kernels.joint import Facts, borrow, holds, key_of
from weft.kernels.occurrences import END, ROW, RUN, START, enlarged

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

# Parameters: the lengths told apart, whether the greatest stands for all greater ones, whether results can repeat,
# whether their order matters.
LENGTHS, OPEN_ENDED, REPEATED, IN_ORDER = range(4)
# Fields of the control block of `sequences`, besides those of all nodes: members so far, items of reach used.
MEMBERS, REACHED = 4, 5
# Those of `longest`: the open run's first and last member (-1: none) and its length.
RUN_FIRST, RUN_LAST, RUN_LENGTH = 4, 5, 6
ITERATE_CONTROL = 7


@inlined
def _lengthen(gathered: UInt64s, to: int, reach: Int64s, at: int, words: int, lengths: int, open_ended: bool) -> None:
    """Add to the lengths of a sub-sequence those of one that is one member shorter."""
    carry = np.uint64(0)
    for w in range(words):
        bits = np.uint64(reach[at + w])
        gathered[to + w] |= (bits << np.uint64(1)) | carry
        carry = bits >> np.uint64(63)
    last, bit = (lengths - 1) // 64, np.uint64((lengths - 1) % 64)
    if open_ended:
        gathered[to + last] |= np.uint64(reach[at + last]) & (np.uint64(1) << bit)
    beyond = lengths // 64
    if beyond < words:
        gathered[to + beyond] &= ~(np.uint64(1) << np.uint64(lengths % 64))


@kernel
def sequences(
    parameters: Int64s,
    allowed: UInt64s,
    where: Int64s,
    key: Int64s,
    spec: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    inputs: Int64s,
    input_count: int,
    bound: int,
    control: Int64s,
    store: Int64s,
    out: Int64s,
    entries: Int64s,
    table: Int64s,
    members: Int64s,
    reach: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Take the members that end before `bound`.

    `members` has (row, where its items of `reach` begin, how many) of each; an item is the first member of
    sub-sequences that end here, and the set of their lengths.
    """
    lent_rows, lent_slots, lent_out, lent_entries, lent_table, lent_members, lent_reach = (
        rows,
        slots,
        out,
        entries,
        table,
        members,
        reach,
    )
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    entries = borrowed(entries)
    table = borrowed(table)
    members = borrowed(members)
    reach = borrowed(reach)
    parameters = borrowed(parameters)
    allowed = borrowed(allowed)
    where = borrowed(where)
    key = borrowed(key)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    inputs = borrowed(inputs)
    control = borrowed(control)
    store = borrowed(store)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    lengths, open_ended, repeats = parameters[LENGTHS], parameters[OPEN_ENDED] != 0, parameters[REPEATED] != 0
    words = len(allowed)
    item = 1 + words
    top = np.uint64(1) << np.uint64((lengths - 1) % 64)  # with one word: the greatest length, and all of them
    mask = (top - np.uint64(1)) | top
    stays = top if open_ended else np.uint64(0)
    fresh = np.empty(64, np.int64)
    touched = np.empty(64, np.int64)
    gathered = np.zeros(max(64, control[MEMBERS] * words), np.uint64)
    seen = np.zeros(max(64, control[MEMBERS]), np.bool_)
    while control[RIGHT_AT] < input_count:
        time = rows[inputs[control[RIGHT_AT]] * ROW + END]
        if time >= bound:
            break
        count = 0
        while control[RIGHT_AT] < input_count:
            member = inputs[control[RIGHT_AT]]
            if rows[member * ROW + END] != time:
                break
            control[RIGHT_AT] += 1
            number = control[MEMBERS]
            control[MEMBERS] += 1
            if (number + 1) * words > len(gathered) or number + 1 > len(seen):
                gathered = np.zeros(2 * (number + 1) * words, np.uint64)
                seen = np.zeros(2 * (number + 1), np.bool_)
            gathered[number * words] = np.uint64(1)
            touched[0] = number
            reached = 1
            has, word = key_of(key, 1, values, width, rows, slots, member)
            entry = np.int64(-1)
            if has:
                place = find(table, word)
                entry = table[place * PLACE + HEAD] if table[place * PLACE] != 0 else np.int64(-1)
            while entry >= 0:
                before = entries[entry * ENTRY + ID]
                if rows[before * ROW + END] >= rows[member * ROW + START]:
                    break
                which = entries[entry * ENTRY + MARK]
                entry = entries[entry * ENTRY + NEXT]
                if not holds(where, facts, values, width, rows, slots, before, member):
                    continue
                at = members[3 * which + 1]
                for _ in range(members[3 * which + 2]):
                    first = reach[at]
                    if not seen[first]:
                        seen[first] = True
                        if reached + 1 > len(touched):
                            touched = enlarged(touched, reached, 1)
                        touched[reached] = first
                        reached += 1
                    if words == 1:
                        bits = np.uint64(reach[at + 1])
                        gathered[first] |= ((bits << np.uint64(1)) & mask) | (bits & stays)
                    else:
                        _lengthen(gathered, first * words, reach, at + 1, words, lengths, open_ended)
                    at += item
            if 3 * number + 3 > len(members):
                lent_members = enlarged(members, 3 * number, 3)
                members = borrowed(lent_members)
            members[3 * number], members[3 * number + 1] = member, control[REACHED]
            if control[REACHED] + reached * item > len(reach):
                lent_reach = enlarged(reach, control[REACHED], reached * item)
                reach = borrowed(lent_reach)
            kept = 0
            for k in range(reached):
                first = touched[k]
                seen[first] = False
                some, reported = False, False
                for w in range(words):
                    bits = gathered[first * words + w]
                    gathered[first * words + w] = np.uint64(0)
                    some = some or bits != 0
                    reported = reported or (bits & allowed[w]) != 0
                    reach[control[REACHED] + 1 + w] = np.int64(bits)
                if not some:
                    continue
                reach[control[REACHED]] = first
                control[REACHED] += item
                kept += 1
                if reported:
                    row = member
                    if first != number:
                        if no_room(rows, slots, arena, spec):
                            lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                            lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
                            rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                        row = join_row(rows, slots, arena, events, members[3 * first], member, RUN, 0, spec)
                    if count == len(fresh):
                        fresh = enlarged(fresh, count, 1)
                    fresh[count] = row
                    count += 1
            members[3 * number + 2] = kept
            has, word = key_of(key, 0, values, width, rows, slots, member)
            if has:
                if not has_room(entries, store):
                    lent_entries = enlarged(entries, store[USED] * ENTRY, ENTRY)
                    entries = borrowed(lent_entries)
                if is_crowded(table, store):
                    lent_table = widened(table)
                    table = borrowed(lent_table)
                stored = insert(entries, table, store, word, member)
                entries[stored * ENTRY + MARK] = number
        count = in_order(rows, events, fresh, count, repeats, parameters[IN_ORDER] != 0)
        if control[OUT] + count > len(out):
            lent_out = enlarged(out, control[OUT], count)
            out = borrowed(lent_out)
        give_out(fresh, count, out, control)
    return (
        lent_rows,
        lent_slots,
        lent_out,
        lent_entries,
        lent_table,
        lent_members,
        lent_reach,
    )


@inlined
def _is_allowed(length: int, low: int, high: int, excluded: Int64s) -> bool:
    if length < low or (high >= 0 and length > high):
        return False
    found = True
    for k in range(len(excluded)):
        found = found and excluded[k] != length
    return found


@kernel
def longest(
    low: int,
    high: int,
    top: int,
    excluded: Int64s,
    where: Int64s,
    spec: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    arena: Int64s,
    events: Int64s,
    inputs: Int64s,
    input_count: int,
    bound: int,
    finished: bool,
    control: Int64s,
    out: Int64s,
) -> tuple[Int64s, Int64s, Int64s]:
    """Take the members that end before `bound`; `top` is the greatest allowed length (-1: any is)."""
    lent_rows, lent_slots, lent_out = rows, slots, out
    rows = borrowed(rows)
    slots = borrowed(slots)
    out = borrowed(out)
    excluded = borrowed(excluded)
    where = borrowed(where)
    spec = borrowed(spec)
    arena = borrowed(arena)
    events = borrowed(events)
    inputs = borrowed(inputs)
    control = borrowed(control)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    first, last, length = control[RUN_FIRST], control[RUN_LAST], control[RUN_LENGTH]
    while True:
        at_end = control[RIGHT_AT] >= input_count
        member: Any = np.int64(-1)
        if not at_end:
            member = inputs[control[RIGHT_AT]]
            at_end = rows[member * ROW + END] >= bound
        if at_end and not finished:
            break
        if (
            not at_end
            and length > 0
            and (high < 0 or length < top)
            and rows[last * ROW + END] < rows[member * ROW + START]
            and holds(where, facts, values, width, rows, slots, last, member)
        ):
            last = member
            length += 1
            control[RIGHT_AT] += 1
            continue
        if length > 0 and _is_allowed(length, low, high, excluded):
            row = first
            if first != last:
                if no_room(rows, slots, arena, spec):
                    lent_rows = enlarged(rows, arena[ROWS] * ROW, len(rows))
                    lent_slots = enlarged(slots, arena[SLOTS_USED], len(slots) + len(spec))
                    rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                row = join_row(rows, slots, arena, events, first, last, RUN, 0, spec)
            if control[OUT] == len(out):
                lent_out = enlarged(out, control[OUT], 1)
                out = borrowed(lent_out)
            out[control[OUT]] = row
            control[OUT] += 1
        if at_end:
            length = 0
            break
        first = last = member
        length = 1
        control[RIGHT_AT] += 1
    control[RUN_FIRST], control[RUN_LAST], control[RUN_LENGTH] = first, last, length
    return (lent_rows, lent_slots, lent_out)
