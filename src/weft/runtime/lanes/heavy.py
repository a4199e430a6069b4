"""Heavy keys, which would overload their lane: found in a sample, and assigned to separate lanes.

Keys are counted by Space-Saving: a fixed number of counters, where a new key replaces the smallest. Assignments are
evaluated on the sample, since a lane reserved for a key that is not heavy enough is missing for the remaining keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.splits import Lane
from weft.runtime.classify.keys import Hashes, lane_hashes, lanes_of
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.lanes.routing import relevant

COUNTERS = 1000
HEAVY = 4  # a key is looked at that is more than so small a part of a lane
SAMPLE = 1 << 16  # events


class SpaceSaving:
    """Counts of the most frequent items. A count exceeds the true one by at most the replaced count."""

    def __init__(self, counters: int = COUNTERS) -> None:
        self.total = 0
        self._most = counters
        self._counts: dict[int, int] = {}
        self._above: dict[int, int] = {}  # by how much a count may be too high
        self._smallest: list[tuple[int, int]] = []  # may be out of date, never too high

    def add(self, thing: int, times: int = 1) -> None:
        """Add to the count of an item."""
        self.total += times
        taken = 0
        if thing not in self._counts:
            if len(self._counts) == self._most:
                taken = self._evict_min()
            self._above[thing] = taken
            heapq.heappush(self._smallest, (taken + times, thing))
        self._counts[thing] = self._counts.get(thing, taken) + times

    def _evict_min(self) -> int:
        """Remove the smallest counter, and return its value."""
        while True:
            count, thing = heapq.heappop(self._smallest)
            if self._counts[thing] == count:
                del self._counts[thing], self._above[thing]
                return count
            heapq.heappush(self._smallest, (self._counts[thing], thing))

    def above(self, least: float) -> list[int]:
        """Return the items that certainly occurred more often than `least`, the most frequent first."""
        sure = {thing: count - self._above[thing] for thing, count in self._counts.items()}
        found = [thing for thing, count in sure.items() if count > least]
        return sorted(found, key=lambda thing: (-sure[thing], thing))


def suited(lanes: Iterable[Lane], events: EventBatch) -> tuple[Lane, ...]:
    """Assign heavy keys to the lanes by the first events."""
    known: dict[tuple[ByKey, int], ByKey] = {}
    found = []
    for lane in lanes:
        split = lane.split
        if isinstance(split, ByKey) and lane.shares > 1 and not split.placed:
            case = split, lane.shares
            if case not in known:
                known[case] = _with_heavy(split, _sample(relevant(events, lane.types)), lane.shares)
            split = known[case]
        found.append(replace(lane, split=split))
    return tuple(found)


def _sample(events: EventBatch) -> EventBatch:
    """Return a sample of the events, spread over all."""
    step = -(-len(events) // SAMPLE) if len(events) else 1
    return events if step == 1 else blocks.take(events, np.arange(0, len(events), step))


def _with_heavy(split: ByKey, events: EventBatch, lanes: int) -> ByKey:
    has, hashes = lane_hashes(events, split.key)
    hashes = hashes[has != 0]
    counts = SpaceSaving()
    for first in range(0, len(hashes), 4096):
        keys, times = np.unique(hashes[first : first + 4096], return_counts=True)
        for key, number in zip(keys.tolist(), times.tolist(), strict=True):
            counts.add(key, number)
    heavy = counts.above(counts.total / (HEAVY * lanes))
    best, least = split, _busiest(split, hashes, lanes)
    for own in range(min(len(heavy), lanes - 1) + 1):
        tried = replace(split, own=own, placed=_placed(hashes, heavy, own, lanes))
        load = _busiest(tried, hashes, lanes)
        if load < 0.95 * least:  # a sample says no more than that
            best, least = tried, load
    return best


def _busiest(split: ByKey, hashes: Hashes, lanes: int) -> int:
    return int(_loads(hashes, split.own, split.placed, lanes).max(initial=0))


def _loads(hashes: Hashes, own: int, placed: Sequence[tuple[int, int]], lanes: int) -> npt.NDArray[np.int64]:
    found = lanes_of(np.ones(len(hashes), np.uint8), hashes, lanes, own, placed)
    return np.bincount(found, minlength=lanes)


def _placed(hashes: Hashes, heavy: Sequence[int], own: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """Assign a lane to each heavy key: a separate lane to the first ones, then the least loaded lane."""
    placed = [(key, lane) for lane, key in enumerate(heavy[:own])]
    others = heavy[own:]
    light = hashes[~np.isin(hashes, np.array(heavy, np.uint64))]
    loads = _loads(light, own, (), lanes)
    for key in others:
        lane = own + int(np.argmin(loads[own:]))
        loads[lane] += int((hashes == np.uint64(key)).sum())
        placed.append((key, lane))
    return tuple(placed)
