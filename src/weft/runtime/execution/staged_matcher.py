"""Operators in several lanes, stage after stage, behind the interface of one matcher.

The lanes of a stage process one part of the input while the next stage processes the previous part. Receivers sort what
lanes send into processing order, so matches do not depend on the timing of threads.
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

TURN = 1 << 17  # events that a stage processes while the next one has the previous ones
Work = Callable[[], list[MatchBatch]]


class StagedMatcher(ThreadedMatcher):
    """The matchers of all lanes of a plan whose operators are placed on nodes."""

    members: list[StageMatcher]  # type: ignore[assignment]

    def _member(self, lane: Lane) -> Matcher:
        return StageMatcher(self._plan, lane)

    @property
    def _stages(self) -> list[list[int]]:
        """Return the places of the lanes of each stage."""
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
        """Return how many matches of each query are final with a batch."""
        totals: Counter[str] = Counter()
        for found, _ in self.waves(batch):
            for matches in found:
                totals.update(matches.counts)
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        if self.members:
            for places in self._stages:
                yield from self._done({at: _advancing(self.members[at], time) for at in places})

    def finish(self) -> list[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        if not self.members:
            return []
        found: list[MatchBatch] = []
        for places in self._stages:
            found += self._done({at: self.members[at].finish for at in places}, ENDLESS)
        return found

    def _done(self, work: dict[int, Work], bound: int | None = None) -> list[MatchBatch]:
        """Execute work in lanes and forward what they send; later occurrences end at the bound, if it is known."""
        found = self._threads.begin(lambda own: own(), work.values())()
        senders = [self.members[at] for at in work if self.members[at].sends]
        hand_on(senders, self.members, bound)
        return [matches for own in found for matches in own]


def hand_on(senders: Iterable[StageMatcher], members: Sequence[StageMatcher], bound: int | None = None) -> None:
    """Forward occurrences from lanes to those that read them, with the times up to which they are complete."""
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
    """Create the work of a lane: process its events of a part of the input, up to a time."""

    def work() -> list[MatchBatch]:
        found: list[MatchBatch] = []
        if is_first:
            for piece in blocks.pieces(route(), blocks.PUSHED):
                found += member.push(piece)
        return [*found, *member.advance(time)]

    return work


def _advancing(member: StageMatcher, time: int) -> Work:
    return lambda: list(member.advance(time))
