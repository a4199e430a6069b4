"""Spark's contract for micro-batches, around the real matcher: an offset log, versions of state, a sink, a commit log.

One thread, nothing but values, and a process that can end at every step. What a process leaves behind is in `Durable`;
the next one starts from there, as Spark does: it reads the last commit, restores the version of state that belongs
to it, and does the batch again whose offsets are in the log but not its commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.driving import EventDict, event_batches

from weft.plan.operators import Plan
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch
from weft.runtime.writing.match_rows import to_matches

Found = Counter[tuple[str, str]]  # how often each match, by query and id, is in the sink


class Died(Exception):
    """The process ended here."""


@dataclass
class Durable:
    """What survives a process."""

    offsets: list[int] = field(default_factory=list)  # where each batch ends
    versions: dict[int, dict[str, bytes]] = field(default_factory=lambda: {0: {}})  # state before each batch
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

    def step(self) -> None:
        """Something has just been done, or half of it."""
        self.steps += 1
        if self.steps in self.deaths:
            raise Died

    def run(self) -> None:
        """Go on where the last process stopped, to the end."""
        durable = self.durable
        pages = durable.versions[durable.committed]
        matcher = Matcher.restore(self.chosen, dict(pages)) if pages else Matcher(self.chosen)
        self.step()
        while durable.committed == 0 or durable.offsets[durable.committed - 1] < len(self.events):
            self._batch(matcher, durable.committed)
        self._write(durable.committed, iter(matcher.finish()))

    def _batch(self, matcher: Matcher, number: int) -> None:
        durable = self.durable
        begin = durable.offsets[number - 1] if number else 0
        if len(durable.offsets) == number:
            durable.offsets.append(min(len(self.events), begin + self.chance.randint(1, 5)))
            self.step()
        self._write(number, self._matched(matcher, begin, durable.offsets[number]))
        self._save(number + 1, matcher.snapshot())
        durable.committed += 1
        self.step()

    def _matched(self, matcher: Matcher, begin: int, end: int) -> Iterator[MatchBatch]:
        for batch in event_batches([self.events[begin:end]], self.chosen):
            yield from matcher.push(replace(batch, positions=batch.positions + begin))

    def _write(self, number: int, matches: Iterator[MatchBatch]) -> None:
        """The matches of a batch, which are there when all are written."""
        found = []
        for part in matches:
            found.append(part)
            self.step()
        self.durable.sink[number] = tuple(found)
        self.step()

    def _save(self, version: int, changed: Mapping[str, bytes | None]) -> None:
        """A new version of the state: what has changed, put to the version before; half of one counts for nothing."""
        pages = dict(self.durable.versions[version - 1])
        for name, page in changed.items():
            if page is None:
                pages.pop(name, None)
            else:
                pages[name] = page
        self.step()
        self.durable.versions[version] = pages
        self.durable.versions.pop(version - 3, None)
        self.step()


def history(chosen: Plan, events: Sequence[EventDict], seed: int, deaths: Collection[int] = ()) -> tuple[Found, int]:
    """What is in the sink when all is done, and how many steps that took; a process that dies is started again."""
    durable, steps = Durable(), 0
    chance = Random(seed)
    while True:
        process = Process(chosen, events, durable, chance, deaths, steps)
        try:
            process.run()
        except Died:
            steps = process.steps
        else:
            return durable.found(), process.steps
