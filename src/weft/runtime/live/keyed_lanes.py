"""Deployed queries that are split by one key: every lane has all of them, and the events whose key falls to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from weft.algebra.query import AnyQuery, Program
from weft.optimizer.pipeline import Choices
from weft.plan.keys import Key, splits_by
from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.choice import families_of
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import Family, seen_types
from weft.runtime.data.events import EventBatch
from weft.runtime.lanes.routing import Route, routes
from weft.runtime.live.deployments import Deployed, Deployments


class KeyedLanes:
    """Lanes by a key. A deployed query is known as the first lane has it; the others have it at the same place."""

    def __init__(self, key: Key, lanes: int, choices: Choices) -> None:
        self.key = key
        self._choices = choices
        self.lanes = [Deployments(choices) for _ in range(lanes)]
        self._routing: tuple[Lane, ...] = ()

    @property
    def present(self) -> list[Deployed]:
        """The queries that are deployed, in the order in which they came."""
        return self.lanes[0].present

    def takes(self, family: Sequence[AnyQuery]) -> bool:
        """Whether the work of queries, with that of the running ones they have to do with, can be split by the key."""
        return splits_by(joined_family(self._choices, [one.query for one in self.present], family), self.key)

    def deploy(self, program: Program) -> list[Deployed]:
        """Let queries see the events from now on in every lane; changes nothing if they cannot."""
        done = 0
        try:
            for lane in self.lanes:
                lane.deploy(program)
                done += 1
        except BaseException:
            for lane in self.lanes[:done]:
                lane.remove(lane.present[-len(program.queries) :])
            raise
        self.note()
        return self.present[-len(program.queries) :]

    def remove(self, gone: Collection[Deployed]) -> None:
        """Let these queries see nothing more in any lane."""
        places = [place for place, one in enumerate(self.present) if one in gone]
        for lane in self.lanes:
            lane.remove([lane.present[place] for place in places])
        self.note()

    def note(self) -> None:
        """Queries have come or gone: of which types events are routed."""
        queries = [one.query for one in self.present]
        defined = {query.defines for query in queries}
        seen = [seen_types([query], fed=not defined.isdisjoint(query.reads)) for query in queries]
        known = [types for types in seen if types is not None]
        types = frozenset().union(*known) if len(known) == len(seen) else None
        count, split = len(self.lanes), ByKey("", self.key)
        self._routing = tuple(Lane(share, (), split, share, count, types) for share in range(count))

    def given(self, batch: EventBatch) -> list[Route]:
        """For each lane, what gives its events of a batch."""
        return routes(batch, self._routing)

    def rates(self) -> dict[str, float]:
        """The rates of types, of all lanes together."""
        totals: Counter[str] = Counter()
        for lane in self.lanes:
            totals.update(lane.statistics.rates)
        return dict(totals)


def joined_family(choices: Choices, running: Iterable[AnyQuery], added: Sequence[AnyQuery]) -> Family:
    """The queries that are added, which feed each other, and the running ones that these feed or are fed by.

    They are as they run, since a rewritten query may show a key that the written one hides.
    """
    queries = (*added, *running)
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        makers.setdefault(query.defines, []).append(number)
    fed_by = [{maker for type_ in query.reads for maker in makers.get(type_, ())} for query in queries]
    family = next(own for own in families_of(queries, fed_by) if 0 in own.numbers)
    applied = choices.applied(Program("", family.queries))
    return Family(family.numbers, applied.queries, family.fed_by)
