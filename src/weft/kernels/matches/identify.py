"""Ids of matches: 128-bit hashes of the query, the interval, and the events' identities with their variables.

The same match has the same id in every process, on every engine and after every replay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Pairs = npt.NDArray[np.uint16]

_STEP_HIGH = np.uint64(0x9E3779B97F4A7C15)
_STEP_LOW = np.uint64(0xD1342543DE82EF95)
_PAIRS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)  # the digits of each byte


@device_no_refcount
def _mixed(word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@bare_kernel
def identify_events(
    words: Read[UInt64s],
    starts: Read[Int64s],
    ends: Read[Int64s],
    ranks: Read[Int64s],
    high: UInt64s,
    low: UInt64s,
) -> None:
    """Fill `high` and `low` with the two halves of each event's identity: of a hash, its times and its rank."""
    for event in range(len(high)):
        start, end, rank = np.uint64(starts[event]), np.uint64(ends[event]), np.uint64(ranks[event])
        above = _mixed(_mixed(words[event] * _STEP_HIGH + start) * _STEP_HIGH + end)
        below = _mixed(_mixed(words[event] * _STEP_LOW + start) * _STEP_LOW + end)
        high[event] = _mixed(above * _STEP_HIGH + rank)
        low[event] = _mixed(below * _STEP_LOW + rank)


@bare_kernel
def rank_events(words: Read[UInt64s], alike: Read[Int64s], ranks: Int64s) -> None:
    """Count, for each event, those before it with the same hash among the ones that have its times.

    `alike[i]` is the first event with the times of event i; events of equal times stand together.
    """
    for event in range(len(ranks)):
        rank = 0
        for other in range(alike[event], event):
            if words[other] == words[event]:
                rank += 1
        ranks[event] = rank


class MatchParts(NamedTuple):
    """Matches as arrays: the events of match m are those from `offsets[m]` to `offsets[m + 1]`.

    `events` are places among the identities of events. `lasts`, if not empty, are those of the events at which matches
    end: they count where the match is not made of them. `keys`, if not empty, are words that tell absences apart.
    """

    queries: Read[Int32s]
    starts: Read[Int64s]
    ends: Read[Int64s]
    offsets: Read[Int64s]
    events: Read[Int64s]
    labels: Read[Int32s]
    lasts: Read[Int64s]
    keys: Read[UInt64s]


@bare_kernel
def identify(
    seeds: UInt64s,
    matches: MatchParts,
    label_words: UInt64s,
    event_high: Read[UInt64s],
    event_low: Read[UInt64s],
    high: UInt64s,
    low: UInt64s,
) -> None:
    """Fill `high` and `low` with the two halves of each match's id.

    `event_high` and `event_low` are the identities of events. `seeds` holds two words made from the name of each query,
    `label_words[l]` one word made from the names of label l. The order of events does not matter, since their
    identities have their times.
    """
    queries, starts, ends, offsets, events, labels, lasts, keys = matches
    for match in range(len(high)):
        begin, end = offsets[match], offsets[match + 1]
        last_high, last_low = np.uint64(0), np.uint64(0)
        if len(keys):
            last_high = last_low = keys[match]
        if len(lasts) and (begin == end or events[end - 1] != lasts[match]):
            last_high, last_low = event_high[lasts[match]], event_low[lasts[match]]
        total_high, total_low = np.uint64(0), np.uint64(0)
        for at in range(begin, end):
            event, word = events[at], label_words[labels[at]]
            total_high += _mixed(event_high[event] * _STEP_HIGH + word)
            total_low += _mixed(event_low[event] * _STEP_LOW + word)
        start, stop, size = np.uint64(starts[match]), np.uint64(ends[match]), np.uint64(end - begin)
        above, below = seeds[2 * queries[match]], seeds[2 * queries[match] + 1]
        above = _mixed(_mixed(_mixed(above * _STEP_HIGH + start) * _STEP_HIGH + stop) * _STEP_HIGH + size)
        below = _mixed(_mixed(_mixed(below * _STEP_LOW + start) * _STEP_LOW + stop) * _STEP_LOW + size)
        high[match] = _mixed(_mixed(above * _STEP_HIGH + total_high) * _STEP_HIGH + last_high)
        low[match] = _mixed(_mixed(below * _STEP_LOW + total_low) * _STEP_LOW + last_low)


@bare_kernel
def write_hex(high: Read[UInt64s], low: Read[UInt64s], text: Pairs) -> None:
    """Write each id as 32 lower-case hexadecimal digits into `text`, contiguously."""
    for match in range(len(high)):
        for half in range(2):
            word = high[match] if half == 0 else low[match]
            for pair in range(8):
                byte = (word >> np.uint64(56 - 8 * pair)) & np.uint64(255)
                text[match * 16 + half * 8 + pair] = _PAIRS[byte]
