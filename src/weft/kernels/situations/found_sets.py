"""Write matching sets, each once, and record what they consume."""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.situations.participants import (
    BOUND,
    CONSUMES,
    COUNT,
    DEFERRED,
    FOUND,
    HELD,
    NEVER,
    OVERLAPS,
    PARTICIPANT,
    PLACE,
    SEEN,
    SEEN_COUNT,
    SEEN_SIZE,
    SLOTS,
    STAMP,
    Int64s,
    Number,
    mark_consumed,
)

# CROWDED: the table of selected sets is full; PAUSE: many entries were visited, so Ctrl-C is checked.
DONE, FULL, GROW, CROWDED, PAUSE = range(5)


@device_no_refcount
def _is_new(m: Int64s) -> bool:
    """Return whether the bound set was not selected before, by the current event or at all, and record it."""
    first, second = np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344)
    least = np.int64(NEVER - 1)
    for slot in range(m[COUNT]):
        entry = m[m[HELD] + slot]
        place = np.int64(-1)
        if entry != 0:
            place = m[entry + PLACE]
            least = min(least, place)
        first = (first ^ np.uint64(place)) * np.uint64(0x9E3779B97F4A7C15)
        first ^= first >> np.uint64(29)
        second = (second ^ np.uint64(place)) * np.uint64(0xBF58476D1CE4E5B9)
        second ^= second >> np.uint64(32)
    one, other = np.int64(first), np.int64(second)
    mark = least + 1 if m[DEFERRED] != 0 else m[STAMP]
    k = np.int64(first >> np.uint64(1)) % m[SEEN_SIZE]
    while m[m[SEEN] + 3 * k + 2] != 0 and (m[DEFERRED] != 0 or m[m[SEEN] + 3 * k + 2] == mark):
        at = m[SEEN] + 3 * k
        if m[at] == one and m[at + 1] == other:
            return False
        k = (k + 1) % m[SEEN_SIZE]
    at = m[SEEN] + 3 * k
    m[at], m[at + 1], m[at + 2] = one, other, mark
    m[SEEN_COUNT] += 1
    return True


@bare_kernel
def place_seen(sets: Int64s, table: Int64s) -> None:
    """Add selected sets to an empty table."""
    for k in range(0, len(sets), 3):
        at = np.int64(np.uint64(sets[k]) >> np.uint64(1)) % (len(table) // 3)
        while table[3 * at + 2] != 0:
            at = (at + 1) % (len(table) // 3)
        table[3 * at], table[3 * at + 1], table[3 * at + 2] = sets[k], sets[k + 1], sets[k + 2]


@device_no_refcount
def emit(m: Int64s, out: Int64s, counting: bool) -> Number:
    """Write the bound set and record what it consumes; return DONE, or what must be enlarged first."""
    if not counting and (m[FOUND] + 1) * m[COUNT] > len(out):
        return FULL
    if m[OVERLAPS] != 0 and 2 * m[SEEN_COUNT] >= m[SEEN_SIZE]:
        return CROWDED
    if m[OVERLAPS] == 0 or _is_new(m):
        if not counting:
            for slot in range(m[COUNT]):
                out[m[FOUND] * m[COUNT] + slot] = m[m[BOUND] + slot]
        m[FOUND] += 1
    for slot in range(m[COUNT]):
        entry = m[m[HELD] + slot]
        if entry != 0 and m[m[SLOTS] + slot * PARTICIPANT + CONSUMES] != 0:
            mark_consumed(m, entry)
    return DONE
