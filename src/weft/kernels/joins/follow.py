"""Join left occurrences with right ones that follow them; a run joins its own output."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, TRUTHS
from weft.kernels.jit import always_inline, device, device_no_refcount, kernel
from weft.kernels.joins.buckets import (
    ENDED,
    ENTRY,
    HEAD,
    ID,
    MARK,
    PLACE,
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
    since_of,
    with_room,
)
from weft.kernels.joins.joining import (
    LEFT_AT,
    OUT,
    OWN,
    RIGHT_AT,
    ROWS,
    SLOTS_USED,
    STAMP,
    STEPS_LEFT,
    Asked,
    Inputs,
    borrow_asked,
    borrow_inputs,
    borrow_memory,
    join_row,
)
from weft.kernels.joins.joint import Facts, all_hold, borrow, key_of
from weft.kernels.joins.occurrences import END, KIND, LEFT, MOST, RIGHT, ROW, RUN, START, Memory
from weft.kernels.joins.ordering import compare_histories, sort_group
from weft.kernels.memory.growing import grown
from weft.kernels.memory.prefetch import prefetch

Int64s = npt.NDArray[np.int64]

EACH, FIRST_ONE, NEXT_ONES = range(3)  # what is picked
# Parameters of a node. NEEDED: required truths of the right event, as bits; LONGEST: members of a run (0: any number).
PICK, JOINED, SHIFTED, LIMIT, LIMIT_SLOT, RUNS, NEEDED, LONGEST = range(8)
# Additional control words: where the current group begins and ends in the right input, and how much
# space is requested.
GROUP, GROUP_END, ASKED = range(OWN, OWN + 3)
# Why the kernel stops: done; no space for rows or output, in the store, in the sorted group; or a pause.
DONE, MORE_ROWS, MORE_ENTRIES, MORE_GROUP, PAUSE = range(5)
AHEAD = 16  # right rows whose keys are computed in advance
FAR = 1 << 15  # words of a table that does not fit into the cache


@device
def _sort_by_history(rows: Int64s, events: Int64s, rights: Int64s, begin: int, end: int, group: Int64s) -> None:
    """Write the occurrences in the order of their complete histories."""
    for k in range(end - begin):
        group[k] = rights[begin + k]
    sort_group(rows, events, group, end - begin, True)


@always_inline
def _look_ahead(
    key: Int64s,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    inputs: Inputs,
    at: Any,
    known: Any,
    ahead: Int64s,
    entries: Int64s,
    table: Int64s,
) -> Any:
    """Compute the keys of the next right rows, and prefetch their places in a large table, later the entries there.

    Return how many keys are known; 0 is stored for a missing key.
    """
    far = len(table) > FAR
    rights, count = inputs.rights, inputs.right_count
    while known < count and known < at + AHEAD:
        has, word = key_of(key, 1, facts.values, facts.width, rows, slots, rights[known])
        ahead[known % AHEAD] = np.int64(word | np.uint64(1)) if has else 0
        known += 1
        if far and has:
            place = ((np.int64(word) >> 1) & (len(table) // PLACE - 1)) * PLACE
            prefetch(table, place)
            prefetch(table, place + PLACE - 1)
    soon = at + AHEAD // 2
    if far and soon < known and ahead[soon % AHEAD] != 0:
        prefetch(entries, table[find(table, np.uint64(ahead[soon % AHEAD])) + HEAD] * ENTRY)
    return known


@always_inline
def _first_after(rows: Int64s, rights: Int64s, here: Any, count: int, time: Any, bound: int) -> Any:
    """Return the place of the first right row from `here` on that ends after a time, or not before the bound."""
    while here < count:
        end = rows[rights[here] * ROW + END]
        if end > time or end >= bound:
            break
        here += 1
    return here


@device_no_refcount
def _is_complete(rows: Int64s, run: Any, longest: int) -> bool:
    """Whether a run has the greatest number of members; each of its rows links to the run before it."""
    members = 1
    while members < longest and rows[run * ROW + KIND] == RUN:
        run = rows[run * ROW + LEFT]
        members += 1
    return members >= longest


@device_no_refcount
def _process(
    asked: Asked,
    facts: Facts,
    memory: Memory,
    inputs: Inputs,
    control: Int64s,
    buckets: Buckets,
    out: Int64s,
    ordered: Int64s,
    ahead: Int64s,
) -> int:
    """Process rows while there is space; return why it stopped. Call it again to resume."""
    parameters, tests, where, among, first, key, spec = asked
    rows, slots, row_counts, events = memory
    lefts, left_count, rights, right_count, bound = inputs
    entries, table, store = buckets
    values, width = facts.values, facts.width
    pick, kind, shift, runs = parameters[PICK], parameters[JOINED], parameters[SHIFTED], parameters[RUNS] != 0
    limit, limit_slot, needed = parameters[LIMIT], parameters[LIMIT_SLOT], parameters[NEEDED]
    longest = parameters[LONGEST]
    known = control[RIGHT_AT]
    while True:
        here = control[RIGHT_AT]
        if here == control[GROUP_END]:  # the next group
            if control[STEPS_LEFT] < 0:
                return PAUSE
            time = rows[rights[here] * ROW + END] if here < right_count else np.int64(bound)
            at_end = time >= bound
            if at_end and runs:  # their output may still be sorted
                return DONE
            time = min(time, np.int64(bound))
            while control[LEFT_AT] < (control[OUT] if runs else left_count):
                left = out[control[LEFT_AT]] if runs else lefts[control[LEFT_AT]]
                if rows[left * ROW + END] >= time:
                    break
                has, word = key_of(key, 0, values, width, rows, slots, left)
                if longest > 0 and _is_complete(rows, left, longest):
                    has = False
                since = since_of(rows, slots, events, left, limit_slot, time)
                if has and (limit < 0 or time - since <= limit):
                    place = find(table, word)
                    if is_full(table, place):
                        if not make_room(entries, table, store, word, time, limit):
                            control[ASKED] = np.int64(word)
                            return MORE_ENTRIES
                        place = find(table, word)
                    to = append(entries, table, place, left, rows[left * ROW + END], since, 0)
                    put_values(entries, to, tests, 0, values, width, rows, slots, left)
                control[LEFT_AT] += 1
            if at_end:
                return DONE
            if len(key) == 0 and not runs:
                place = find(table, key_of(key, 0, values, width, rows, slots, rights[here])[1])
                if table[place + HEAD] == table[place + TAIL]:  # the store is empty until the next left row has ended
                    after = rows[lefts[control[LEFT_AT]] * ROW + END] if control[LEFT_AT] < left_count else MOST
                    here = _first_after(rows, rights, here, right_count, after, bound)
                    control[RIGHT_AT] = control[GROUP_END] = here
                    known = max(known, here)
                    continue
            end = here + 1
            while end < right_count and rows[rights[end] * ROW + END] == time:
                end += 1
            if pick == NEXT_ONES and end - here > 1:
                if end - here > len(ordered):
                    control[ASKED] = end - here
                    return MORE_GROUP
                _sort_by_history(rows, events, rights, here, end, ordered)
            control[GROUP], control[GROUP_END] = here, end
        known = _look_ahead(key, facts, rows, slots, inputs, here, known, ahead, entries, table)
        nth = here - control[GROUP]
        by_history = pick == NEXT_ONES and control[GROUP_END] - control[GROUP] > 1
        right, has, word = rights[here], ahead[here % AHEAD] != 0, np.uint64(ahead[here % AHEAD])
        if by_history:
            right = ordered[nth]
            has, word = key_of(key, 1, values, width, rows, slots, right)
        place = find(table, word)
        at, tail = table[place + HEAD], table[place + TAIL]
        if not has:
            at = tail
        most = tail - at + 1
        if (
            control[OUT] + most > len(out)
            or (row_counts[ROWS] + most) * ROW > len(rows)
            or row_counts[SLOTS_USED] + most * (len(spec) // 3) > len(slots)
        ):
            control[ASKED] = most
            return MORE_ROWS
        if pick == NEXT_ONES and (nth == 0 or compare_histories(rows, ordered[nth - 1], right) != 0):
            control[STAMP] += 1
        if runs and all_hold(first, facts, rows, slots, right, right):
            out[control[OUT]] = right
            control[OUT] += 1
        control[RIGHT_AT] += 1
        if at == tail:
            continue
        stamp = control[STAMP] if pick == NEXT_ONES else np.int64(0)
        time, start, gone = rows[right * ROW + END], rows[right * ROW + START], 0
        suits = needed == 0 or events[rows[right * ROW + RIGHT] * EVENT + TRUTHS] & needed == needed
        probe = probe_values(tests, 1, values, width, rows, slots, right)
        head = at
        while at < tail and entries[at * ENTRY + ENDED] < start:
            entry = at * ENTRY
            at += 1
            mark = entries[entry + MARK]
            if (mark != 0 and mark != stamp) or (limit >= 0 and time - entries[entry + SINCE] > limit):
                entries[entry + ID] = -1
                gone += 1
                continue
            if not fits(entries, entry, tests, 0, probe, facts):
                continue
            left = entries[entry + ID]
            if pick == NEXT_ONES:
                if len(among) > 0 and not all_hold(among, facts, rows, slots, left, right):
                    continue
                entries[entry + MARK] = stamp
            if not suits or (len(where) > 0 and not all_hold(where, facts, rows, slots, left, right)):
                continue
            out[control[OUT]] = join_row(rows, slots, row_counts, events, left, right, kind, shift, spec)
            control[OUT] += 1
            if pick == FIRST_ONE:
                entries[entry + ID] = -1
                gone += 1
        control[STEPS_LEFT] -= at - head
        if gone > 0 and at == tail:
            table[place + TAIL] = remove_gaps(entries, head, at, False)
        elif gone > 0:
            table[place + HEAD] = remove_gaps(entries, head, at, True)


@kernel
def follow(
    asked: Asked, facts: Facts, memory: Memory, inputs: Inputs, control: Int64s, buckets: Buckets, out: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Join all rows that end before a bound: right rows in groups of equal ends, after the left rows that end earlier.

    If STEPS_LEFT is negative afterwards, call it again to resume.
    """
    control[GROUP_END] = control[RIGHT_AT]
    rows, slots, row_counts, events = memory
    entries, table, store = buckets
    ordered, ahead = np.empty(16, np.int64), np.empty(AHEAD, np.int64)
    while True:
        answer = _process(
            borrow_asked(asked),
            borrow(facts),
            borrow_memory(Memory(rows, slots, row_counts, events)),
            borrow_inputs(inputs),
            control,
            Buckets(entries, table, store),
            out,
            ordered,
            ahead,
        )
        if answer in (DONE, PAUSE):
            return rows, slots, out, entries, table
        more = control[ASKED]
        if answer == MORE_ROWS:
            rows = grown(rows, row_counts[ROWS] * ROW, more * ROW)
            slots = grown(slots, row_counts[SLOTS_USED], more * (len(asked.spec) // 3))
            out = grown(out, control[OUT], more)
        elif answer == MORE_ENTRIES:
            entries, table = with_room(entries, table, store, np.uint64(more), inputs.bound, -1)
        else:
            ordered = np.empty(2 * more, np.int64)
