"""Ids of matches by the keys of their events, not by positions: 128 bits made of the query, the times, and which event
(by its key) is bound to which variables.

Neither events that take no part nor the order of those with equal times change them. What has no events is told apart
by its fields.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.memory.hashing import hash_texts
from weft.runtime.buffers import text_buffers

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_STEPS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95))


def keyed_words(
    seeds: UInt64s,
    times: tuple[Int64s, Int64s],
    offsets: Int64s,
    keys: tuple[UInt64s, UInt64s],
    labels: UInt64s,
    fields: pa.Array | None,
) -> tuple[UInt64s, UInt64s]:
    """The two halves of each id.

    Match i has the seeds `seeds[i]` of its query, the start and end `times[…][i]`, and events `offsets[i]` to
    `offsets[i + 1]`, of which each has two hashes of its key and a word made of its variables. `fields` are those of
    each match as text, if some have no events.
    """
    sizes = np.diff(offsets)
    texts = (np.zeros(len(sizes), np.uint64),) * 2 if fields is None else _hashes(fields)
    halves = []
    for half, step in enumerate(_STEPS):
        sums = np.zeros(len(labels) + 1, np.uint64)
        np.cumsum(_mixed(_mixed(keys[half]) * step + labels), out=sums[1:])
        made_of = np.where(sizes == 0, texts[half], sums[offsets[1:]] - sums[offsets[:-1]])
        state: UInt64s = seeds[:, half]
        for words in (times[0].view(np.uint64), times[1].view(np.uint64), sizes.view(np.uint64), made_of):
            state = _mixed(state * step + words)
        halves.append(state)
    return halves[0], halves[1]


def _mixed(words: UInt64s) -> UInt64s:
    """The finaliser of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hashes(texts: pa.Array) -> tuple[UInt64s, UInt64s]:
    first, second = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    hash_texts(*text_buffers(texts), np.ones(len(texts), np.uint8), first, second)
    return first, second
