"""Stored occurrences by key: for each key a segment of entries ordered by end.

An entry contains everything that most probes read, so that a probe reads memory once and in order. Keys are identified
only by their hashes: the caller tests the condition itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_START
from weft.kernels.jit import always_inline, device, device_no_refcount, kernel
from weft.kernels.joins.joint import Facts, attribute_of, borrow, key_of
from weft.kernels.joins.occurrences import ROW, SLOTS, START
from weft.kernels.machine.machine import holds
from weft.kernels.machine.tagged import MISSING

Int64s = npt.NDArray[np.int64]

# Fields of an entry. SINCE is the time from which its age counts; VALUES are the operands of the first two tests.
ID, ENDED, SINCE, MARK, VALUES = range(5)
ENTRY = 8
# Fields of a place in the table. The word is never 0; the segment is BEGIN to CLOSE, of which HEAD to TAIL is used.
WORD, BEGIN, HEAD, TAIL, CLOSE = range(5)
PLACE = 5
# Control words of a store: allocated entries, keys.
USED, KEYS = range(2)
STORE = 2
# Fields of a test: the operator, and slot and column of either side.
TEST = 5


class Buckets(NamedTuple):
    """A store: its entries, the table of keys, and its control words."""

    entries: Int64s
    table: Int64s
    control: Int64s


@always_inline
def find(table: Int64s, word: np.uint64) -> Any:
    """Return the place of a key, or the empty place where it would be."""
    mask = len(table) // PLACE - 1
    key = np.int64(word | np.uint64(1))
    at = (key >> 1) & mask
    while table[at * PLACE + WORD] != 0 and table[at * PLACE + WORD] != key:
        at = (at + 1) & mask
    return at * PLACE


@device
def _widen(table: Int64s) -> Int64s:
    """Return a table of twice the size with the same keys."""
    larger = np.zeros(2 * len(table), np.int64)
    for k in range(0, len(table), PLACE):
        if table[k + WORD] != 0:
            at = find(larger, np.uint64(table[k + WORD]))
            for field in range(PLACE):
                larger[at + field] = table[k + field]
    return larger


@always_inline
def _move(entries: Int64s, source: Any, target: Any, others: Int64s) -> None:
    """Copy an entry."""
    for field in range(ENTRY):
        others[target * ENTRY + field] = entries[source * ENTRY + field]


@device
def _repack(entries: Int64s, table: Int64s, store: Int64s, needed: int) -> Int64s:
    """Return the entries in a new array, without gaps, with space in each segment and for `needed` more."""
    total = np.int64(0)
    for at in range(0, len(table), PLACE):
        used = table[at + TAIL] - table[at + HEAD]
        total += used + used // 2
    larger = np.empty((2 * (total + needed) + 64) * ENTRY, np.int64)
    begin = np.int64(0)
    for at in range(0, len(table), PLACE):
        used = table[at + TAIL] - table[at + HEAD]
        for k in range(used):
            _move(entries, table[at + HEAD] + k, begin + k, larger)
        table[at + BEGIN] = table[at + HEAD] = begin
        table[at + TAIL] = begin + used
        begin += used + used // 2
        table[at + CLOSE] = begin
    store[USED] = begin
    return larger


@device_no_refcount
def make_room(entries: Int64s, table: Int64s, store: Int64s, word: np.uint64, time: Any, limit: int) -> bool:
    """Add a key if it is new, drop expired entries at the head of its segment, and enlarge the segment.

    Return False if an array is full.
    """
    if 2 * (store[KEYS] + 1) * PLACE >= len(table):
        return False
    at = find(table, word)
    if table[at + WORD] == 0:
        table[at + WORD] = np.int64(word | np.uint64(1))
        store[KEYS] += 1
    tail = table[at + TAIL]
    while limit >= 0 and table[at + HEAD] < tail and time - entries[table[at + HEAD] * ENTRY + SINCE] > limit:
        table[at + HEAD] += 1
    used = tail - table[at + HEAD]
    begin = table[at + BEGIN]
    if table[at + HEAD] - begin <= used:  # else it moves down within its segment
        room = 2 * used + 2
        if (store[USED] + room) * ENTRY > len(entries):
            return False
        begin = store[USED]
        store[USED] += room
        table[at + BEGIN], table[at + CLOSE] = begin, store[USED]
    for k in range(used):
        _move(entries, table[at + HEAD] + k, begin + k, entries)
    table[at + HEAD], table[at + TAIL] = begin, begin + used
    return True


@device
def with_room(
    entries: Int64s, table: Int64s, store: Int64s, word: np.uint64, time: Any, limit: int
) -> tuple[Int64s, Int64s]:
    """Call `make_room`, and enlarge the arrays if it fails; return entries and table."""
    if 2 * (store[KEYS] + 1) * PLACE >= len(table):
        table = _widen(table)
    if not make_room(entries, table, store, word, time, limit):
        at = find(table, word)
        entries = _repack(entries, table, store, 2 * (table[at + TAIL] - table[at + HEAD]) + 2)
        make_room(entries, table, store, word, time, limit)
    return entries, table


@always_inline
def is_full(table: Int64s, place: int) -> bool:
    """Whether the segment at a place has no space for another entry, or does not exist."""
    return bool(table[place + TAIL] == table[place + CLOSE])


@always_inline
def append(entries: Int64s, table: Int64s, place: int, occurrence: Any, ended: Any, since: int, mark: int) -> Any:
    """Append an occurrence to the segment at a place, which must not be full; return the offset of the entry."""
    at = table[place + TAIL] * ENTRY
    entries[at + ID], entries[at + ENDED], entries[at + SINCE], entries[at + MARK] = occurrence, ended, since, mark
    table[place + TAIL] += 1
    return at


@device_no_refcount
def remove_gaps(entries: Int64s, low: int, high: int, upwards: bool) -> int:
    """Remove the entries from `low` to `high` that have no occurrence; return their new end, or beginning."""
    to = high if upwards else low
    for k in range(high - low):
        here = high - 1 - k if upwards else low + k
        if entries[here * ENTRY + ID] < 0:
            continue
        if upwards:
            to -= 1
        if here != to:
            _move(entries, here, to, entries)
        if not upwards:
            to += 1
    return to


@always_inline
def since_of(rows: Int64s, slots: Int64s, events: Int64s, occurrence: int, slot: int, time: Any) -> Any:
    """Return the time from which an occurrence's age counts: its start, or that of the event in a slot, or `time`."""
    since = rows[occurrence * ROW + START]
    if slot >= 0:
        event = slots[rows[occurrence * ROW + SLOTS] + slot]
        since = events[event * EVENT + EVENT_START] if event >= 0 else time
    return since


# ---------------------------------------------------------------- tests on values in entries


@always_inline
def put_values(
    entries: Int64s,
    at: int,
    tests: Int64s,
    side: int,
    values: Any,
    width: int,
    rows: Int64s,
    slots: Int64s,
    occurrence: int,
) -> None:
    """Write the operands of tests into the entry of an occurrence on one side."""
    for k in range(len(tests) // TEST):
        slot, column = tests[TEST * k + 1 + 2 * side], tests[TEST * k + 2 + 2 * side]
        found = attribute_of(slots[rows[occurrence * ROW + SLOTS] + slot], column, values, width)
        entries[at + VALUES + 2 * k], entries[at + VALUES + 2 * k + 1] = found


@always_inline
def probe_values(
    tests: Int64s, side: int, values: Any, width: int, rows: Int64s, slots: Int64s, occurrence: Any
) -> Any:
    """Return the operands of the (at most two) tests for an occurrence on one side: kind and word of each."""
    a_kind, a, b_kind, b = np.int64(MISSING), np.int64(0), np.int64(MISSING), np.int64(0)
    at = rows[occurrence * ROW + SLOTS]
    if len(tests) > 0:
        a_kind, a = attribute_of(slots[at + tests[1 + 2 * side]], tests[2 + 2 * side], values, width)
    if len(tests) > TEST:
        b_kind, b = attribute_of(slots[at + tests[TEST + 1 + 2 * side]], tests[TEST + 2 + 2 * side], values, width)
    return a_kind, a, b_kind, b


@always_inline
def fits(entries: Int64s, at: Any, tests: Int64s, side: int, probe: Any, facts: Facts) -> bool:
    """Whether the tests hold between an entry on one side and a probe on the other."""
    found = True
    for k in range(len(tests) // TEST):
        kind, word = entries[at + VALUES + 2 * k], entries[at + VALUES + 2 * k + 1]
        other_kind, other = (probe[0], probe[1]) if k == 0 else (probe[2], probe[3])
        if side == 1:
            kind, word, other_kind, other = other_kind, other, kind, word
        found = holds(facts.room, tests[TEST * k], kind, word, other_kind, other)
        if not found:
            break
    return found


# ---------------------------------------------------------------- rebuilding a store


@kernel
def rebuild(
    tests: Int64s,
    key: Int64s,
    side: int,
    texts_changed: bool,
    facts: Facts,
    rows: Int64s,
    slots: Int64s,
    entries: Int64s,
    table: Int64s,
    store: Int64s,
) -> tuple[Int64s, Int64s]:
    """Rebuild entries and table of a store without removed entries and empty keys.

    With `texts_changed`, keys and values are computed again, since texts have new ids.
    """
    facts = borrow(facts)
    width = 16
    for place in range(0, len(table), PLACE):
        head, tail = table[place + HEAD], table[place + TAIL]
        table[place + TAIL] = remove_gaps(entries, head, tail, False) if head < tail else head
        width += 4 if table[place + TAIL] > head else 0
    size = 16
    while size < width:
        size *= 2
    old, table = table, np.zeros(size * PLACE, np.int64)
    store[KEYS] = 0
    for place in range(0, len(old), PLACE):
        if old[place + HEAD] == old[place + TAIL]:
            continue
        word = np.uint64(old[place + WORD])
        if texts_changed:
            first = entries[old[place + HEAD] * ENTRY + ID]
            word = key_of(key, side, facts.values, facts.width, rows, slots, first)[1]
            for k in range(old[place + HEAD], old[place + TAIL]):
                one = entries[k * ENTRY + ID]
                put_values(entries, k * ENTRY, tests, side, facts.values, facts.width, rows, slots, one)
        at = find(table, word)
        for field in range(PLACE):
            table[at + field] = old[place + field]
        table[at + WORD] = np.int64(word | np.uint64(1))
        store[KEYS] += 1
    return _repack(entries, table, store, 0), table
