"""Stabilisation: several sources, each in its own time order, become one stream in stream order (STEP 5.2.2, 5.5.2).

The first phase stores batches as they arrive, at constant cost per batch. The second releases all events whose turn has
come together: one radix sort for the order, and one gather for each column.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from weft.errors import UsageError, did_you_mean
from weft.kernels.events.merge import pass_of
from weft.runtime.data import blocks
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.reading.fronts import Front
from weft.runtime.reading.order import merged_order
from weft.runtime.reading.ties import ranks_of

BEGINNING, END = -(1 << 63), 1 << 63  # before and after all times
IN_VAIN = 2048


@dataclass(frozen=True)
class Late:
    """Late events of a source, and the front that it had passed when each arrived."""

    source: str
    events: EventBatch
    passed: Int64s


@dataclass(slots=True)
class Waiting:
    """A batch by ascending end, some of whose events may have been released already."""

    events: EventBatch
    first: int  # the front of its source before: no event ends earlier
    last: int
    size: int
    begin: int = 0


@dataclass(slots=True)
class Share:
    """The released events of a batch: those from `begin` to `stop`, of `size`."""

    events: EventBatch
    begin: int
    stop: int
    size: int


@dataclass(slots=True)
class Source:
    """One source: its front, when it was last heard of, and its pending batches."""

    name: str
    heard: float
    passed: int = BEGINNING  # no later event ends earlier
    front: Front = field(default_factory=Front)
    ended: bool = False
    waiting: deque[Waiting] = field(default_factory=deque)
    count: int = 0  # pending events
    idle_after: float | None = None  # seconds; None: it is always waited for

    def is_idle(self, now: float) -> bool:
        """Whether it has been silent for so long that it is not waited for."""
        return self.idle_after is not None and self.heard <= now - self.idle_after

    def share(self, bound: int) -> Iterator[Share]:
        """Remove the events that end before the bound, batch by batch in the order of arrival."""
        used = 0
        for batch in self.waiting:
            if batch.first >= bound:
                break
            stop = batch.size if batch.last < bound else int(batch.events.ends.searchsorted(bound))
            if stop > batch.begin:
                yield share_of(batch, stop)
                self.count -= stop - batch.begin
                batch.begin = stop
            used += stop == batch.size
        if used:
            self.waiting = deque(batch for batch in self.waiting if batch.begin < batch.size)


def share_of(batch: Waiting, stop: int) -> Share:
    """Return the next events of a batch. Slicing all columns costs more than copying a few extra events."""
    size = stop - batch.begin
    if batch.size - size < IN_VAIN:
        return Share(batch.events, batch.begin, stop, batch.size)
    return Share(blocks.slice(batch.events, batch.begin, size), 0, size, size)


class Stabiliser:
    """Merges named sources: an event is released when every other source has passed its time.

    A source passes a time when it sends an event `delay` ticks later, or says so (`heartbeat`), or ends (`close`). One
    that has been silent for `idle_after` seconds of the clock (its own, or that of all) is not waited for; when all are
    silent, the largest time so far has passed, and no more: what they then send in order is in time. A pause of all
    says nothing about one of them: when one sends again, the others are waited for as at the beginning. An event whose
    source has passed its time is late: it is set aside and counted. An event that is more than `jump` ticks ahead does
    not advance time until further events confirm it (see `Front`). Events with equal times are ordered by the place of
    their type in `types`, then by source, then by arrival.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        types: Sequence[str] = (),
        delay: int = 0,
        idle_after: float | Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        jump: int | None = None,
    ) -> None:
        if not sources or len(set(sources)) < len(sources):
            raise UsageError("the sources of a merge need names, and each its own")
        idle = idle_after if isinstance(idle_after, Mapping) else dict.fromkeys(sources, idle_after)
        if delay < 0 or any(after is not None and after < 0 for after in idle.values()):
            raise UsageError("neither `delay` nor `idle_after` can be negative")
        self.types = tuple(types)
        self.delay, self.jump = delay, jump
        self.counters: dict[str, int] = {"given": 0, "released": 0, "late": 0}
        self.safe = BEGINNING  # every event that ends before has been released
        self._clock = clock
        self._largest = BEGINNING
        self._late: list[Late] = []
        self._sources = {name: Source(name, clock(), idle_after=idle.get(name)) for name in sources}

    # -- the first phase --------------------------------------------------------------------------

    def push(self, source: str, events: EventBatch) -> None:
        """Add the next events of a source."""
        origin = self._heard(source)
        size = len(events.ends)
        if not size:
            return
        self.counters["given"] += size
        first = origin.passed
        front = None if self.jump is None else origin.front.take(events.ends, self.jump)
        if self.jump is not None and (front is None or int(events.ends.max()) > front):
            events = self._with_doubted(origin, events, front)
            size = len(events.ends)
        else:
            origin.passed, late, ascending = pass_of(fixed(events.ends), first, self.delay)
            if late or not ascending:
                events = self._in_order(origin.name, events, events.ends, first)
                size = len(events.ends)
        if size:
            last = int(events.ends[-1])
            known = last if self.jump is None else front if front is not None else int(events.ends[0])
            self._largest = max(self._largest, known)
            origin.waiting.append(Waiting(events, first, last, size))
            origin.count += size

    def heartbeat(self, source: str, time: int) -> None:
        """Declare that a source will send no event that ends before `time`."""
        origin = self._heard(source)
        origin.passed = max(origin.passed, time)
        if self.jump is not None:
            origin.front.pass_time(time)

    def close(self, source: str) -> None:
        """Declare that a source has ended."""
        self._heard(source).ended = True

    def hear(self, source: str) -> None:
        """Declare that a source is alive, though it sends nothing."""
        self._heard(source)

    def _heard(self, name: str) -> Source:
        source = self._sources.get(name)
        if source is None:
            raise UsageError(f"there is no source {name!r} to merge; {did_you_mean(name, self._sources)}")
        if source.ended:
            raise UsageError(f"the source {name!r} has ended: it cannot send more")
        if source.idle_after is not None:
            now = self._clock()
            if source.is_idle(now) and all(other.ended or other.is_idle(now) for other in self._sources.values()):
                for other in self._sources.values():
                    other.heard = now
            source.heard = now
        return source

    def _with_doubted(self, origin: Source, events: EventBatch, front: int | None) -> EventBatch:
        """Return the events in order when some are ahead of the front of their source."""
        first = origin.passed
        trusted = np.zeros(len(events), bool) if front is None else events.ends <= front
        if not trusted.any():
            return self._in_order(origin.name, events, np.full(len(events), first + self.delay), first)
        origin.passed = max(first, int(events.ends[trusted].max()) - self.delay)
        return self._in_order(origin.name, events, np.where(trusted, events.ends, events.ends[trusted].min()), first)

    def _in_order(self, source: str, events: EventBatch, moving: Int64s, first: int) -> EventBatch:
        """Return the events by ascending end; late ones are set aside.

        `moving` are the ends that advance time.
        """
        passed = np.full(len(events), first)
        passed[1:] = np.maximum(np.maximum.accumulate(moving)[:-1] - self.delay, first)
        late = events.ends < passed
        if late.any():
            self._late.append(Late(source, blocks.take(events, np.flatnonzero(late)), passed[late]))
            self.counters["late"] += int(late.sum())
        timely = np.flatnonzero(~late)
        return blocks.take(events, timely[np.argsort(events.ends[timely], kind="stable")])

    # -- the second phase -------------------------------------------------------------------------

    def release(self) -> EventBatch:
        """Return all events whose turn has come, in stream order, with their positions."""
        bound = self._bound()
        if bound <= self.safe:
            return blocks.empty()
        self.safe = bound
        merged = self._merged([share for source in self._sources.values() for share in source.share(bound)])
        begin = self.counters["released"]
        self.counters["released"] = begin + len(merged)
        return replace(merged, positions=np.arange(begin, begin + len(merged)))

    def _merged(self, shares: list[Share]) -> EventBatch:
        """Return the events of all shares in stream order, by one gather, as a slice of each batch would cost more."""
        if not shares:
            return blocks.empty()
        everything = blocks.concat([share.events for share in shares])
        before = accumulate((share.size for share in shares), initial=0)
        ranges = [(first + share.begin, first + share.stop) for share, first in zip(shares, before, strict=False)]
        ranks = ranks_of(everything.types, self.types) if self.types else None
        begins, stops = zip(*ranges, strict=True)
        return blocks.take(everything, merged_order(everything.starts, everything.ends, ranks, begins, stops))

    def flush(self) -> EventBatch:
        """Release all events: all sources have ended."""
        for source in self._sources.values():
            source.ended = True
        return self.release()

    def take_late(self) -> list[Late]:
        """Return the late events since the last call."""
        late, self._late = self._late, []
        return late

    @property
    def waiting(self) -> int:
        """The number of pending events."""
        return sum(source.count for source in self._sources.values())

    def ahead(self, source: str) -> int:
        """Return how many events of a source wait for slower sources."""
        origin = self._sources[source]
        return origin.count if origin.passed > self.safe else 0

    def held_by(self, source: str) -> int:
        """The number of events held back by a source."""
        origin = self._sources[source]
        return 0 if origin.passed > self.safe else self.waiting - origin.count

    def patience(self) -> float | None:
        """Return the seconds until the next source becomes idle, or None to wait for ever."""
        now = self._clock()
        there = [source for source in self._sources.values() if not source.ended and not source.is_idle(now)]
        left = [s.heard + s.idle_after - now for s in there if s.idle_after is not None]
        return min(left, default=None)

    def always_awaited(self, source: str) -> bool:
        """Whether a source is waited for however long it is silent."""
        return self._sources[source].idle_after is None

    def _bound(self) -> int:
        """Return the time that all sources have passed, except idle ones."""
        there = [source for source in self._sources.values() if not source.ended]
        if not there:
            return END
        self._believe_first(there)
        now = self._clock()
        bound = min((source.passed for source in there if not source.is_idle(now)), default=None)
        if bound is None:
            bound = max(source.passed for source in there)
            if self._largest > BEGINNING:
                bound = max(bound, self._largest + 1 - self.delay)
        for source in there:
            # An idle source may come back, and is late only where others have advanced without it.
            if source.is_idle(now):
                source.passed = max(source.passed, bound)
        return bound

    def _believe_first(self, there: Sequence[Source]) -> None:
        """Accept the first events of sources if the remaining sources have come as far."""
        known = [source.front.time for source in self._sources.values() if source.front.time is not None]
        for source in there if known and self.jump is not None else ():
            first = source.front.doubted
            if source.front.time is None and first and max(first) <= max(known) + (self.jump or 0):
                source.passed = max(source.passed, max(first) - self.delay)
                source.front.pass_time(max(first))
