"""Backward pass: the states that may take each row and still reach the end of the pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.row_patterns.tables import (
    ACCEPT,
    ACCEPT_AT_END,
    FIRST,
    LAST,
    PARTITION,
    SEEN,
    Int32s,
    Int64s,
    has_state,
)
from weft.kernels.signatures import Read

NEVER = np.int32(2**31 - 1)


@bare_kernel
def succeeding(
    letters: Read[Int32s],
    takers: Int64s,
    before: Int64s,
    bits: int,
    at_end: Int64s,
    always: Int64s,
    partitions: Int64s,
    sets: Int64s,
) -> None:
    """Compute the sets of states that may take each row and succeed.

    `takers` are the states that a row with a letter satisfies. `before` are the predecessors of each subset of a group
    of
    `bits` states. `at_end` succeed after the last row, `always` after any.
    """
    for at in range(0, len(partitions), PARTITION):
        if len(at_end) == 1:
            _of_one_word(letters, takers, before, bits, at_end[0], always[0], partitions, at, sets)
        else:
            _of_many_words(letters, takers, before, bits, at_end, always, partitions, at, sets)


@device_no_refcount
def _of_one_word(
    letters: Int32s,
    takers: Int64s,
    before: Int64s,
    bits: Any,
    at_end: Any,
    always: Any,
    partitions: Int64s,
    at: Any,
    sets: Int64s,
) -> None:
    size = np.int64(1) << bits
    alive, last, known = at_end, np.int64(0), False
    i = partitions[at + SEEN] - 1
    while i >= partitions[at + FIRST]:
        found = alive & takers[letters[i]]
        sets[i] = found
        if not known or found != last:
            alive, group, rest = always, np.int64(0), found
            while rest != 0:
                alive |= before[group + (rest & (size - 1))]
                rest = rest >> bits & ((np.int64(1) << (64 - bits)) - 1)
                group += size
            last, known = found, True
        i -= 1


@device_no_refcount
def _of_many_words(
    letters: Int32s,
    takers: Int64s,
    before: Int64s,
    bits: Any,
    at_end: Int64s,
    always: Int64s,
    partitions: Int64s,
    at: Any,
    sets: Int64s,
) -> None:
    """Like `succeeding` for several words; the live states after a row are kept in the place of the row before it."""
    words, size = len(at_end), np.int64(1) << bits
    groups = 64 // bits
    begin, i = partitions[at + FIRST], partitions[at + SEEN] - 1
    if i < begin:
        return
    for w in range(words):
        sets[i * words + w] = at_end[w]
    while i >= begin:
        of_letter, place = letters[i] * words, i * words
        for w in range(words):
            sets[place + w] &= takers[of_letter + w]
        i -= 1
        if i < begin:
            break
        for w in range(words):
            sets[i * words + w] = always[w]
        for w in range(words):
            rest, group = sets[place + w], w * groups
            while rest != 0:
                chosen = rest & (size - 1)
                if chosen != 0:
                    source = (group * size + chosen) * words
                    for k in range(words):
                        sets[i * words + k] |= before[source + k]
                rest = rest >> bits & ((np.int64(1) << (64 - bits)) - 1)
                group += 1


@bare_kernel
def earliest_ends(
    offsets: Int64s,
    targets: Int64s,
    states: int,
    words: int,
    partitions: Int64s,
    sets: Int64s,
    is_open: bool,
    out: Int32s,
) -> None:
    """Compute for each row and state before which row a match can end at the earliest.

    A match that needs later rows ends after the row behind the last.
    """
    for at in range(0, len(partitions), PARTITION):
        seen, closed = partitions[at + SEEN], not is_open
        i = seen - 1
        while i >= partitions[at + FIRST]:
            for q in range(states):
                best = NEVER
                if has_state(sets, words, i, q):
                    for k in range(offsets[q], offsets[q + 1]):
                        target = targets[k]
                        if target == ACCEPT or (target == ACCEPT_AT_END and closed and i + 1 == partitions[at + LAST]):
                            best = min(best, np.int32(i + 1))
                        elif target >= 0 and i + 1 < seen:
                            best = min(best, out[(i + 1) * states + target])
                        elif target >= 0 and is_open:
                            best = min(best, np.int32(seen + 1))
                out[i * states + q] = best
            i -= 1


@bare_kernel
def within_limits(
    times: Read[Int64s],
    partitions: Int64s,
    within: int,
    passed: int,
    is_open: bool,
    out: Int64s,
) -> None:
    """Compute for an attempt at each row the first row that is too late, or a row that never comes.

    `passed` is the watermark of later rows.
    """
    for at in range(0, len(partitions), PARTITION):
        late, last = partitions[at + FIRST], partitions[at + LAST]
        for i in range(partitions[at + FIRST], partitions[at + SEEN]):
            late = max(late, i)
            while late < last and times[late] - times[i] < within:
                late += 1
            ends = late < last or not is_open or passed - times[i] >= within
            out[i] = late if ends else last + 1
