"""Deployed queries split by one key: every lane has all of them, and the events whose key is assigned to it."""

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
    """Lanes by a key. Deployed queries are identified as in the first lane; the others have them at the same place."""

    def __init__(self, key: Key, lanes: int, choices: Choices) -> None:
        self.key = key
        self._choices = choices
        self.lanes = [Deployments(choices) for _ in range(lanes)]
        self._routing: tuple[Lane, ...] = ()

    @property
    def present(self) -> list[Deployed]:
        """The deployed queries, in the order of deployment."""
        return self.lanes[0].present

    def takes(self, family: Sequence[AnyQuery]) -> bool:
        """Whether queries, together with the running ones of their family, can be split by the key."""
        return splits_by(joined_family(self._choices, [one.query for one in self.present], family), self.key)

    def deploy(self, program: Program) -> list[Deployed]:
        """Deploy queries in every lane; an error changes nothing."""
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
        """Remove queries from every lane."""
        places = [place for place, one in enumerate(self.present) if one in gone]
        for lane in self.lanes:
            lane.remove([lane.present[place] for place in places])
        self.note()

    def note(self) -> None:
        """Update the types of events that are routed, after queries were deployed or removed."""
        queries = [one.query for one in self.present]
        defined = {query.defines for query in queries}
        seen = [seen_types([query], fed=not defined.isdisjoint(query.reads)) for query in queries]
        known = [types for types in seen if types is not None]
        types = frozenset().union(*known) if len(known) == len(seen) else None
        count, split = len(self.lanes), ByKey("", self.key)
        self._routing = tuple(Lane(share, (), split, share, count, types) for share in range(count))

    def given(self, batch: EventBatch) -> list[Route]:
        """Return the routes of a batch, one for each lane."""
        return routes(batch, self._routing)

    def rates(self) -> dict[str, float]:
        """Return the rates of types, of all lanes together."""
        totals: Counter[str] = Counter()
        for lane in self.lanes:
            totals.update(lane.statistics.rates)
        return dict(totals)


def joined_family(choices: Choices, running: Iterable[AnyQuery], added: Sequence[AnyQuery]) -> Family:
    """Return added queries, which feed each other, with the running ones that these feed or are fed by.

    Running queries are in their current form, since a rewritten query may show a key that the original one hides.
    """
    queries = (*added, *running)
    makers: dict[str, list[int]] = {}
    for number, query in enumerate(queries):
        makers.setdefault(query.defines, []).append(number)
    fed_by = [{maker for type_ in query.reads for maker in makers.get(type_, ())} for query in queries]
    family = next(own for own in families_of(queries, fed_by) if 0 in own.numbers)
    applied = choices.applied(Program("", family.queries))
    return Family(family.numbers, applied.queries, family.fed_by)
