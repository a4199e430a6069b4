"""Deployed queries in several lanes, which process each batch concurrently: strategy `query`, for changing programs.

Queries that feed each other are in one lane; a new one goes to the lane with the fewest. Each lane sees all events, and
its kernels run without the interpreter's lock. The matches are the same as in one lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from weft.algebra.query import AnyQuery, Program
from weft.errors import UsageError
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.properties import families
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import NO_NAMES
from weft.runtime.live.deployments import Deployed, Deployments
from weft.runtime.store.pages import pages_below, pages_under
from weft.runtime.threads import Threads
from weft.runtime.watching.triggers import OperatorStats
from weft.statistics import Statistics
from weft.stored import Plain

LANES = "lanes"  # what a structure of several lanes has, and of one has not


class LanedDeployments:
    """The same as `Deployments`, in several lanes and threads."""

    def __init__(self, lanes: int, threads: int, choices: Choices = DEFAULT) -> None:
        self._choices = choices
        self._lanes = [Deployments(choices) for _ in range(lanes)]
        self._threads = Threads(threads)
        self.present: list[Deployed] = []
        self._key: tuple[str, ...] = ()

    def identify_by(self, key: tuple[str, ...]) -> None:
        """Identify events by these attributes, not by those that queries mention."""
        self._key = key
        for lane in self._lanes:
            lane.identify_by(key)

    @property
    def columns(self) -> frozenset[str]:
        """The attributes that some query reads."""
        return frozenset().union(*(lane.columns for lane in self._lanes))

    def check(self, program: Program) -> None:
        """Refuse a program that cannot be planned."""
        self._lanes[0].check(program)

    def deploy(self, program: Program) -> list[Deployed]:
        """Let the queries of a program see the events from now on; changes nothing if they cannot."""
        for lane in self._lanes:
            lane.check_readers(program.queries)
        self.check(program)
        placed = self._placed(program.queries)
        added: dict[int, Deployed] = {}
        for lane, places in zip(self._lanes, placed, strict=True):
            if places:
                own = replace(program, queries=tuple(program.queries[place] for place in places))
                try:
                    added.update(zip(places, lane.deploy(own), strict=True))
                except BaseException:
                    self.remove(list(added.values()))
                    raise
        deployed = [added[place] for place in sorted(added)]
        self.present += deployed
        return deployed

    def _placed(self, queries: Sequence[AnyQuery]) -> list[list[int]]:
        """The places of queries, by lane."""
        makers: dict[str, list[int]] = {}
        for place, query in enumerate(queries):
            makers.setdefault(query.defines, []).append(place)
        fed_by = [{maker for type_ in query.reads for maker in makers.get(type_, ())} for query in queries]
        placed: list[list[int]] = [[] for _ in self._lanes]
        for family in families(fed_by):
            needed = {lane for place in family for lane in self._needed(queries[place])}
            if len(needed) > 1:
                names = ", ".join(queries[place].name for place in family)
                raise UsageError(
                    f"{names} would tie queries together that run in different lanes: deploy all of them at once, "
                    "or run the program in one lane"
                )
            loads = [len(lane.present) + len(own) for lane, own in zip(self._lanes, placed, strict=True)]
            placed[needed.pop() if needed else loads.index(min(loads))] += family
        return [sorted(own) for own in placed]

    def _needed(self, query: AnyQuery) -> Iterator[int]:
        """The lanes that a query must be in: of those that feed it, and of rules that it feeds."""
        for number, lane in enumerate(self._lanes):
            for other in (deployed.query for deployed in lane.present):
                if other.defines in query.reads or (query.is_rule and other.is_rule and query.defines in other.reads):
                    yield number

    def remove(self, gone: Collection[Deployed]) -> None:
        """Let these queries see nothing more."""
        leaving = set(gone)
        for lane in self._lanes:
            own = [deployed for deployed in lane.present if deployed in leaving]
            if own:
                lane.remove(own)
        self.present = [deployed for deployed in self.present if deployed not in leaving]

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that are certain with a batch, lane by lane; all must be taken."""
        busy = [lane for lane in self._lanes if lane.present]
        for found in self._threads.each(lambda lane: list(lane.push(batch)), busy):
            yield from found

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """The matches that are certain when no event that ends before this time will come; all must be taken."""
        return (found for lane in self._lanes for found in lane.advance(time))

    def finish(self) -> list[MatchBatch]:
        """The matches that the end of the stream decides."""
        return [found for own in self._threads.each(Deployments.finish, self._lanes) for found in own]

    def oldest(self) -> int | None:
        """The first position that a later match may be made of, or None."""
        known = [lane.oldest() for lane in self._lanes]
        return min((position for position in known if position is not None), default=None)

    def operator_stats(self) -> list[OperatorStats]:
        """How operators stand; a lane's number is before their names."""
        return [
            standing._replace(name=f"lane {number}, {standing.name}")
            for number, lane in enumerate(self._lanes)
            for standing in lane.operator_stats()
        ]

    @property
    def state_bytes(self) -> int:
        """The bytes of memory that all queries hold now, counted."""
        return sum(lane.state_bytes for lane in self._lanes)

    def bytes_of_query(self, name: str) -> int:
        """Those that are one query's own."""
        return sum(lane.bytes_of_query(name) for lane in self._lanes)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the oldest partial matches of queries that exceed `limit` bytes in all lanes together."""
        parts = (lane.drop_oldest(limit // len(self._lanes), names) for lane in self._lanes)
        return sum(parts, Counter[str]())

    def seconds_of_query(self, name: str) -> float:
        """The seconds that were taken for one query alone since this was asked first."""
        return sum(lane.seconds_of_query(name) for lane in self._lanes)

    @property
    def statistics(self) -> Statistics:
        """What is known of the events that passed since queries came or went."""
        return reduce(Statistics.over, (lane.statistics for lane in self._lanes))

    @property
    def counters(self) -> dict[str, int]:
        """What was counted; events once, not in each lane."""
        counted: Counter[str] = Counter()
        for lane in self._lanes:
            counted.update(lane.counters)
        most = max(lane.counters.get("events", 0) for lane in self._lanes)
        return {**counted, "events": most}

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""
        pages: dict[str, bytes | None] = {}
        for number, lane in enumerate(self._lanes):
            pages |= pages_under(f"{number}/", lane.snapshot())
        return pages

    def structure(self) -> Plain:
        """What is deployed in each lane, as plain data."""
        return {LANES: [lane.structure() for lane in self._lanes]}

    def restore(
        self, structure: Plain, pages: Mapping[str, bytes], time_unit: str, names: Mapping[str, str] = NO_NAMES
    ) -> None:
        """Go on where those stood that had this structure and these pages; queries get other names, by `names`."""
        parts = structure[LANES]
        self._lanes = [Deployments(self._choices) for _ in parts]
        self.identify_by(self._key)
        for number, (lane, part) in enumerate(zip(self._lanes, parts, strict=True)):
            lane.restore(part, pages_below(f"{number}/", pages), time_unit, names)
        self.present = [deployed for lane in self._lanes for deployed in lane.present]


def deployments_of(lanes: int | None, threads: int | None, choices: Choices) -> Deployments | LanedDeployments:
    """Return the deployments for a number of lanes and threads; each number defaults to the other."""
    if (lanes or threads or 1) == 1:
        return Deployments(choices)
    return LanedDeployments(lanes or threads or 1, threads or lanes or 1, choices)
