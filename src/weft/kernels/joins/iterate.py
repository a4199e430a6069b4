"""All subsequences of occurrences; each is reported by its first and its last member.

For each member, and each first member of subsequences that end there, the set of their lengths is stored as bits. A
new member collects these sets from the members before it, latest first; a first member is settled, and skipped from
then on, once it has all possible lengths. So where conditions mostly hold, a member costs as much as it reports.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device_no_refcount, kernel
from weft.kernels.joins.buckets import (
    ENDED,
    ENTRY,
    HEAD,
    ID,
    MARK,
    SINCE,
    TAIL,
    Buckets,
    append,
    find,
    fits,
    is_full,
    probe_values,
    put_values,
    with_room,
)
from weft.kernels.joins.joining import (
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
from weft.kernels.joins.occurrences import END, FIRST, ROW, RUN, START, Memory
from weft.kernels.memory.borrow import borrowed
from weft.kernels.memory.growing import enlarged
from weft.kernels.memory.sorting import sort

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

# Parameters: the distinguished lengths, whether the greatest represents all greater ones, the most ticks from first to
# last (-1: any number); a share of the members, by position, that sub-sequences may begin with, and of how many.
LENGTHS, OPEN_ENDED, SPAN, SHARE, SHARES = range(5)
# Fields of the control block besides those of all nodes: members so far, items of reach used.
MEMBERS, REACHED = OWN, OWN + 1
# Fields of a member: its row, where its items of reach begin, how many there are, its start.
MEMBER_ROW, REACH_AT, REACH_COUNT, MEMBER_START = range(4)
MEMBER = 4
ONE = np.uint64(1)


class Scratch(NamedTuple):
    """Scratch arrays with space for all possible members."""

    gathered: UInt64s  # for each first member, lengths of subsequences that end at the current member
    seen: npt.NDArray[np.bool_]  # which first members were found
    skip: Int64s  # for each first member, itself; when it is settled, one that may not be
    touched: Int64s  # the first members that were found
    after: Int64s  # for each member that sub-sequences may begin with, the next one
    before: Int64s  # the members before the current one, latest first


def scratch_for(members: int, words: int) -> Scratch:
    """Allocate scratch space for `members` members."""
    return Scratch(
        np.zeros(members * words, np.uint64),
        np.zeros(members, np.bool_),
        np.arange(members),
        np.empty(members, np.int64),
        np.empty(members, np.int64),
        np.empty(members, np.int64),
    )


@device_no_refcount
def _lengthen(gathered: UInt64s, to: int, reach: Int64s, at: int, words: int, lengths: int, open_ended: bool) -> None:
    """Add the lengths of a subsequence, each increased by one, to those of its extension."""
    carry = np.uint64(0)
    for w in range(words):
        bits = np.uint64(reach[at + w])
        gathered[to + w] |= (bits << ONE) | carry
        carry = bits >> np.uint64(63)
    last, bit = (lengths - 1) // 64, np.uint64((lengths - 1) % 64)
    if open_ended:
        gathered[to + last] |= np.uint64(reach[at + last]) & (ONE << bit)
    beyond = lengths // 64
    if beyond < words:
        gathered[to + beyond] &= ~(ONE << np.uint64(lengths % 64))


@device_no_refcount
def _is_settled(gathered: UInt64s, to: int, words: int, most: int) -> bool:
    """Whether all lengths from 3 to `most` are known; length 2 is known from the start."""
    for w in range(words):
        count = min(max(most - 64 * w, 0), 64)
        bits = ~np.uint64(0) if count == 64 else (ONE << np.uint64(count)) - ONE
        if w == 0:
            bits &= ~np.uint64(3)
        if gathered[to + w] & bits != bits:
            return False
    return True


@device_no_refcount
def _unsettled(skip: Int64s, first: int) -> int:
    """Return the next unsettled first member, from `first` on."""
    found = first
    while skip[found] != found:
        found = skip[found]
    while skip[first] != found and first != found:
        skip[first], first = found, skip[first]
    return found


@device_no_refcount
def _advanced(reach: Int64s, at: int, end: int, item: int, first: int) -> int:
    """Return the first of the sorted items after `at` whose first member is at least `first`."""
    step = item
    while at + step < end and reach[at + step] < first:
        at += step
        step *= 2
    while step > item:
        step //= 2
        if at + step < end and reach[at + step] < first:
            at += step
    return at + item


class Iterated(NamedTuple):
    """The members so far, and which first members reach each of them.

    An item of `reach` is the number of a first member and the words of a set of lengths; a member's items are sorted.
    """

    members: Int64s
    reach: Int64s


@kernel
def sequences(
    asked: Asked,
    allowed: UInt64s,
    scratch: Scratch,
    facts: Facts,
    memory: Memory,
    inputs: Inputs,
    control: Int64s,
    buckets: Buckets,
    out: Int64s,
    iterated: Iterated,
) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
    """Process the members that end before a bound.

    If STEPS_LEFT is negative afterwards, call it again to resume.
    """
    lent_rows, lent_slots, lent_out = memory.rows, memory.slots, out
    lent_members, lent_reach = iterated
    lent_entries, lent_table, lent_store = buckets
    parameters, tests, where, _, _, key, spec = borrow_asked(asked)
    rows, slots, row_counts, events = borrow_memory(memory)
    given, count_given, _, _, bound = borrow_inputs(inputs)
    entries, table, store = borrowed(lent_entries), borrowed(lent_table), borrowed(lent_store)
    out, control, allowed = borrowed(out), borrowed(control), borrowed(allowed)
    members, reach = borrowed(lent_members), borrowed(lent_reach)
    facts = borrow(facts)
    values, width = facts.values, facts.width
    lengths, open_ended, span = parameters[LENGTHS], parameters[OPEN_ENDED] != 0, parameters[SPAN]
    share, shares = parameters[SHARE], parameters[SHARES]
    words = len(allowed)
    item = 1 + words
    top = ONE << np.uint64((lengths - 1) % 64)  # with one word: the greatest length, and all of them
    mask = (top - ONE) | top
    stays = top if open_ended else np.uint64(0)
    gathered = borrowed(scratch.gathered)
    seen = borrowed(scratch.seen)
    skip = borrowed(scratch.skip)
    touched = borrowed(scratch.touched)
    after = borrowed(scratch.after)
    latest: int = -1  # of the members that sub-sequences may begin with
    for number in range(control[MEMBERS]):
        if rows[members[number * MEMBER + MEMBER_ROW] * ROW + FIRST] % shares == share:
            if latest >= 0:
                after[latest] = number
            latest = number
    before = borrowed(scratch.before)
    while control[RIGHT_AT] < count_given and control[STEPS_LEFT] >= 0:
        member = given[control[RIGHT_AT]]
        time = rows[member * ROW + END]
        if time >= bound:
            break
        control[RIGHT_AT] += 1
        number, start = control[MEMBERS], rows[member * ROW + START]
        if span >= 0 and time - start > span:
            continue
        control[MEMBERS] += 1
        if (number + 1) * MEMBER > len(members):
            lent_members = enlarged(members, number * MEMBER, MEMBER)
            members = borrowed(lent_members)
        members[number * MEMBER + MEMBER_ROW], members[number * MEMBER + MEMBER_START] = member, start
        gathered[number * words] = np.uint64(0)
        if rows[member * ROW + FIRST] % shares == share:
            gathered[number * words] = ONE
            if latest >= 0:
                after[latest] = number
            latest = number
        count, looked = 0, np.int64(0)
        has, word = key_of(key, 1, values, width, rows, slots, member)
        if has:
            probe = probe_values(tests, 1, values, width, rows, slots, member)
            place = find(table, word)
            looked += table[place + TAIL] - table[place + HEAD]
            for k in range(table[place + TAIL] - 1, table[place + HEAD] - 1, -1):
                at = k * ENTRY
                if entries[at + ENDED] >= start or (span >= 0 and time - entries[at + SINCE] > span):
                    continue
                if not fits(entries, at, tests, 0, probe, facts):
                    continue
                if len(where) > 0 and not all_hold(where, facts, rows, slots, entries[at + ID], member):
                    continue
                before[count] = entries[at + MARK]
                count += 1
                own = members[entries[at + MARK] * MEMBER + REACH_AT] - item
                own += members[entries[at + MARK] * MEMBER + REACH_COUNT] * item
                if own < 0 or reach[own] != entries[at + MARK]:  # subsequences may not begin with this member
                    continue
                # The subsequence of these two: its length 2 is distinguished unless all lengths from 1 on are one.
                gathered[before[count - 1] * words] |= ((ONE << ONE) & (mask if words == 1 else ~np.uint64(0))) | (
                    stays & ONE
                )
        reached = 0
        for k in range(count):
            m = before[k] * MEMBER
            at, end = members[m + REACH_AT], members[m + REACH_AT] + members[m + REACH_COUNT] * item
            while at < end:
                looked += 1
                first = reach[at]
                if skip[first] != first:
                    following = _unsettled(skip, first)
                    if following > before[k]:
                        break
                    at = _advanced(reach, at, end, item, following)
                    continue
                if span >= 0 and time - members[first * MEMBER + MEMBER_START] > span:
                    at += item
                    continue
                if not seen[first]:
                    seen[first] = True
                    touched[reached] = first
                    reached += 1
                if words == 1:
                    bits = np.uint64(reach[at + 1])
                    gathered[first] |= ((bits << ONE) & mask) | (bits & stays)
                else:
                    _lengthen(gathered, first * words, reach, at + 1, words, lengths, open_ended)
                if _is_settled(gathered, first * words, words, min(lengths, number - first + 1)):
                    skip[first] = number if first == latest else after[first]
                at += item
        control[STEPS_LEFT] -= looked
        sort(touched, reached)
        touched[reached] = number
        reached += 1
        if control[REACHED] + reached * item > len(reach):
            lent_reach = enlarged(reach, control[REACHED], reached * item)
            reach = borrowed(lent_reach)
        members[number * MEMBER + REACH_AT] = control[REACHED]
        kept = 0
        for k in range(reached):
            first = touched[k]
            seen[first], skip[first] = False, first
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
                if control[OUT] == len(out):
                    lent_out = enlarged(out, control[OUT], 1)
                    out = borrowed(lent_out)
                row = member
                if first != number:
                    if no_room(rows, slots, row_counts, spec):
                        lent_rows, lent_slots = more_rows(rows, slots, row_counts, spec)
                        rows, slots = borrowed(lent_rows), borrowed(lent_slots)
                    other = members[first * MEMBER + MEMBER_ROW]
                    row = join_row(rows, slots, row_counts, events, other, member, RUN, 0, spec)
                out[control[OUT]] = row
                control[OUT] += 1
        members[number * MEMBER + REACH_COUNT] = kept
        has, word = key_of(key, 0, values, width, rows, slots, member)
        if has:
            place = find(table, word)
            if is_full(table, place):
                lent_entries, lent_table = with_room(lent_entries, lent_table, store, word, time, span)
                entries, table = borrowed(lent_entries), borrowed(lent_table)
                place = find(table, word)
            to = append(entries, table, place, member, time, start, number)
            put_values(entries, to, tests, 0, values, width, rows, slots, member)
    return lent_rows, lent_slots, lent_out, lent_entries, lent_table, lent_members, lent_reach
