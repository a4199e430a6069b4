"""Strategy `query` (NEXT 4.4): families of queries are placed on lanes, and a lane reads the types that it needs.

A lane corresponds to a node of NEXT, and a family goes where it adds the least load: the rates of types that the lane
does not read yet, the work of operators that it does not run yet, and the load of the lane. So families with common
operators are placed together, and one operator runs in two lanes where the work would be too much for one; rules that
differ only in constants only share their search (T-Rex 4 splits the table of rules by rows). A family that is too much
for a lane is cut where its queries feed each other: the feeding queries then run in several lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar, NamedTuple

from weft.optimizer.cost import Costs
from weft.plan.partitioning.splits import Split, Strategy
from weft.plan.partitioning.work import PartWork, joint, total_of, work_of
from weft.plan.properties import Family
from weft.plan.properties import families as joined_families

TOO_HEAVY = 1.5  # times its fair share: then a family is cut
GROUPS = (1.0, 0.5, 0.25, 0.125)  # of a fair share: how large groups of related parts may be
MOST_CUT = 200  # queries of a family of which it is found out where they can be cut


class QueryPart(NamedTuple):
    """Queries that can run independently of the rest of the program, by number, and their cost."""

    queries: tuple[int, ...]
    work: PartWork


@dataclass(frozen=True)
class ByQuery(Split):
    """Families of queries, each as a whole and as the parts into which it can be divided.

    Each lane has all events that its queries read, and emits all their matches, except those of queries that it runs
    only as input of others and whose matches an earlier lane emits.
    """

    strategy: ClassVar[Strategy] = "query"
    copies: ClassVar[bool] = True
    families: tuple[QueryPart, ...]
    cuts: tuple[tuple[QueryPart, ...], ...]

    def __hash__(self) -> int:
        return hash(tuple(family.queries for family in self.families))

    def numbered_from(self, first: int) -> ByQuery:
        """The same for queries with numbers that are larger by so much."""

        def moved(parts: Sequence[QueryPart]) -> tuple[QueryPart, ...]:
            return tuple(part._replace(queries=tuple(first + number for number in part.queries)) for part in parts)

        return replace(self, families=moved(self.families), cuts=tuple(map(moved, self.cuts)))

    def dealt(self, queries: tuple[int, ...], wanted: int) -> list[tuple[int, ...]]:
        """The queries of each lane; lanes without any are left out."""
        lanes = [{number for part in own for number in part.queries} for own in self.placed(wanted)]
        return [tuple(sorted(lane)) for lane in lanes if lane]

    def muted(self, dealt: Sequence[tuple[int, ...]]) -> list[frozenset[int]]:
        """Return the queries of each lane whose matches an earlier lane emits."""
        return [frozenset(own) & frozenset().union(*dealt[:place]) for place, own in enumerate(dealt)]

    def placed(self, lanes: int) -> list[list[QueryPart]]:
        """Return the parts of each lane, by the assignment that minimises the maximum load.

        Either each part is assigned separately to the lane where it adds least, which may run one operator in many
        lanes, or parts with common operators are assigned together, in groups of several sizes.
        """
        parts = self.parts(lanes)
        fair = total_of(part.work for part in parts) / lanes
        related = _related(parts)
        tries: list[list[list[QueryPart]]] = [[[part] for part in parts]]
        if len(related) < len(parts) and lanes > 1:
            tries += [[cut for own in related for cut in _cut(own, fair * size)] for size in GROUPS]
        ways = [_placed(groups, lanes) for groups in tries]
        return min(ways, key=lambda held: max(total_of(part.work for part in own) for own in held))

    def parts(self, lanes: int) -> list[QueryPart]:
        """Return the units of assignment: families, divided into parts where one is too much for one lane."""
        fair = total_of(family.work for family in self.families) / lanes
        return [
            part
            for family, cut in zip(self.families, self.cuts, strict=True)
            for part in (cut if family.work.total > TOO_HEAVY * fair else (family,))
        ]


def _placed(groups: Sequence[list[QueryPart]], lanes: int) -> list[list[QueryPart]]:
    """The parts of each lane: the heaviest group first, each where it adds least."""
    held: list[list[QueryPart]] = [[] for _ in range(lanes)]
    there = [PartWork() for _ in range(lanes)]
    totals = [0.0] * lanes
    weighed = [(joint(part.work for part in group), group) for group in groups]
    for work, group in sorted(weighed, key=lambda own: (-own[0].total, own[1][0].queries)):
        sums = [total + work.beyond(own) for total, own in zip(totals, there, strict=True)]
        lane = sums.index(min(sums))
        held[lane] += group
        there[lane].add(work)
        totals[lane] = sums[lane]
    return held


def _related(parts: Sequence[QueryPart]) -> list[list[QueryPart]]:
    """Group the parts that have operators in common, directly or transitively."""
    numbered: dict[str, int] = {}
    sharing = [{numbered.setdefault(name, place) for name in part.work.operators} for place, part in enumerate(parts)]
    return [[parts[place] for place in places] for places in joined_families(sharing)]


def _cut(parts: list[QueryPart], most: float) -> list[list[QueryPart]]:
    """Cut related parts into the least number of groups of about equal size that do not exceed a load."""
    groups = min(len(parts), ceil(total_of(part.work for part in parts) / most))
    return [parts[len(parts) * at // groups : len(parts) * (at + 1) // groups] for at in range(groups)]


def by_query(families: list[Family], costs: Costs) -> ByQuery:
    """A placement is always possible; it gains nothing for one family that cannot be cut."""
    whole = tuple(QueryPart(family.numbers, work_of(family, costs)) for family in families)
    cuts = tuple(tuple(_parts(family, costs)) for family in families)
    return ByQuery("families of queries placed on lanes", whole, cuts)


def _parts(family: Family, costs: Costs) -> list[QueryPart]:
    """Return the queries that feed no other, each with all queries that feed it, directly or not."""
    if len(family.queries) == 1 or len(family.queries) > MOST_CUT:
        return [QueryPart(family.numbers, work_of(family, costs))]
    fed_by = dict(zip(family.numbers, family.fed_by, strict=True))
    needed = {frozenset(_needed(number, fed_by)) for number in family.numbers}
    largest = [own for own in needed if not any(own < other for other in needed)]
    return [_part(family, numbers, costs) for numbers in sorted(map(sorted, largest))]


def _needed(number: int, fed_by: dict[int, tuple[int, ...]]) -> set[int]:
    """Return a query with all queries that feed it."""
    found, waiting = {number}, [number]
    while waiting:
        makers = set(fed_by[waiting.pop()]) - found
        found |= makers
        waiting += makers
    return found


def _part(family: Family, numbers: list[int], costs: Costs) -> QueryPart:
    places = [place for place, number in enumerate(family.numbers) if number in numbers]
    queries, fed_by = (tuple(family.queries[at] for at in places), tuple(family.fed_by[at] for at in places))
    return QueryPart(tuple(numbers), work_of(Family(tuple(numbers), queries, fed_by), costs))
