"""The front of a source in time, robust against single events in the far future.

An event that is more than `jump` ticks ahead of the events before it is doubted: time does not follow it. It is
accepted when confirmed: two more events are as far ahead or further, and none in between continues the old time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from weft.runtime.data.events import Int64s
from weft.runtime.reading.kinds import NANOSECONDS

MAX_JUMP = 43_200.0  # seconds: half a day
CONFIRM = 3  # events that are ahead, until the first of them is believed
AGREE = 2  # events near each other that a source begins with, unless its first event is to be believed at once


def jump_ticks(seconds: float | None, time_unit: str) -> int | None:
    """A jump in seconds as ticks; None: any jump is believed."""
    if seconds is None or seconds == inf:
        return None
    return max(0, int(seconds * 10**9 // NANOSECONDS[time_unit]))


@dataclass
class Front:
    """The time that a source has come to; None: there are too few events to know. `doubted`: times that are ahead."""

    time: int | None = None
    doubted: list[int] = field(default_factory=list)
    agree: int = AGREE

    def take(self, ends: Int64s, jump: int | None) -> int | None:
        """Move on by the ends of events, in any order, and give the time that has been reached then."""
        if not len(ends):
            return self.time
        largest = int(ends.max())
        if jump is None or (self.time is not None and largest <= self.time + jump):
            self.time = largest if self.time is None else max(self.time, largest)
            self.doubted = []
            return self.time
        ahead = np.sort(np.concatenate([ends, np.array(self.doubted, np.int64)]))
        if self.time is None:
            self.time = _beginning(ahead, jump, self.agree)
            if self.time is None:
                self.doubted = ahead.tolist()
                return None
            self._follow(ahead, jump)
            self.doubted = self._beyond(ahead)
            return self.time
        before = self.time
        fresh = np.sort(ends)
        self._follow(fresh, jump)
        going_on = int(np.searchsorted(fresh, self.time, side="right"))
        beyond = fresh[going_on:] if going_on else ahead[ahead > before]
        if len(beyond) >= CONFIRM and len(beyond) >= going_on:
            self.time = int(beyond[-CONFIRM])
            self._follow(beyond, jump)
        self.doubted = [] if going_on else self._beyond(beyond)
        return self.time

    def pass_time(self, time: int) -> None:
        """Time has come so far, by somebody who knows."""
        self.time = time if self.time is None else max(self.time, time)
        self.doubted = [other for other in self.doubted if other > self.time]

    def _follow(self, ends: Int64s, jump: int) -> None:
        """Go on to the last of the ascending ends that is no jump away from the one before."""
        assert self.time is not None
        later = ends[np.searchsorted(ends, self.time, side="right") :]
        if len(later):
            steps = np.diff(later, prepend=self.time)
            stop = np.flatnonzero(steps > jump)
            last = int(stop[0]) if len(stop) else len(later)
            self.time = int(later[last - 1]) if last else self.time

    def _beyond(self, ends: Int64s) -> list[int]:
        """The times that are ahead: as many as it takes to believe one."""
        assert self.time is not None
        found: list[int] = ends[ends > self.time].tolist()
        return found[-CONFIRM:]

    def to_plain(self) -> Sequence[object]:
        """As JSON has it."""
        return [self.time, self.doubted]

    @classmethod
    def from_plain(cls, plain: Sequence[object]) -> Front:
        """What `to_plain` gave."""
        time, doubted = plain
        assert time is None or isinstance(time, int)
        assert isinstance(doubted, list)
        return cls(time, list(doubted))


def reach(
    reached: dict[str, int], doubted: dict[str, list[int]], name: str, runs: Sequence[Int64s], jump: int | None
) -> None:
    """Let a source come as far as the ends of new events say, which ascend in each run."""
    known, largest = reached.get(name), max(int(run[-1]) for run in runs)
    if jump is None or (known is not None and largest <= known + jump):
        reached[name] = largest if known is None else max(known, largest)
        doubted.pop(name, None)
        return
    front = Front(known, doubted.pop(name, []))
    time = front.take(np.concatenate(runs), jump)
    if time is not None:
        reached[name] = time
    if front.doubted:
        doubted[name] = front.doubted
    for other in [other for other in doubted if other not in reached]:
        # The first events of a source are believed if the other sources have come as far.
        if reached and max(doubted[other]) <= max(reached.values()) + jump:
            reached[other] = max(doubted.pop(other))


def _beginning(ends: Int64s, jump: int, agree: int) -> int | None:
    """The first time of the most events that are near each other, the earlier of as many; None: they are too few."""
    borders = np.flatnonzero(np.diff(ends) > jump) + 1
    groups = np.split(ends, borders)
    sizes = [len(group) for group in groups]
    most = max(sizes)
    return int(groups[sizes.index(most)][0]) if most >= agree else None
