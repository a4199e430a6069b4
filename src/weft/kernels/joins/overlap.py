"""Occurrences that overlap, and occurrences without an excluded one before, during or between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device, device_no_refcount, kernel
from weft.kernels.joins.buckets import (
    ENDED,
    ENTRY,
    HEAD,
    ID,
    SINCE,
    TAIL,
    Buckets,
    append,
    find,
    fits,
    is_full,
    make_room,
    probe_values,
    put_values,
    remove_gaps,
    with_room,
)
from weft.kernels.joins.joining import (
    LEFT_AT,
    OUT,
    OWN,
    RIGHT_AT,
    STEPS_LEFT,
    Asked,
    Inputs,
    borrow_asked,
    borrow_inputs,
    borrow_memory,
    join_row,
    more_rows,
    no_room,
)
from weft.kernels.joins.joint import Facts, all_hold, borrow, key_of
from weft.kernels.joins.occurrences import (
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
    Memory,
    positions_of,
)
from weft.kernels.memory.borrow import borrowed
from weft.kernels.memory.growing import enlarged, grown

Int64s = npt.NDArray[np.int64]

# Parameters of `overlap`; SHARE: the operands may have events in common.
SHIFT_RIGHT, SPAN, SHARE = range(3)
# Parameters of `without`: where an excluded occurrence must not be; whether the first one decides for all time; for
# how many ticks one can matter (-1: for ever).
WHEN, ONE_IS_ENOUGH, LIMIT = range(3)
BEFORE_IT, DURING, BETWEEN = range(3)
ASKED = OWN  # additional control word: the key that needs space
DONE, MORE, PAUSE = range(3)


@device
def _common(rows: Int64s, events: Int64s, one: int, other: int) -> tuple[bool, bool]:
    """Return whether two occurrences share a position, and whether the first has all positions of the other."""
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
    asked: Asked,
    facts: Facts,
    memory: Memory,
    inputs: Inputs,
    control: Int64s,
    left_buckets: Buckets,
    right_buckets: Buckets,
    out: Int64s,
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Join the occurrences of both sides that end before a bound, in groups of equal ends, left ones first.

    If STEPS_LEFT is negative afterwards, call it again to resume.
    """
    lent_rows, lent_slots, lent_out = memory.rows, memory.slots, out
    lent_left_entries, lent_left_table, lent_left_store = left_buckets
    lent_right_entries, lent_right_table, lent_right_store = right_buckets
    parameters, tests, where, _, _, key, spec = borrow_asked(asked)
    rows, slots, row_counts, events = borrow_memory(memory)
    lefts, left_count, rights, right_count, bound = borrow_inputs(inputs)
    out, control = borrowed(out), borrowed(control)
    left_entries, left_table = borrowed(lent_left_entries), borrowed(lent_left_table)
    right_entries, right_table = borrowed(lent_right_entries), borrowed(lent_right_table)
    left_store, right_store = borrowed(lent_left_store), borrowed(lent_right_store)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    shift, span, share = parameters[SHIFT_RIGHT], parameters[SPAN], parameters[SHARE] != 0
    while control[STEPS_LEFT] >= 0:
        left_time = rows[lefts[control[LEFT_AT]] * ROW + END] if control[LEFT_AT] < left_count else MOST
        right_time = rows[rights[control[RIGHT_AT]] * ROW + END] if control[RIGHT_AT] < right_count else MOST
        time = min(left_time, right_time)
        if time >= bound:
            break
        side = 0 if left_time <= right_time else 1
        one = lefts[control[LEFT_AT]] if side == 0 else rights[control[RIGHT_AT]]
        control[LEFT_AT if side == 0 else RIGHT_AT] += 1
        has, word = key_of(key, side, values, width, rows, slots, one)
        start = rows[one * ROW + START]
        if not has or (span >= 0 and time - start > span):
            continue
        entries = right_entries if side == 0 else left_entries
        table = right_table if side == 0 else left_table
        probe = probe_values(tests, side, values, width, rows, slots, one)
        place = find(table, word)
        head, gone = table[place + HEAD], 0
        here = table[place + TAIL]
        while here > head:
            at = (here - 1) * ENTRY
            if entries[at + ENDED] < start:
                break
            here -= 1
            if span >= 0 and time - entries[at + SINCE] > span:
                entries[at + ID] = -1
                gone += 1
                continue
            if not fits(entries, at, tests, 1 - side, probe, facts):
                continue
            other = entries[at + ID]
            left, right = (one, other) if side == 0 else (other, one)
            if len(where) > 0 and not all_hold(where, facts, rows, slots, left, right):
                continue
            if share and _common(rows, events, left, right)[0]:
                continue
            if no_room(rows, slots, row_counts, spec):
                lent_rows, lent_slots = more_rows(rows, slots, row_counts, spec)
                rows, slots = borrowed(lent_rows), borrowed(lent_slots)
            if control[OUT] == len(out):
                lent_out = enlarged(out, control[OUT], 1)
                out = borrowed(lent_out)
            out[control[OUT]] = join_row(rows, slots, row_counts, events, left, right, PAIR, shift, spec)
            control[OUT] += 1
        control[STEPS_LEFT] -= table[place + TAIL] - here
        if gone > 0:
            table[place + TAIL] = remove_gaps(entries, here, table[place + TAIL], False)
        if side == 0:
            if is_full(left_table, find(left_table, word)):
                lent_left_entries, lent_left_table = with_room(
                    lent_left_entries, lent_left_table, left_store, word, time, span
                )
                left_entries, left_table = borrowed(lent_left_entries), borrowed(lent_left_table)
        elif is_full(right_table, find(right_table, word)):
            lent_right_entries, lent_right_table = with_room(
                lent_right_entries, lent_right_table, right_store, word, time, span
            )
            right_entries, right_table = borrowed(lent_right_entries), borrowed(lent_right_table)
        entries = left_entries if side == 0 else right_entries
        table = left_table if side == 0 else right_table
        to = append(entries, table, find(table, word), one, time, start, 0)
        put_values(entries, to, tests, side, values, width, rows, slots, one)
    return (
        lent_rows,
        lent_slots,
        lent_out,
        lent_left_entries,
        lent_left_table,
        lent_right_entries,
        lent_right_table,
    )


@device
def _excludes(rows: Int64s, events: Int64s, unwanted: Any, one: Any, when: int) -> bool:
    """Whether an excluded occurrence, which does not end later than the other, is in the forbidden range."""
    u, c = unwanted * ROW, one * ROW
    if when == BEFORE_IT:
        return bool(rows[u + END] < rows[c + START])
    if when == BETWEEN:
        return bool(rows[c + FIRST_END] < rows[u + START] and rows[u + END] < rows[c + LAST_START])
    return rows[c + START] <= rows[u + START] and not _common(rows, events, one, unwanted)[1]


@device_no_refcount
def _filter_lefts(
    asked: Asked, facts: Facts, memory: Memory, inputs: Inputs, control: Int64s, buckets: Buckets, out: Int64s
) -> int:
    """Filter left occurrences while there is space: DONE, PAUSE, or MORE with the key that needs space in ASKED."""
    parameters, tests, where, _, _, key, _ = asked
    rows, slots, _, events = memory
    lefts, left_count, rights, right_count, bound = inputs
    entries, table, store = buckets
    values, width = facts.values, facts.width
    when, one_is_enough = parameters[WHEN], parameters[ONE_IS_ENOUGH] != 0
    forward = when == BEFORE_IT
    while control[STEPS_LEFT] >= 0:
        one = lefts[control[LEFT_AT]] if control[LEFT_AT] < left_count else np.int64(-1)
        at_end = one < 0 or rows[one * ROW + END] >= bound
        time = np.int64(bound) if at_end else rows[one * ROW + END]
        while control[RIGHT_AT] < right_count:
            unwanted = rights[control[RIGHT_AT]]
            if rows[unwanted * ROW + END] > time or rows[unwanted * ROW + END] >= bound:
                break
            has, word = key_of(key, 1, values, width, rows, slots, unwanted)
            place = find(table, word)
            if has and not (one_is_enough and table[place + TAIL] > 0):
                if is_full(table, place):
                    if not make_room(entries, table, store, word, time, parameters[LIMIT]):
                        control[ASKED] = np.int64(word)
                        return MORE
                    place = find(table, word)
                u = unwanted * ROW
                to = append(entries, table, place, unwanted, rows[u + END], rows[u + START], 0)
                put_values(entries, to, tests, 1, values, width, rows, slots, unwanted)
            control[RIGHT_AT] += 1
        if at_end:
            return DONE
        control[LEFT_AT] += 1
        has, word = key_of(key, 0, values, width, rows, slots, one)
        head, tail = np.int64(0), np.int64(0)
        if has:
            place = find(table, word)
            head, tail = table[place + HEAD], table[place + TAIL]
        probe = probe_values(tests, 0, values, width, rows, slots, one)
        earliest = rows[one * ROW + (FIRST_END if when == BETWEEN else START)]
        spoilt = False
        control[STEPS_LEFT] -= tail - head
        while head < tail and not spoilt:
            at = (head if forward else tail - 1) * ENTRY
            ended = entries[at + ENDED]
            if ended >= earliest if forward else ended < earliest:
                break
            if forward:
                head += 1
            else:
                tail -= 1
            unwanted = entries[at + ID]
            spoilt = (
                fits(entries, at, tests, 1, probe, facts)
                and _excludes(rows, events, unwanted, one, when)
                and (len(where) == 0 or all_hold(where, facts, rows, slots, one, unwanted))
            )
        control[STEPS_LEFT] += tail - head  # which were not visited
        if not spoilt:
            out[control[OUT]] = one
            control[OUT] += 1
    return PAUSE


@kernel
def without(
    asked: Asked, facts: Facts, memory: Memory, inputs: Inputs, control: Int64s, buckets: Buckets, out: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Emit the left occurrences that end before a bound and have no excluded one in the forbidden range.

    If STEPS_LEFT is negative afterwards, call it again to resume.
    """
    out = grown(out, control[OUT], inputs.left_count - control[LEFT_AT])
    entries, table, store = buckets
    facts = borrow(facts)
    while True:
        answer = _filter_lefts(
            borrow_asked(asked),
            facts,
            borrow_memory(memory),
            borrow_inputs(inputs),
            control,
            Buckets(entries, table, store),
            out,
        )
        if answer != MORE:
            return out, entries, table
        word = np.uint64(control[ASKED])
        entries, table = with_room(entries, table, store, word, np.int64(inputs.bound), -1)
