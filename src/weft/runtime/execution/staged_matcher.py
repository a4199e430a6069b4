"""Operators in several lanes, stage after stage, behind the interface of one matcher.

The lanes of a stage work at the same time as those of the next stage do, on what was before. What lanes send is put
into processing order where it is received: whatever thread was first, matches are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.execution.stage_matcher import StageMatcher
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.routing import routes
from weft.runtime.operators.joins.channels import OccurrenceBatch
from weft.runtime.operators.joins.operators import ENDLESS

TURN = 1 << 17  # events that a stage works on while the next one has what came before
Work = Callable[[], list[MatchBatch]]


class StagedMatcher(ThreadedMatcher):
    """The matchers of all lanes of a plan whose operators are placed on nodes."""

    members: list[StageMatcher]  # type: ignore[assignment]

    def _member(self, lane: Lane) -> Matcher:
        return StageMatcher(self._plan, lane)

    @property
    def _stages(self) -> list[list[int]]:
        """The places of the lanes of each stage."""
        last = max(lane.stage for lane in self.lanes)
        return [[at for at, lane in enumerate(self.lanes) if lane.stage == stage] for stage in range(last + 1)]

    def waves(self, batch: EventBatch) -> Iterator[tuple[list[MatchBatch], int]]:
        """Yield matches with a time: all matches that end before it are complete."""
        if not len(batch):
            return
        self.gather(batch)
        pieces, stages = list(blocks.pieces(batch, TURN)), self._stages
        given = [routes(piece, self.lanes) for piece in pieces]
        for turn in range(len(pieces) + len(stages) - 1):
            work: dict[int, Work] = {}
            for stage, places in enumerate(stages):
                if 0 <= (number := turn - stage) < len(pieces):
                    time = int(pieces[number].ends[-1])
                    work |= {at: _pushing(self.members[at], given[number][at], time, stage == 0) for at in places}
            found = self._done(work)
            time, known = int(pieces[min(turn, len(pieces) - 1)].ends[-1]), self.watermark
            yield found, time if known is None else min(time, known)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches of each query a batch makes certain."""
        totals: Counter[str] = Counter()
        for found, _ in self.waves(batch):
            for matches in found:
                totals.update(matches.counts)
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """No event that ends before this time will come: the matches that waited to know."""
        if self.members:
            for places in self._stages:
                yield from self._done({at: _advancing(self.members[at], time) for at in places})

    def finish(self) -> list[MatchBatch]:
        """The stream has ended: what waited for time to pass."""
        if not self.members:
            return []
        found: list[MatchBatch] = []
        for places in self._stages:
            found += self._done({at: self.members[at].finish for at in places}, ENDLESS)
        return found

    def _done(self, work: dict[int, Work], bound: int | None = None) -> list[MatchBatch]:
        """Let lanes do their work, and hand on what they send; further occurrences end at the bound, if it is known."""
        found = self._threads.begin(lambda own: own(), work.values())()
        senders = [self.members[at] for at in work if self.members[at].sends]
        hand_on(senders, self.members, bound)
        return [matches for own in found for matches in own]


def hand_on(senders: Iterable[StageMatcher], members: Sequence[StageMatcher], bound: int | None = None) -> None:
    """Hand occurrences on from lanes to those that read them, who are told what has come."""
    sent: dict[int, list[OccurrenceBatch]] = {}
    channels: set[int] = set()
    for sender in senders:
        channels |= sender.sends
        for batch in sender.take_sent():
            sent.setdefault(batch.channel, []).append(batch)
    for channel in sorted(channels):
        until = bound
        if until is None:
            until = min(member.send_by(channel) for member in members if channel in member.sends)
        for reader in members:
            if channel in reader.receives:
                reader.receive(sent.get(channel, ()), channel, until)


def _pushing(member: StageMatcher, route: Callable[[], EventBatch], time: int, is_first: bool) -> Work:
    """The work of a lane: to take its events of a piece of the input, up to a time."""

    def work() -> list[MatchBatch]:
        found: list[MatchBatch] = []
        if is_first:
            for piece in blocks.pieces(route(), blocks.PUSHED):
                found += member.push(piece)
        return [*found, *member.advance(time)]

    return work


def _advancing(member: StageMatcher, time: int) -> Work:
    return lambda: list(member.advance(time))
