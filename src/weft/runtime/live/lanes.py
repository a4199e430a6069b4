"""Deployed queries in several lanes, which process each batch concurrently: strategies `key` and `query`.

The program may change. Queries whose events have a key in common are in all lanes, each of which has the events of its
keys. Others are in one lane, with their whole family; a new one goes to the lane with the fewest, which has all events.
Kernels run without the interpreter's lock. The matches are the same as in one lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from weft.algebra.query import AnyQuery, Program
from weft.errors import UsageError
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.keys import key_of
from weft.plan.properties import families
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import NO_NAMES
from weft.runtime.lanes.routing import Route
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.live.deployments import Deployed, Deployments
from weft.runtime.live.keyed_lanes import KeyedLanes, joined_family
from weft.runtime.store.pages import pages_below, pages_under
from weft.runtime.threads import Threads
from weft.runtime.watching.triggers import OperatorStats
from weft.statistics import Statistics
from weft.stored import Plain

LANES, KEYED = "lanes", "keyed"  # what a structure of several lanes has, and of one has not
FEW = 256  # events that are not worth handing to threads
STRATEGIES = ("key", "query")
Home = Deployments | KeyedLanes
Given = tuple[Deployments, Route]


class LanedDeployments:
    """Like `Deployments`, in several lanes and threads."""

    def __init__(self, lanes: int, threads: int, choices: Choices = DEFAULT, *, by_key: bool = True) -> None:
        self._choices = choices._replace(grows=True)
        self._lanes = [Deployments(choices) for _ in range(lanes)]  # of queries that are in one
        self._keyed: list[KeyedLanes] = []  # they stay when their queries go: pages of the state have their numbers
        self._by_key = by_key
        self._threads = Threads(threads)
        self.present: list[Deployed] = []
        self._key: tuple[str, ...] = ()

    @property
    def _homes(self) -> list[Home]:
        return [*self._lanes, *self._keyed]

    @property
    def _all(self) -> list[Deployments]:
        return [*self._lanes, *(lane for keyed in self._keyed for lane in keyed.lanes)]

    @property
    def _busy(self) -> list[Deployments]:
        return [lane for lane in self._all if lane.present]

    @property
    def lane_count(self) -> int:
        """The number of lanes."""
        return len(self._lanes)

    @property
    def comes_by_end(self) -> bool:
        """Whether the matches of one query are emitted by end, batch by batch."""
        return not any(keyed.present for keyed in self._keyed)

    def identify_by(self, key: tuple[str, ...]) -> None:
        """Identify events by these attributes instead of those in queries."""
        self._key = key
        for lane in self._all:
            lane.identify_by(key)

    @property
    def columns(self) -> frozenset[str]:
        """The attributes that some query reads."""
        return frozenset().union(*(lane.columns for lane in self._all))

    def check(self, program: Program, added: Sequence[AnyQuery] = (), gone: Collection[Deployed] = ()) -> None:
        """Reject a program that cannot be planned, and queries that cannot be placed beside the remaining ones."""
        self._lanes[0].check(program)
        self._placed(added, gone)

    def deploy(self, program: Program) -> list[Deployed]:
        """Deploy the queries of a program, which read events from now on; an error changes nothing."""
        for lane in self._all:
            lane.check_readers(program.queries)
        self._lanes[0].check(program)
        added: dict[int, Deployed] = {}
        for home, places in self._placed(program.queries):
            own = replace(program, queries=tuple(program.queries[place] for place in places))
            try:
                added.update(zip(places, home.deploy(own), strict=True))
            except BaseException:
                self.remove(list(added.values()))
                raise
        deployed = [added[place] for place in sorted(added)]
        self.present += deployed
        return deployed

    def _placed(self, queries: Sequence[AnyQuery], gone: Collection[Deployed] = ()) -> list[tuple[Home, list[int]]]:
        """Group queries by the lanes in which they are to run."""
        makers: dict[str, list[int]] = {}
        for place, query in enumerate(queries):
            makers.setdefault(query.defines, []).append(place)
        fed_by = [{maker for type_ in query.reads for maker in makers.get(type_, ())} for query in queries]
        placed: dict[Home, list[int]] = {}
        for family in families(fed_by):
            own = [queries[place] for place in family]
            needed = dict.fromkeys(home for query in own for home in self._needed(query, gone))
            home = self._home(own, list(needed)) or self._lightest(placed, gone)
            placed.setdefault(home, []).extend(family)
        return [(home, sorted(places)) for home, places in placed.items()]

    def _home(self, queries: Sequence[AnyQuery], needed: Sequence[Home]) -> Home | None:
        """Return where queries that feed each other run, or None for any one lane."""
        names = ", ".join(query.name for query in queries)
        if len(needed) > 1:
            raise UsageError(
                f"{names} would tie queries together that run in different lanes: deploy all of them at once, "
                "or run the program in one lane"
            )
        if not needed:
            return self._keyed_for(queries) if self._by_key else None
        (home,) = needed
        if isinstance(home, KeyedLanes) and not home.takes(queries):
            key = ", ".join("/".join(part) for part in home.key)
            raise UsageError(
                f"{names} would tie queries together that run in lanes by [{key}], and has no such key itself: deploy "
                "all of them at once, or run the program in one lane"
            )
        return home

    def _keyed_for(self, queries: Sequence[AnyQuery]) -> KeyedLanes | None:
        """Return the lanes of the key that queries have in common, or None."""
        known = [keyed for keyed in self._keyed if keyed.takes(queries)]
        if known:
            return known[0]
        key, _ = key_of(joined_family(self._choices, (), queries))
        if not key:
            return None
        found = KeyedLanes(key, len(self._lanes), self._choices)
        for lane in found.lanes:
            lane.identify_by(self._key)
        self._keyed.append(found)
        return found

    def _lightest(self, placed: Mapping[Home, list[int]], gone: Collection[Deployed]) -> Deployments:
        """Return the lane with the fewest queries."""
        return min(
            self._lanes, key=lambda lane: sum(one not in gone for one in lane.present) + len(placed.get(lane, ()))
        )

    def _needed(self, query: AnyQuery, gone: Collection[Deployed]) -> Iterator[Home]:
        """Return where a query must run: with its feeders, and with rules that it feeds."""
        for home in self._homes:
            for other in (deployed.query for deployed in home.present if deployed not in gone):
                if other.defines in query.reads or (query.is_rule and other.is_rule and query.defines in other.reads):
                    yield home

    def remove(self, gone: Collection[Deployed]) -> None:
        """Remove queries."""
        leaving = set(gone)
        for home in self._homes:
            own = [deployed for deployed in home.present if deployed in leaving]
            if own:
                home.remove(own)
        self.present = [deployed for deployed in self.present if deployed not in leaving]

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch, lane by lane; the iterator must be exhausted."""
        given: list[Given] = [(lane, lambda: batch) for lane in self._lanes if lane.present]
        for keyed in self._keyed:
            if keyed.present:
                given += zip(keyed.lanes, keyed.given(batch), strict=True)
        time = int(batch.ends[-1])

        def work(one: Given) -> list[MatchBatch]:
            lane, route = one
            return _pushed(lane, route(), time)

        for found in map(work, given) if len(batch) < FEW else self._threads.each(work, given):
            yield from found

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time; exhaust the iterator."""
        return (found for lane in self._all for found in lane.advance(time))

    def finish(self) -> list[MatchBatch]:
        """Emit all pending matches: the stream has ended."""
        return [found for own in self._threads.each(Deployments.finish, self._all) for found in own]

    def oldest(self) -> int | None:
        """Return the first position that a later match may contain, or None."""
        known = [lane.oldest() for lane in self._all]
        return min((position for position in known if position is not None), default=None)

    def operator_stats(self) -> list[OperatorStats]:
        """Return the statistics of operators, named with their lane and the key that splits its events."""
        named = [(f"lane {number}", lane) for number, lane in enumerate(self._lanes)]
        for keyed in self._keyed:
            key = ", ".join("/".join(part) for part in keyed.key)
            named += [(f"lane {number} by [{key}]", lane) for number, lane in enumerate(keyed.lanes)]
        return [
            standing._replace(name=f"{name}, {standing.name}")
            for name, lane in named
            for standing in lane.operator_stats()
        ]

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries use, by count."""
        return sum(lane.state_bytes for lane in self._all)

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes that one query uses."""
        return sum(lane.bytes_of_query(name) for lane in self._all)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes in all lanes together."""
        own = [lane for lane in self._busy if any(one.query.name in names for one in lane.present)]
        return sum((lane.drop_oldest(limit // len(own), names) for lane in own), Counter[str]())

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds spent for one query since the first call."""
        return sum(lane.seconds_of_query(name) for lane in self._all)

    @property
    def statistics(self) -> Statistics:
        """The statistics of events since queries were last deployed or removed."""
        whole = reduce(Statistics.over, (lane.statistics for lane in self._all))
        rates = reduce(lambda known, keyed: {**keyed.rates(), **known}, self._keyed, dict[str, float]())
        known = reduce(Statistics.over, (lane.statistics for lane in self._lanes)).rates
        return replace(whole, rates={**rates, **known})

    @property
    def counters(self) -> dict[str, int]:
        """All counters; events are counted once, not in each lane that has them."""
        counted: Counter[str] = Counter()
        for lane in self._all:
            counted.update(lane.counters)
        most = max(lane.counters.get("events", 0) for lane in self._all)
        return {**counted, "events": most}

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        pages: dict[str, bytes | None] = {}
        for number, lane in enumerate(self._all):
            pages |= pages_under(f"{number}/", lane.snapshot())
        return pages

    def structure(self) -> Plain:
        """Return the deployed queries of each lane as plain data."""
        return {
            LANES: [lane.structure() for lane in self._lanes],
            KEYED: [[keyed.key, [lane.structure() for lane in keyed.lanes]] for keyed in self._keyed],
            "by key": self._by_key,
        }

    def restore(
        self, structure: Plain, pages: Mapping[str, bytes], time_unit: str, names: Mapping[str, str] = NO_NAMES
    ) -> None:
        """Restore deployments from their structure and pages; queries are renamed by `names`."""
        parts, keyed = list(structure[LANES]), structure.get(KEYED, [])
        self._lanes = [Deployments(self._choices) for _ in parts]
        self._keyed = [KeyedLanes(tuple(map(tuple, key)), len(parts), self._choices) for key, _ in keyed]
        self._by_key = structure.get("by key", True)
        self.identify_by(self._key)
        parts += [part for _, own in keyed for part in own]
        for number, (lane, part) in enumerate(zip(self._all, parts, strict=True)):
            lane.restore(part, pages_below(f"{number}/", pages), time_unit, names)
        for one in self._keyed:
            one.note()
        self.present = [deployed for home in self._homes for deployed in home.present]


def _pushed(lane: Deployments, events: EventBatch, time: int) -> list[MatchBatch]:
    """Return the matches of a lane that are final with its events of a batch, which ends at a time."""
    found = list(lane.push(events)) if len(events) else []
    if not len(events) or int(events.ends[-1]) < time:
        found += lane.advance(time)
    return found


def deployments_of(sharing: Sharing, choices: Choices) -> Deployments | LanedDeployments:
    """Return the deployments for a number of lanes and threads; each number defaults to the other."""
    if sharing.lanes == "auto":
        raise UsageError("a live program does not know its rates ahead: say how many lanes, or how many threads")
    lanes, threads = sharing.number, sharing.threads
    if sharing.strategy not in (None, *STRATEGIES):
        raise UsageError(f"a live program runs in lanes by key or by query, not by {sharing.strategy!r}")
    if (lanes or threads or 1) == 1:
        return Deployments(choices)
    return LanedDeployments(lanes or threads or 1, threads or lanes or 1, choices, by_key=sharing.strategy != "query")
