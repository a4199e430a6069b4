"""The local engine: passes events in stream order through one matcher, and sorts matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa

from weft.algebra.query import Program
from weft.optimizer.pipeline import AS_WRITTEN, Choices
from weft.plan.forms.replanning import CostReplanner
from weft.plan.operators import Plan
from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.adapting import ENOUGH, Adapting
from weft.runtime.execution.matcher import Matcher
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.limits.guarding import Guard
from weft.runtime.reading.order import Reading
from weft.runtime.results.results import at_least_one, shaping
from weft.runtime.store.event_buffer import EventBuffer
from weft.runtime.threads import Threads
from weft.runtime.watching.census import Census, doubts_of
from weft.runtime.watching.measuring import Measure
from weft.runtime.watching.stopwatch import Stopwatch
from weft.runtime.writing.match_rows import Finish, in_stretches, to_record_batches
from weft.statistics import Statistics

ROUND = 1 << 21  # events that lanes share out at a time
MANY = 1 << 18  # events from which on it is asked whether lanes pay
LanesFor = Callable[[Statistics], tuple[Plan, tuple[Lane, ...], Choices] | None]


class Events(Protocol):
    """Protocol of a source: events in stream order, batch by batch."""

    reading: Reading
    rejected: list[Rejected]
    counters: dict[str, int]
    longest: int | None  # ticks of the longest event; None: it is not known ahead

    @property
    def is_live(self) -> bool:
        """Whether events are matched as they arrive."""

    @property
    def safe(self) -> int | None:
        """The time before which all events were yielded, or None for the end of the last one."""

    def __iter__(self) -> Iterator[EventBatch]:
        """Yield batches; one may be empty when time has passed without events."""


class LocalRun:
    """One pass of a plan over a source of events in this process, by one matcher or by several lanes.

    `written` is the program before it was optimised with the `choices`: matchers may change its form. `lanes_for`
    decides by
    statistics of the first events whether a long input is better split, and how it is then optimised.
    """

    def __init__(
        self,
        plan: Plan,
        source: Events,
        lanes: Sequence[Lane] = (),
        threads: int = 1,
        written: Program | None = None,
        choices: Choices = AS_WRITTEN,
        guard: Guard | None = None,
        lanes_for: LanesFor | None = None,
    ) -> None:
        self.counters: dict[str, int] = {}
        self._watch = Stopwatch()
        self.seconds: dict[str, float] = self._watch.seconds
        self._plan = plan
        self._source = source
        self._lanes = tuple(lanes)
        self._threads = threads
        self._written, self._choices = written, choices
        self._lanes_for = lanes_for
        self._adapting: Adapting | None = None
        self._order = [query.name for query in plan.queries]
        self._census = Census(plan.program)
        self._kept = EventBuffer()
        self._guard = Guard(plan.queries) if guard is None else guard

    @property
    def rejected(self) -> Sequence[Rejected]:
        """The events that could not be read; complete after the pass."""
        return self._source.rejected

    @property
    def doubts(self) -> list[str]:
        """Warnings about the events; complete after the pass."""
        return doubts_of(self._plan.program, self._census.counts, self.counters)

    def rows(self, finish: Finish | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all matches in match order as rows of MATCH_SCHEMA, or converted by `finish`."""
        batches = self._looked_at()
        with self._pool() as finders, self._pool() as writers:
            yield from self._rows(batches, self._matcher(finders), writers, finish)

    def _rows(
        self, batches: Iterable[EventBatch], matcher: Matcher | ThreadedMatcher, writers: Threads, finish: Finish | None
    ) -> Iterator[pa.RecordBatch]:
        held: list[MatchBatch] = []
        found = 0
        for batch in self._watch.around("read", self._batches(batches)):
            self._census.look(batch)
            batch = self._guard.events(batch, matcher)
            self._kept.add(batch)
            ready = self._ready(matcher, replace(batch, rows=None), held)
            made = in_stretches(ready, tuple(self._order), writers, finish)
            for rows in self._watch.around("order", made):
                found += len(rows)
                yield rows
            self._guard.done(matcher)
            self._kept.forget(partial(_oldest, matcher, held))
            self._note(matcher, found)
        self._guard.begin(matcher)
        last = self._guard.matches(iter(matcher.finish()))
        for rows in to_record_batches([*held, *last], self._order, writers, finish):
            found += len(rows)
            yield rows
        self._note(matcher, found)

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield all matches in match order as rows of results, in at least one batch; types may vary with the input."""
        finish = shaping(self._kept, self._plan.queries, self._source.reading)
        return at_least_one(self.rows(finish), finish)

    def _pool(self) -> Threads:
        return Threads(min(self._threads, len(self._lanes)) if self._lanes else 1)

    def _matcher(self, threads: Threads) -> Matcher | ThreadedMatcher:
        if self._plan.placed:
            from weft.runtime.execution.staged_matcher import StagedMatcher  # it loads all kinds of operators

            return StagedMatcher(self._plan, self._lanes, threads, key=self._source.reading.key)
        if self._lanes:
            key, replanner = self._source.reading.key, partial(CostReplanner, self._choices)
            return ThreadedMatcher(self._plan, self._lanes, threads, self._written, replanner, key)
        matcher = Matcher(self._plan)
        matcher.identify_by(self._source.reading.key)
        if self._written is not None:
            self._adapting = Adapting(matcher, CostReplanner(self._choices))
            self._adapting.watch(self._written, range(len(self._written.queries)))
        return matcher

    def _looked_at(self) -> Iterable[EventBatch]:
        """Yield the events; the first ones decide about lanes, if that was left open and there are many."""
        if self._lanes_for is None or self._source.is_live:
            return self._source
        events, first, count = iter(self._source), list[EventBatch](), 0
        while count < MANY and (batch := next(events, None)) is not None:
            first.append(batch)
            count += len(batch)
        if count >= MANY:
            found = self._lanes_for(self._measured(first))
            if found is not None:
                self._plan, self._lanes, self._choices = found
        self._lanes_for = None
        return chain(first, events)

    def _measured(self, batches: Iterable[EventBatch]) -> Statistics:
        program = self._plan.program  # it is rewritten already
        measure, left = Measure(program, rewritten=program), ENOUGH
        for batch in batches:
            if left > 0:
                measure.look(blocks.slice(batch, 0, min(left, len(batch))))
                left -= len(batch)
        return measure.statistics()

    def _batches(self, source: Iterable[EventBatch]) -> Iterator[EventBatch]:
        """Yield the events, in large batches for lanes, so that each has work."""
        batches = blocks.joined(source, ROUND) if self._lanes and not self._source.is_live else iter(source)
        for batch in batches:
            if self._adapting is not None:
                self._adapting.look(batch)
            yield batch

    def _ready(
        self, matcher: Matcher | ThreadedMatcher, batch: EventBatch, held: list[MatchBatch]
    ) -> Iterator[list[MatchBatch]]:
        """Yield the matches of a batch and those in `held`, by ranges of time; others are added to `held`."""
        for fresh, time in self._watch.around("match", self._pieces(matcher, batch)):
            ready, held[:] = settle([*held, *fresh], time)
            yield ready

    def _pieces(self, matcher: Matcher | ThreadedMatcher, batch: EventBatch) -> Iterator[tuple[list[MatchBatch], int]]:
        """Yield new matches with a time: all matches that end before it are then complete.

        Matches of one query are emitted by end, so they can be yielded in pieces, more than fit into memory. Those of
        several queries are emitted query by query, so they are complete only together.
        """
        if self._source.longest is not None:
            matcher.expect(self._source.longest)
        changing = self._adapting is not None and self._adapting.is_changing
        if isinstance(matcher, ThreadedMatcher):
            for some, time in matcher.waves(batch):
                yield list(self._guard.matches(iter(some))), time
        elif len(batch) and len(self._order) == 1 and not changing:
            for piece in self._guard.matches(matcher.push(batch)):
                yield [piece], _until(matcher, int(piece.ends[-1]))
            yield [], _until(matcher, int(batch.ends[-1]))
        elif len(batch):
            found = list(self._guard.matches(matcher.push(batch)))
            yield found, _until(matcher, int(batch.ends[-1]))
        if self._source.safe is not None:
            decided = list(self._guard.matches(iter(matcher.advance(self._source.safe))))
            yield decided, _until(matcher, self._source.safe)

    def counts(self) -> dict[str, int]:
        """Return the number of matches of each query, without building them."""
        batches = self._looked_at()
        with self._pool() as finders:
            return self._counts(batches, self._matcher(finders))

    def _counts(self, batches: Iterable[EventBatch], matcher: Matcher | ThreadedMatcher) -> dict[str, int]:
        totals = Counter(dict.fromkeys(self._order, 0))
        for batch in self._watch.around("read", self._batches(batches)):
            self._census.look(batch)
            batch = self._guard.events(batch, matcher)
            if self._source.longest is not None:
                matcher.expect(self._source.longest)
            for counts in self._watch.around("match", map(matcher.count, [batch] if len(batch) else [])):
                totals.update(counts)
            if self._source.safe is not None:
                for decided in matcher.advance(self._source.safe):
                    totals[decided.query] += len(decided)
            self._guard.done(matcher)
            self._note(matcher, totals.total())
        for rest in matcher.finish():
            totals.update(rest.counts)
        self._note(matcher, totals.total())
        return dict(totals)

    def _note(self, matcher: Matcher | ThreadedMatcher, matches: int) -> None:
        own = {} if self._adapting is None else self._adapting.counters
        own |= self._guard.counters
        self.counters = {**matcher.counters, **self._source.counters, **own, "matches": matches}


def _oldest(matcher: Matcher | ThreadedMatcher, held: Sequence[MatchBatch]) -> int | None:
    """Return the first position that a match may contain that was not yielded yet."""
    known = [matcher.oldest(), *(int(batch.positions.min()) for batch in held if len(batch.positions))]
    return min((position for position in known if position is not None), default=None)


def _until(matcher: Matcher | ThreadedMatcher, time: int) -> int:
    """Return the time, or the earlier one at which matches may still end, of closed partitions in the past."""
    return time if matcher.watermark is None else min(time, matcher.watermark)


def settle(batches: Sequence[MatchBatch], time: int) -> tuple[list[MatchBatch], list[MatchBatch]]:
    """Split matches into those that end before `time`, and those to hold back.

    Later events may end at `time` too, and their matches may precede those that are known.
    """
    ready: list[MatchBatch] = []
    held: list[MatchBatch] = []
    for batch in batches:
        split = int(np.searchsorted(batch.ends, time))
        ready.append(batch.slice(0, split))
        held.append(batch.slice(split, len(batch)))
    return [b for b in ready if len(b)], [b for b in held if len(b)]
