"""The front of a source in time, robust against single events in the far future.

An event that is more than `jump` ticks ahead of the events before it is doubted: time does not follow it. It is
accepted when confirmed: two more events are as far ahead or further, and none in between continues the old time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.runtime.data.events import Int64s
from weft.runtime.reading.kinds import NANOSECONDS

MAX_JUMP = 43_200.0  # seconds: half a day
CONFIRM = 3  # events that must be ahead before the first of them is accepted
AGREE = 2  # adjacent events at the beginning of a source that are accepted, unless its first event is accepted alone


def jump_ticks(seconds: float | None, time_unit: str) -> int | None:
    """Convert a jump in seconds to ticks, or None if any jump is accepted."""
    if seconds is None or seconds == inf:
        return None
    return max(0, int(seconds * 10**9 // NANOSECONDS[time_unit]))


class Cluster(NamedTuple):
    """Times with no jump between neighbours: the first, the last, their number, and the last few."""

    first: int
    last: int
    size: int
    tail: tuple[int, ...]  # `CONFIRM` of them, or all


def clusters_of(ends: Int64s, jump: int | None) -> list[Cluster]:
    """Split ascending times into clusters, which are all that a front needs. Without a jump there is one."""
    if not len(ends):
        return []
    cuts = [] if jump is None else (np.flatnonzero(_jumps(ends, jump)) + 1).tolist()
    bounds = zip([0, *cuts], [*cuts, len(ends)], strict=True)
    parts = [ends[begin:stop] for begin, stop in bounds]
    return [Cluster(int(part[0]), int(part[-1]), len(part), tuple(part[-CONFIRM:].tolist())) for part in parts]


def joined(clusters: Iterable[Cluster], jump: int) -> list[Cluster]:
    """Clusters of several sets of times as those of all of them."""
    found: list[Cluster] = []
    for own in sorted(clusters):
        if found and own.first <= found[-1].last + jump:
            before = found.pop()
            tail = tuple(sorted((*before.tail, *own.tail))[-CONFIRM:])
            own = Cluster(before.first, max(before.last, own.last), before.size + own.size, tail)
        found.append(own)
    return found


@dataclass
class Front:
    """The front of a source, or None before there are enough events. `doubted` are times ahead of it."""

    time: int | None = None
    doubted: list[int] = field(default_factory=list)
    agree: int = AGREE

    def take(self, ends: Int64s, jump: int | None) -> int | None:
        """Advance by the ends of events in any order, and return the new front."""
        if not len(ends):
            return self.time
        return self.take_clusters(clusters_of(np.sort(ends), jump), jump)

    def take_clusters(self, clusters: Sequence[Cluster], jump: int | None) -> int | None:
        """Advance by clusters of times, of one set of times after the other."""
        if not clusters:
            return self.time
        largest = max(own.last for own in clusters)
        if jump is None or (self.time is not None and largest <= self.time + jump):
            self.time = largest if self.time is None else max(self.time, largest)
            self.doubted = []
            return self.time
        fresh = joined(clusters, jump)
        doubted = [Cluster(time, time, 1, (time,)) for time in self.doubted if self.time is None or time > self.time]
        ahead = joined([*fresh, *doubted], jump)
        if self.time is None:
            largest_group = max(ahead, key=lambda own: own.size)
            if largest_group.size < self.agree:
                self.doubted = list(chain.from_iterable(own.tail for own in ahead))
                return None
            self.time = largest_group.last
            self.doubted = _last_after(self.time, ahead)
            return self.time
        self._follow(fresh, jump)
        going_on = sum(own.size for own in fresh if own.last <= self.time)
        beyond = [own for own in fresh if own.first > self.time] if going_on else ahead
        if (more := sum(own.size for own in beyond)) >= CONFIRM and more >= going_on:
            confirmed = _last_after(self.time, beyond)[0]
            self.time = next(own.last for own in beyond if own.last >= confirmed)
        self.doubted = [] if going_on else _last_after(self.time, beyond)
        return self.time

    def pass_time(self, time: int) -> None:
        """Advance to a time that is known to be right."""
        self.time = time if self.time is None else max(self.time, time)
        self.doubted = [other for other in self.doubted if other > self.time]

    def _follow(self, clusters: Iterable[Cluster], jump: int) -> None:
        """Advance to the last of the ascending times before a jump."""
        assert self.time is not None
        for own in clusters:
            if own.last > self.time >= own.first - jump:
                self.time = own.last

    def to_plain(self) -> Sequence[object]:
        """Convert to plain data for JSON."""
        return [self.time, self.doubted]

    @classmethod
    def from_plain(cls, plain: Sequence[object]) -> Front:
        """Convert the result of `to_plain` back."""
        time, doubted = plain
        assert time is None or isinstance(time, int)
        assert isinstance(doubted, list)
        return cls(time, list(doubted))


def reach(
    reached: dict[str, int], doubted: dict[str, list[int]], name: str, clusters: Sequence[Cluster], jump: int | None
) -> None:
    """Advance the front of a source by the times of new events."""
    known, largest = reached.get(name), max(own.last for own in clusters)
    if jump is None or (known is not None and largest <= known + jump):
        reached[name] = largest if known is None else max(known, largest)
        doubted.pop(name, None)
        return
    front = Front(known, doubted.pop(name, []))
    time = front.take_clusters(clusters, jump)
    if time is not None:
        reached[name] = time
    if front.doubted:
        doubted[name] = front.doubted
    for other in [other for other in doubted if other not in reached]:
        # The first events of a source are accepted if the other sources have come as far.
        if reached and max(doubted[other]) <= max(reached.values()) + jump:
            reached[other] = max(doubted.pop(other))


def _last_after(time: int, clusters: Iterable[Cluster]) -> list[int]:
    """Return the last few times after one, in order."""
    found = [other for own in clusters for other in own.tail if other > time]
    return sorted(found)[-CONFIRM:]


def _jumps(ends: Int64s, jump: int) -> npt.NDArray[np.bool_]:
    """Return which ascending ends are a jump after their predecessor; differences may exceed any end."""
    found: npt.NDArray[np.bool_] = np.diff(ends.view(np.uint64)) > np.uint64(min(jump, 2**64 - 1))
    return found
