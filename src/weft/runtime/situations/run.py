"""A network of situations: the matches of each are events for those after it, in stream order.

A situation that receives derived events waits until none can come any more that belongs before the next: the matches
of a deferred one lie in the past.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from weft.algebra.predicates import Attribute
from weft.algebra.situations import SituationQuery
from weft.errors import InputError
from weft.plan.keyed import keyed_sequence
from weft.plan.situations import unlinked
from weft.runtime.events import EventBatch
from weft.runtime.matches import MatchBatch, PlainMatch, to_batch
from weft.runtime.running import pages_below
from weft.runtime.situations.happenings import Happening, happenings
from weft.runtime.situations.keyed import KeyedRun
from weft.runtime.situations.stage import Match, Stage
from weft.runtime.state import PageStore

EARLIEST = -(1 << 63)


class NetworkRun:
    """The situations of a program over one stream of events."""

    def __init__(self, queries: Sequence[SituationQuery]) -> None:
        self.queries = tuple(queries)
        alone = {number: keyed_sequence(queries[number].situation) for number in unlinked(queries)}
        self._keyed = [KeyedRun(queries[number], found) for number, found in alone.items() if found is not None]
        rest = [query for number, query in enumerate(queries) if alone.get(number) is None]
        self._stages = [Stage(query) for query in rest]
        self._feeders = [self._feeders_of(number) for number in range(len(rest))]
        self._waiting: list[list[Happening]] = [[] for _ in rest]
        self._last: int | None = None  # the end of the last event
        self._passed: int | None = None  # no event that ends before it will come
        self._store = PageStore()
        read = {node.name for query in rest for node in query.walk() if isinstance(node, Attribute)}
        self._columns = sorted(read.union(*(query.situation.context.by for query in rest)))
        types: frozenset[str] = frozenset().union(*(stage.types for stage in self._stages))
        self._types = None if any(stage.needs_all for stage in self._stages) else types

    def _feeders_of(self, number: int) -> list[int]:
        stage = self._stages[number]
        earlier = enumerate(self._stages[:number])
        return [at for at, feeder in earlier if stage.needs_all or feeder.query.name in stage.types]

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that are known with a batch, situation by situation, each by end."""
        if not len(batch):
            return
        for run in self._keyed:
            yield from run.push(batch)
        yield from self._staged(batch)

    def _staged(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches of situations that are worked out event by event."""
        self._last = int(batch.ends[-1])
        seen = list(happenings(batch, self._columns, self._types)) if self._stages else []
        yield from self._pass(seen, self._last)

    def _pass(self, seen: Sequence[Happening], time: int) -> Iterator[MatchBatch]:
        """The matches that are known with these events and when time has passed."""
        self._passed = time if self._passed is None else max(self._passed, time)
        for number, stage in enumerate(self._stages):
            found = self._advance(number, seen, self._passed)
            self._feed(number, found)
            if found:
                yield _reported(stage.query.name, found)

    def count(self, batch: EventBatch) -> dict[str, int]:
        """How many matches are known with a batch."""
        totals: Counter[str] = Counter()
        if not len(batch):
            return {}
        totals.update({run.query.name: run.count(batch) for run in self._keyed})
        for found in self._staged(batch):
            totals[found.query] += len(found)
        return dict(totals)

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """The matches that are known when no event that ends before this time will come."""
        yield from self._pass((), time)

    def finish(self) -> Iterator[MatchBatch]:
        """The matches that the end of the input decides."""
        if self._last is None:
            return
        for number, stage in enumerate(self._stages):
            waiting, self._waiting[number] = self._waiting[number], []
            found = [match for event in sorted(waiting, key=_order) for match in stage.take(event)]
            found += stage.finish(self._last)
            self._feed(number, found)
            if found:
                yield _reported(stage.query.name, found)

    @property
    def safe(self) -> int | None:
        """All further matches end then or later; None before any event."""
        if self._passed is None:
            return None
        settled = _least([self._passed, *(stage.settled for stage in self._stages)])
        return EARLIEST if settled is None else settled

    def _advance(self, number: int, seen: Sequence[Happening], time: int) -> list[Match]:
        """Give a situation the events whose turn has come."""
        stage = self._stages[number]
        if not self._feeders[number]:
            ready, bound = seen, time
        else:
            own = [event for event in seen if stage.needs_all or event.type in stage.types]
            settled = _least([time, *(self._stages[feeder].settled for feeder in self._feeders[number])])
            waiting = [*self._waiting[number], *own]
            if settled is None:
                self._waiting[number] = waiting
                return []
            bound = settled
            self._waiting[number] = [event for event in waiting if event.end >= bound]
            ready = sorted((event for event in waiting if event.end < bound), key=_order)
        found = [match for event in ready for match in stage.take(event)]
        return [*found, *stage.pass_time(bound)]

    def _feed(self, number: int, found: Iterable[Match]) -> None:
        """Matches as events for the situations that look at them."""
        consumers = [at for at, feeders in enumerate(self._feeders) if number in feeders]
        if not consumers:
            return
        name = self._stages[number].query.name
        for match in found:
            attributes = {name: value for name, value in match.event.items() if isinstance(value, int | float | str)}
            event = Happening(name, match.start, match.end, match.positions, attributes, number, match.rank)
            for at in consumers:
                passed = self._stages[at].time
                if passed is not None and match.end < passed:
                    raise InputError(
                        f"an event is longer than the partition of {name!r} that it opens, and {name!r} at {match.end} "
                        f"would come before what {self._stages[at].query.name!r} has seen: ask for engine='meaning'"
                    )
                self._waiting[at].append(event)

    # -- state ----------------------------------------------------------------------------------

    counters: Mapping[str, int] = {}

    def sweep(self) -> None:
        """Partitions are given up as they close."""

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot; None: the page is gone."""
        return self._store.changes(self._pages(), ())

    def _pages(self) -> Iterator[tuple[str, bytes]]:
        yield "times", json.dumps([self._last, self._passed]).encode()
        for number, run in enumerate(self._keyed):
            yield from ((f"keyed/{number}/{name}", page) for name, page in run.pages())
        for number, stage in enumerate(self._stages):
            waiting = [event.to_json() for event in self._waiting[number]]
            yield f"stage/{number}", json.dumps({"waiting": waiting, **stage.to_json()}).encode()

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the pages of snapshots."""
        self._store.load(pages)
        self._last, self._passed = json.loads(pages["times"])
        for number, run in enumerate(self._keyed):
            run.load(pages_below(f"keyed/{number}/", pages))
        for number, stage in enumerate(self._stages):
            saved = json.loads(pages[f"stage/{number}"])
            self._waiting[number] = [Happening.from_json(values) for values in saved["waiting"]]
            stage.load(saved)


def _order(event: Happening) -> tuple[object, ...]:
    return event.order


def _least(times: Iterable[int | None]) -> int | None:
    known: list[int] = []
    for time in times:
        if time is None:
            return None
        known.append(time)
    return min(known)


def _reported(query: str, found: Iterable[Match]) -> MatchBatch:
    ordered = sorted(found, key=lambda match: (match.end, match.start, match.positions))
    return to_batch(query, [PlainMatch(*match[:7]) for match in ordered])
