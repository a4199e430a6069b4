"""Lanes in this process: a matcher for each, in threads, behind the interface of one matcher.

Kernels run without the interpreter's lock, so threads do work at the same time. Matches come out in lanes' order,
whatever thread was first: the answer does not depend on their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from weft.plan.operators import Plan
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.splits import Lane
from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.lanes.routing import shares
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch

PUSHED = 65536  # events given to the kernels at a time
Out = TypeVar("Out")


class Crew:
    """The matchers of all lanes of a plan."""

    def __init__(self, plan: Plan, lanes: Sequence[Lane], threads: int) -> None:
        self.lanes = tuple(lanes)
        self.members: list[Matcher] = []  # made when the first events are there, which say how long slices are
        self._plan = plan
        self._threads = min(threads, len(lanes))
        self._pool: ThreadPoolExecutor | None = None

    def gather(self, batch: EventBatch) -> None:
        """Make the matchers, if there are none yet: the first events say how long slices are."""
        if not self.members:
            self.lanes = tuple(_sized(lane, batch) for lane in self.lanes)
            self.members = [Matcher(self._plan, lane) for lane in self.lanes]

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that a batch makes certain, lane by lane."""
        if not len(batch):
            return
        self.gather(batch)
        time = int(batch.ends[-1])

        def work(member: Matcher, own: EventBatch) -> list[MatchBatch]:
            found = [match for piece in pieces(own) for match in member.push(piece)]
            return [*found, *member.advance(time)]  # a lane that sees no event knows how far time has come, too

        for found in self._each(work, list(shares(batch, self.lanes))):
            yield from found

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches of each query a batch makes certain."""
        if not len(batch):
            return {}
        self.gather(batch)
        time = int(batch.ends[-1])

        def work(member: Matcher, own: EventBatch) -> Counter[str]:
            totals: Counter[str] = Counter()
            for piece in pieces(own):
                totals.update(member.count(piece))
            for found in member.advance(time):
                totals.update(found.counts)
            return totals

        return dict(sum(self._each(work, list(shares(batch, self.lanes))), Counter[str]()))

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """No event that ends before this time will come: the matches that waited to know."""
        return (found for member in self.members for found in member.advance(time))

    def finish(self) -> list[MatchBatch]:
        """The stream has ended: what waited for time to pass."""
        found = self._each(lambda member, _: member.finish(), [None] * len(self.members))
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        return [match for own in found for match in own]

    def _each(self, work: Callable[..., Out], given: Sequence[object]) -> list[Out]:
        """What comes out of each lane's work, in lanes' order."""
        if self._threads == 1:
            return [work(member, own) for member, own in zip(self.members, given, strict=True)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "weft-lane")
        return list(self._pool.map(work, self.members, given))

    def expect(self, longest: int) -> None:
        """The input is finite, and no event in it is longer than so many ticks."""
        for member in self.members:
            member.expect(longest)

    def oldest(self) -> int | None:
        """The first position that a later match may show; None: it shows no event that was pushed."""
        known = [member.oldest() for member in self.members]
        return min((position for position in known if position is not None), default=None)

    @property
    def safe(self) -> int | None:
        """Matches that come later end at this time or after it; None: not before the last event."""
        known = [member.safe for member in self.members]
        return min((time for time in known if time is not None), default=None)

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all lanes hold now."""
        return sum(member.state_bytes for member in self.members)

    def drop_oldest(self, limit: int, names: Collection[str]) -> int:
        """Drop the oldest partial matches beyond so many bytes in all lanes together."""
        return sum(member.drop_oldest(limit // len(self.members), names) for member in self.members)

    @property
    def counters(self) -> dict[str, int]:
        """What all lanes count together."""
        totals: Counter[str] = Counter()
        for member in self.members:
            totals.update(member.counters)
        return dict(totals)


def _sized(lane: Lane, batch: EventBatch) -> Lane:
    """A lane with slices of a length that suits the first events."""
    if not isinstance(lane.split, BySlice) or lane.split.size:
        return lane
    values = batch.ends if lane.split.unit == "time" else batch.positions
    return replace(lane, split=lane.split.sized(int(values[0]), int(values[-1]), lane.shares))


def pieces(events: EventBatch) -> Iterator[EventBatch]:
    """A batch cut to the size that kernels like."""
    return (blocks.slice(events, first, PUSHED) for first in range(0, len(events), PUSHED))
