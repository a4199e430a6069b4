"""Spark's contract for micro-batches, around the real matcher: an offset log, versions of state, a sink, a commit log.

One thread, one matcher for each lane, nothing but values, and a process that can end at every step. What a process
leaves behind is in `Durable`; the next one starts from there, as Spark does: it reads the last commit, restores the
version of state that belongs to it, and does the batch again whose offsets are in the log but not its commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.driving import EventDict, event_batches, keep

from weft.plan.operators import Plan
from weft.plan.partitioning.splits import Lane
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.lanes.routing import shares
from weft.runtime.writing.match_rows import to_matches

Found = Counter[tuple[str, str]]  # how often each match, by query and id, is in the sink
Pages = dict[str, bytes]
Lanes = Sequence[Lane | None]  # None: one that has all


class Died(Exception):
    """The process ended here."""


@dataclass
class Durable:
    """What survives a process."""

    offsets: list[int] = field(default_factory=list)  # where each batch ends
    versions: dict[int, tuple[Pages, ...]] = field(default_factory=lambda: {0: ()})  # of all lanes before each batch
    sink: dict[int, tuple[MatchBatch, ...]] = field(default_factory=dict)  # by batch: writing one again replaces it
    committed: int = 0

    def found(self) -> Found:
        """All that is in the sink."""
        return Counter((match.query, match.id) for part in self.sink.values() for match in to_matches(part))


@dataclass
class Process:
    """A process that lives until it has done all, or dies: `deaths` are the steps, counted over all processes."""

    chosen: Plan
    events: Sequence[EventDict]
    durable: Durable
    chance: Random
    deaths: Collection[int] = ()
    steps: int = 0
    lanes: Lanes = (None,)

    def step(self) -> None:
        """Something has just been done, or half of it."""
        self.steps += 1
        if self.steps in self.deaths:
            raise Died

    def run(self) -> None:
        """Go on where the last process stopped, to the end."""
        durable = self.durable
        kept = durable.versions[durable.committed]
        matchers = [Matcher(self.chosen, lane) for lane in self.lanes]
        if kept:
            pairs = zip(kept, self.lanes, strict=True)
            matchers = [Matcher.restore(self.chosen, dict(pages), lane) for pages, lane in pairs]
        self.step()
        while durable.committed == 0 or durable.offsets[durable.committed - 1] < len(self.events):
            self._batch(matchers, durable.committed)
        self._write(durable.committed, (found for matcher in matchers for found in matcher.finish()))

    def _batch(self, matchers: Sequence[Matcher], number: int) -> None:
        durable = self.durable
        begin = durable.offsets[number - 1] if number else 0
        if len(durable.offsets) == number:
            durable.offsets.append(min(len(self.events), begin + self.chance.randint(1, 5)))
            self.step()
        self._write(number, self._matched(matchers, begin, durable.offsets[number]))
        self._save(number + 1, [matcher.snapshot() for matcher in matchers])
        durable.committed += 1
        self.step()

    def _matched(self, matchers: Sequence[Matcher], begin: int, end: int) -> Iterator[MatchBatch]:
        for batch in event_batches([self.events[begin:end]], self.chosen):
            placed = replace(batch, positions=batch.positions + begin)
            for matcher, share in zip(matchers, self._shares(placed), strict=True):
                yield from matcher.push(share)
                yield from matcher.advance(int(batch.ends[-1]))

    def _shares(self, batch: EventBatch) -> Iterator[EventBatch]:
        lanes = [lane for lane in self.lanes if lane is not None]
        return shares(batch, lanes) if lanes else iter([batch])

    def _write(self, number: int, matches: Iterator[MatchBatch]) -> None:
        """The matches of a batch, which are there when all are written."""
        found = []
        for part in matches:
            found.append(part)
            self.step()
        self.durable.sink[number] = tuple(found)
        self.step()

    def _save(self, version: int, changed: Sequence[Mapping[str, bytes | None]]) -> None:
        """A new version of the state: what has changed, put to the version before; half of one counts for nothing."""
        before = self.durable.versions[version - 1] or tuple({} for _ in self.lanes)
        after = []
        for pages, new in zip(before, changed, strict=True):
            after.append(dict(pages))
            keep(after[-1], new)
            self.step()
        self.durable.versions[version] = tuple(after)
        self.durable.versions.pop(version - 3, None)
        self.step()


def history(
    chosen: Plan, events: Sequence[EventDict], seed: int, deaths: Collection[int] = (), lanes: Lanes = (None,)
) -> tuple[Found, int]:
    """What is in the sink when all is done, and how many steps that took; a process that dies is started again."""
    durable, steps = Durable(), 0
    chance = Random(seed)
    while True:
        process = Process(chosen, events, durable, chance, deaths, steps, lanes)
        try:
            process.run()
        except Died:
            steps = process.steps
        else:
            return durable.found(), process.steps
