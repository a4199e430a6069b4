"""Choose events for source operators in one pass: which are stored, their truths, and which source takes each.

Letters of several groups of predicates follow each other, group by group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.events.stored import TRUTHS as EVENT_TRUTHS
from weft.kernels.jit import bare_kernel
from weft.kernels.signatures import Read

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Properties of a letter: its truths as bits; the first source that takes it, and whether there is one (1, or 0 and
# a source that takes nothing); and the range of the other sources that take it.
TRUTHS, TAKER, IS_TAKEN, BEGIN, END = range(5)
KNOWN = 5


@bare_kernel
def count_letters(letters: Int32s, total: int, begin: int, end: int, bases: Int64s, counts: Int64s) -> None:
    """Count the letters of the events from `begin` to `end` of `total`."""
    for group in range(len(bases)):
        base = bases[group]
        for i in range(group * total + begin, group * total + end):
            counts[base + letters[i]] += 1


class LetterTakers(NamedTuple):
    """Letters of a part of `total` events from `begin` on, and properties and takers of letters by group."""

    letters: Int32s
    total: int
    begin: int
    bases: Int64s
    known: Int64s
    takers: Int64s


class EventTimes(NamedTuple):
    """Events as arrays."""

    positions: Read[Int64s]
    starts: Read[Int64s]
    ends: Read[Int64s]


@bare_kernel
def choose(
    by: LetterTakers,
    kept: Mask,
    times: EventTimes,
    first: int,
    events: Int64s,
    relevant: Int64s,
    places: Int64s,
    chosen: Int64s,
) -> int:
    """Number and write the events that a source takes or that are `kept`; return how many.

    `places` say where in `chosen` the numbers for each source go. Types alternate unpredictably, so unneeded events are
    written, too, and then overwritten, to avoid branches.
    """
    letters, total, begin, bases, known, takers = by
    positions, starts, ends = times
    count = np.int64(0)
    for i in range(len(kept)):
        truths, is_wanted = np.int64(0), np.int64(kept[i])
        number = first + count
        for group in range(len(bases)):
            at = (bases[group] + letters[group * total + begin + i]) * KNOWN
            truths |= known[at + TRUTHS]
            is_wanted |= known[at + IS_TAKEN]
            taker = known[at + TAKER]
            chosen[places[taker]] = number
            places[taker] += known[at + IS_TAKEN]
            for k in range(known[at + BEGIN], known[at + END]):
                chosen[places[takers[k]]] = number
                places[takers[k]] += 1
        at = number * EVENT
        events[at + POSITION], events[at + EVENT_START], events[at + EVENT_END] = positions[i], starts[i], ends[i]
        events[at + EVENT_TRUTHS] = truths
        relevant[count] = i
        count += is_wanted
    return int(count)
