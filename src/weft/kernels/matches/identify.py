"""Ids of matches: 128 bits made of the query, the interval, the positions and their variables, and of nothing else.

The same match has the same id in every process, on every engine and after every replay.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare, bare_kernel
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Pairs = npt.NDArray[np.uint16]

_STEP_HIGH = np.uint64(0x9E3779B97F4A7C15)
_STEP_LOW = np.uint64(0xD1342543DE82EF95)
_PAIRS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)  # the digits of each byte


@bare
def _mixed(word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@bare_kernel
def identify(
    seeds: UInt64s,
    queries: Read[Int32s],
    starts: Read[Int64s],
    ends: Read[Int64s],
    firsts: Read[Int64s],
    lasts: Read[Int64s],
    offsets: Read[Int64s],
    positions: Read[Int64s],
    labels: Read[Int32s],
    label_words: UInt64s,
    high: UInt64s,
    low: UInt64s,
) -> None:
    """Fill `high` and `low` with the two halves of each match's id.

    A match covers the positions from its first to its last, or `firsts` to `lasts` if these are not empty. One
    without positions is told apart by its times.
    `seeds` holds two words made from the name of each query, `label_words[l]` one word made from the names of label l.
    """
    for match in range(len(high)):
        begin = offsets[match]
        end = offsets[match + 1]
        first, last = np.uint64(starts[match]), np.uint64(ends[match])
        if len(firsts):
            first, last = np.uint64(firsts[match]), np.uint64(lasts[match])
        elif begin < end:
            first, last = np.uint64(positions[begin]), np.uint64(positions[end - 1])
        size = np.uint64(end - begin)
        seed, seed_too = seeds[2 * queries[match]], seeds[2 * queries[match] + 1]
        above = _mixed(_mixed(_mixed(seed * _STEP_HIGH + first) * _STEP_HIGH + last) * _STEP_HIGH + size)
        below = _mixed(_mixed(_mixed(seed_too * _STEP_LOW + first) * _STEP_LOW + last) * _STEP_LOW + size)
        for at in range(begin, end):
            position = np.uint64(positions[at])
            word = label_words[labels[at]]
            above = _mixed(_mixed(above * _STEP_HIGH + position) * _STEP_HIGH + word)
            below = _mixed(_mixed(below * _STEP_LOW + position) * _STEP_LOW + word)
        high[match] = above
        low[match] = below


@bare_kernel
def write_hex(high: Read[UInt64s], low: Read[UInt64s], text: Pairs) -> None:
    """Write each id as 32 lower-case hexadecimal digits into `text`, one after the other, two at a time."""
    for match in range(len(high)):
        for half in range(2):
            word = high[match] if half == 0 else low[match]
            for pair in range(8):
                byte = (word >> np.uint64(56 - 8 * pair)) & np.uint64(255)
                text[match * 16 + half * 8 + pair] = _PAIRS[byte]
