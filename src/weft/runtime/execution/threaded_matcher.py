"""Lanes in this process: a matcher for each, in threads, behind the interface of one matcher.

Kernels run without the interpreter's lock, so threads run in parallel. Matches are emitted in the order of lanes, so
they do not depend on the timing or the number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from weft.algebra.query import Program
from weft.plan.operators import Plan
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.adapting import Adapting, Replanner
from weft.runtime.execution.changing import watched
from weft.runtime.execution.matcher import Matcher
from weft.runtime.lanes.heavy import suited
from weft.runtime.lanes.routing import Route, routes
from weft.runtime.operators.operator import EARLIEST
from weft.runtime.threads import ALONE, Threads

PUSHED = blocks.PUSHED  # events given to the kernels at a time
FEWEST = 64  # if several queries find many matches in them
WAVE = 1 << 16  # matches of a lane before it waits for others, so that they stay in the cache
MANY = 1 << 18  # of several queries, where more events at a time cost less each
AHEAD = 1 << 22  # matches of a lane that may be queued while others lag

Look = Callable[[EventBatch], None]


class ThreadedMatcher:
    """The matchers of all lanes of a plan.

    `written` is the program before optimisation: each lane may change its form, by a `replanner` of its own.
    """

    def __init__(
        self,
        plan: Plan,
        lanes: Sequence[Lane],
        threads: Threads = ALONE,
        written: Program | None = None,
        replanner: Callable[[], Replanner] | None = None,
        key: tuple[str, ...] = (),
    ) -> None:
        self._key = key  # attributes that identify events instead of those in queries
        self.lanes = tuple(lanes)
        self.members: list[Matcher] = []  # created with the first events, which determine the length of slices
        self._watching: list[Adapting] = []  # those of the members
        self._plan, self._written, self._replanner = plan, written, replanner
        self._threads = threads
        self._longest: int | None = None  # ticks of the longest event of a finite input

    def gather(self, batch: EventBatch) -> None:
        """Create the matchers from the first events, which determine the length of slices and heavy keys."""
        if not self.members:
            self.lanes = suited((_sized(lane, batch) for lane in self.lanes), batch)
            self.members = list(map(self._member, self.lanes))
            for member in self.members:
                member.identify_by(self._key)
            self._expect()
            if self._written is not None and self._replanner is not None:
                given = zip(self.members, self.lanes, strict=True)
                self._watching = [watched(member, lane, self._written, self._replanner()) for member, lane in given]

    def _member(self, lane: Lane) -> Matcher:
        """Create the matcher of a lane."""
        return Matcher(self._plan, lane)

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch, lane by lane."""
        return (match for found, _ in self.waves(batch) for match in found)

    def waves(self, batch: EventBatch) -> Iterator[tuple[list[MatchBatch], int]]:
        """Yield matches in parts, lane by lane, with a time: all matches that end before it are complete.

        A lane far ahead waits for the others, so that there may be more matches than fit into memory. While matches are
        consumed, lanes compute the next ones.
        """
        if not len(batch):
            return
        self.gather(batch)
        time = int(batch.ends[-1])
        flows = [Flow(member, route, time, look) for member, route, look in self._given(batch)]
        at_work = self._threads.begin(Flow.pull, flows)
        while True:
            at_work()
            bound = min((flow.end for flow in flows if not flow.is_done), default=time)
            found = [match for flow in flows for match in flow.taken(bound)]
            safe = min((flow.watermark for flow in flows if flow.watermark is not None), default=bound)
            left = [flow for flow in flows if not flow.is_done]
            at_work = self._threads.begin(Flow.pull, [flow for flow in left if flow.end <= bound or flow.ahead < AHEAD])
            yield found, min(bound, safe)
            if not left:
                return

    def count(self, batch: EventBatch) -> dict[str, int]:
        """Return how many matches of each query are final with a batch."""
        if not len(batch):
            return {}
        self.gather(batch)
        time = int(batch.ends[-1])

        def work(member: Matcher, route: Route, look: Look) -> Counter[str]:
            totals: Counter[str] = Counter()
            for piece in blocks.pieces(route(), PUSHED):
                look(piece)
                totals.update(member.count(piece))
            for found in member.advance(time):
                totals.update(found.counts)
            return totals

        return dict(sum(self._threads.begin(lambda given: work(*given), self._given(batch))(), Counter[str]()))

    def _given(self, batch: EventBatch) -> list[tuple[Matcher, Route, Look]]:
        """Return for each lane its matcher, its events of a batch, and the observer to call before the matcher."""
        looks = [one.look for one in self._watching] or [_pass_by] * len(self.members)
        return list(zip(self.members, routes(batch, self.lanes), looks, strict=True))

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        return (found for member in self.members for found in member.advance(time))

    def finish(self) -> list[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        return [match for own in self._threads.begin(Matcher.finish, self.members)() for match in own]

    def expect(self, longest: int) -> None:
        """Declare that the input is finite, with events of at most `longest` ticks."""
        self._longest = longest
        self._expect()

    def _expect(self) -> None:
        if self._longest is not None:
            for member in self.members:
                member.expect(self._longest)

    def oldest(self) -> int | None:
        """Return the first position that a later match may contain, or None if it contains no event so far."""
        known = [member.oldest() for member in self.members]
        return min((position for position in known if position is not None), default=None)

    @property
    def watermark(self) -> int | None:
        """The output watermark: no later match ends earlier. None means the end of the last event."""
        known = [member.watermark for member in self.members]
        return min((time for time in known if time is not None), default=None)

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all lanes use."""
        return sum(member.state_bytes for member in self.members)

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes that one query uses."""
        return sum(member.bytes_of_query(name) for member in self.members)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes in all lanes together."""
        parts = (member.drop_oldest(limit // len(self.members), names) for member in self.members)
        return sum(parts, Counter[str]())

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds that all lanes together spent for one query since the first call."""
        return sum(member.seconds_of_query(name) for member in self.members)

    @property
    def counters(self) -> dict[str, int]:
        """The counters of all lanes together."""
        totals: Counter[str] = Counter()
        for counters in [*(member.counters for member in self.members), *(one.counters for one in self._watching)]:
            totals.update(counters)
        return dict(totals)


class Flow:
    """The matches of one lane with a batch, computed on demand. Those of one query come by end."""

    def __init__(self, member: Matcher, route: Route, time: int, look: Look) -> None:
        self.is_done = False
        self.end = EARLIEST  # no later match of this batch ends earlier
        self.watermark: int | None = None  # and so do those of further events; None: not before the last event
        self._member = member
        self._found = self._all(member, route, time, look)
        self._fresh: list[MatchBatch] = []
        self._waiting: list[tuple[int, int]] = []  # ends and numbers of matches that cannot be emitted yet

    @staticmethod
    def _all(member: Matcher, route: Route, time: int, look: Look) -> Iterator[tuple[list[MatchBatch], int | None]]:
        """Yield matches with a time, if it is known that all further ones end then or later.

        Matches of several queries come query by query, so the time is known after a group of events, chosen so that
        their matches stay in the cache.
        """
        events, at = route(), 0
        size = FEWEST if member.emits_several_queries else PUSHED
        while at < len(events):
            piece, told = blocks.slice(events, at, size), 0
            look(piece)
            for batch in member.push(piece):
                told += len(batch)
                yield [batch], int(batch.ends[-1]) if len(batch) and not member.emits_several_queries else None
            yield [], int(piece.ends[-1])
            at += len(piece)
            if member.emits_several_queries:
                size = max(FEWEST, size // 2) if told > MANY else min(PUSHED, 2 * size) if told < MANY // 4 else size
        for batch in member.advance(time):  # time also passes in a lane without events
            yield [batch], None

    def pull(self) -> None:
        """Find more matches."""
        self.is_done = not self._has_more()
        self.watermark = self._member.watermark  # read here, while no other thread changes it

    def _has_more(self) -> bool:
        left = WAVE
        for batches, end in self._found:
            self._fresh += batches
            left -= sum(map(len, batches))
            if end is not None:
                self.end = max(self.end, end)
                if left <= 0:
                    return True
        return False

    def taken(self, bound: int) -> list[MatchBatch]:
        """Return the matches found since the last call that end before the bound."""
        fresh, self._fresh = self._fresh, []
        self._waiting += [(int(batch.ends[-1]), len(batch)) for batch in fresh if len(batch)]
        self._waiting = [(end, count) for end, count in self._waiting if end >= bound]
        return fresh

    @property
    def ahead(self) -> int:
        """The number of matches that wait for those of other lanes."""
        return sum(count for _, count in self._waiting)


def _sized(lane: Lane, batch: EventBatch) -> Lane:
    """Set the length of a lane's slices by the first events."""
    if not isinstance(lane.split, BySlice) or lane.split.size:
        return lane
    values = batch.ends if lane.split.unit == "time" else batch.positions
    return replace(lane, split=lane.split.sized(int(values[0]), int(values[-1]), lane.shares))


def _pass_by(batch: EventBatch) -> None:
    """Ignore events."""
