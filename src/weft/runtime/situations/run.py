"""A network of situations: the matches of each are events for those after it, in stream order.

A situation that receives derived events waits until none can come any more that belongs before the next: the matches
of a deferred one lie in the past.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from weft.algebra.contexts import FromFor, Windows
from weft.algebra.situations import SituationQuery
from weft.errors import InputError
from weft.plan.keyed import keyed_sequence
from weft.plan.situations import unlinked
from weft.runtime import blocks
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.matches import MatchBatch
from weft.runtime.running import pages_below, pages_under
from weft.runtime.situations.keyed import KeyedRun
from weft.runtime.situations.report import Reporter
from weft.runtime.situations.stage import Stage
from weft.runtime.situations.waiting import Waiting
from weft.runtime.state.paging import Array, Paging

EARLIEST = -(1 << 63)
KEYS = "keys/"  # of pages that tell themselves whether they changed


class NetworkRun:
    """The situations of a program over one stream of events."""

    counters: Mapping[str, int] = {}

    def __init__(self, queries: Sequence[SituationQuery]) -> None:
        self.queries = tuple(queries)
        alone = {number: keyed_sequence(queries[number].situation) for number in unlinked(queries)}
        self._keyed = [KeyedRun(queries[number], found) for number, found in alone.items() if found is not None]
        rest = [query for number, query in enumerate(queries) if alone.get(number) is None]
        names = [query.name for query in rest]
        self._stages: list[Stage] = []
        self._feeders: list[list[int]] = []
        for number, query in enumerate(rest):
            feeders = [at for at in range(number) if names[at] in query.situation.types]
            self._feeders.append(feeders)
            self._stages.append(Stage(query, listed=bool(feeders)))
        self._consumers = [
            [at for at, feeders in enumerate(self._feeders) if number in feeders] for number in range(len(rest))
        ]
        self._reporters = [Reporter(stage, number) for number, stage in enumerate(self._stages)]
        self._waiting = [Waiting(None if stage.needs_all else stage.types) for stage in self._stages]
        self._last: int | None = None  # the end of the last event
        self._passed: int | None = None  # all further events end then or later
        self._longest, self._finite = 0, False  # ticks of the longest event so far, or (finite) of all
        self._slack = [_slack(stage.query) for stage in self._stages]
        self._paging = Paging()

    @property
    def looks_back(self) -> bool:
        """Whether an event may open a partition that ended before it came."""
        return any(slack is not None for slack in self._slack)

    def expect(self, longest: int) -> None:
        """The input is finite, and no event in it is longer."""
        self._longest, self._finite = longest, True

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that are known with a batch, situation by situation, each by end."""
        if not len(batch):
            return
        for run in self._keyed:
            yield from run.push(batch)
        for number in self._see(batch):
            yield from self._reported(number, self._given(number, batch))

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches are known with a batch."""
        totals: Counter[str] = Counter()
        if not len(batch):
            return {}
        totals.update({run.query.name: run.count(batch) for run in self._keyed})
        for number in self._see(batch):
            name = self._stages[number].query.name
            if self._consumers[number]:
                totals[name] += sum(map(len, self._reported(number, self._given(number, batch))))
            else:
                totals[name] += sum(map(len, self._given(number, batch, counting=True)))
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """The matches that are known when no event that ends before this time will come."""
        for number in self._pass(time):
            yield from self._reported(number, self._given(number, blocks.empty()))

    def finish(self) -> Iterator[MatchBatch]:
        """The matches that the end of the input decides."""
        if self._last is None:
            return
        for number in range(len(self._stages)):
            yield from self._reported(number, self._given_last(number, self._last))

    @property
    def safe(self) -> int | None:
        """All further matches end then or later; None before any event."""
        if self._passed is None:
            return None
        settled = _least([self._passed, *map(self._settled, range(len(self._stages)))])
        return EARLIEST if settled is None else settled

    def sweep(self) -> None:
        """Partitions are given up as they close."""

    def _see(self, batch: EventBatch) -> Iterable[int]:
        """The situations in turn, when these events have come."""
        self._last = int(batch.ends[-1])
        if self.looks_back and batch.starts is not batch.ends:
            self._longest = max(self._longest, int((batch.ends - batch.starts).max()))
        return self._pass(self._last)

    def _pass(self, time: int) -> Iterable[int]:
        """The situations in turn, when this time has passed."""
        self._passed = time if self._passed is None else max(self._passed, time)
        return range(len(self._stages))

    def _settled(self, number: int) -> int | None:
        """All further matches of a situation end then or later; None when nothing is known.

        An event that is longer than the partition it opens tells of an absence in the past. How far back that can be
        is known for a finite input, whose longest event is, unless derived events open partitions: then nothing is
        known before the end. Without an end all that can be done is to take the longest event so far.
        """
        settled, slack = self._stages[number].settled, self._slack[number]
        if settled is None or slack is None:
            return settled
        if self._finite and self._feeders[number]:
            return None
        return settled - max(0, self._longest - slack)

    def _given(self, number: int, batch: EventBatch, *, counting: bool = False) -> Iterator[Int64s]:
        """The sets of a situation that gets the events whose turn has come."""
        stage, waiting = self._stages[number], self._waiting[number]
        assert self._passed is not None
        if not self._feeders[number]:
            yield from stage.take(batch, None, self._passed, counting=counting)
            return
        waiting.add_input(batch)
        settled = _least([self._passed, *map(self._settled, self._feeders[number])])
        if settled is None:
            return
        ready = waiting.ready(settled, stage.taken)
        if ready is None:
            yield from stage.take(blocks.empty(), None, settled, counting=counting)
        else:
            yield from stage.take(ready.batch, ready.lists, settled, counting=counting)

    def _given_last(self, number: int, last: int) -> Iterator[Int64s]:
        """The sets of a situation for which the input has ended."""
        stage = self._stages[number]
        stage.expect_end(last)
        ready = self._waiting[number].ready(None, stage.taken)
        if ready is not None:
            yield from stage.take(ready.batch, ready.lists, int(ready.batch.ends[-1]))
        yield from stage.finish(last)

    def _reported(self, number: int, sets: Iterator[Int64s]) -> Iterator[MatchBatch]:
        """Matches of the sets of a situation, which are events for those that look at them."""
        reporter, consumers = self._reporters[number], self._consumers[number]
        for some in sets:
            chosen = reporter.by_end(some)
            found = reporter.matches(chosen)
            if consumers:
                self._feed(number, chosen, found)
            yield found

    def _feed(self, number: int, sets: Int64s, found: MatchBatch) -> None:
        name = self._stages[number].query.name
        for at in self._consumers[number]:
            passed = self._stages[at].time
            early = found.ends[found.ends < (EARLIEST if passed is None else passed)]
            if len(early):
                raise InputError(
                    f"an event longer than all before opens a partition of {name!r} that ended at {int(early[0])}, "
                    f"before what {self._stages[at].query.name!r} has seen; with the whole input at hand "
                    "(weft match, weft.detect) that is no problem"
                )
            self._waiting[at].add(self._reporters[number].derived(sets, found))

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot; None: the page is gone."""
        small = {"times": json.dumps([self._last, self._passed, self._longest]).encode()}
        arrays: list[tuple[str, Array]] = []
        keys: dict[str, bytes | None] = {}
        for name, part in self._parts():
            small |= pages_under(name, part.small())
            arrays += [(name + own, array) for own, array in part.arrays().items()]
            keys |= pages_under(KEYS + name, part.keys())
        for number, waiting in enumerate(self._waiting):
            small |= pages_under(f"waiting/{number}/", dict(waiting.pages()))
        return {**self._paging.changes(small, arrays), **keys}

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the pages of snapshots."""
        self._paging.load({name: page for name, page in pages.items() if not name.startswith(KEYS)})
        self._last, self._passed, self._longest = json.loads(pages["times"])
        for name, part in self._parts():
            keys = pages_under("keys/", pages_below(KEYS + name, pages))
            part.load({**pages_below(name, pages), **keys})
        for number, waiting in enumerate(self._waiting):
            waiting.load(pages_below(f"waiting/{number}/", pages))

    def _parts(self) -> Iterator[tuple[str, KeyedRun | Stage]]:
        """What has state of its own, and the beginning of its pages' names."""
        yield from ((f"keyed/{number}/", run) for number, run in enumerate(self._keyed))
        yield from ((f"stage/{number}/", stage) for number, stage in enumerate(self._stages))


def _slack(query: SituationQuery) -> int | None:
    """How long an event may be without opening a partition, for an absence, that ended before it; None: it may be."""
    context = query.situation.context
    if query.situation.kind != "absence" or not isinstance(context, FromFor | Windows):
        return None
    return context.length if isinstance(context, FromFor) else 1


def _least(times: Iterable[int | None]) -> int | None:
    known: list[int] = []
    for time in times:
        if time is None:
            return None
        known.append(time)
    return min(known)
