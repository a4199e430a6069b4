"""Strategy `query` (NEXT 4.4): families of queries are placed on lanes, and a lane reads the types that it needs.

A lane is a node of NEXT's, and a family goes where it adds least: the rates of types that the lane does not read yet,
the work of operators that it does not run yet, and what the lane has to do already. So families with operators in
common come together, and one operator runs in two lanes where together they would be too much for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.optimizer.cost import Costs
from weft.plan.partitioning.splits import Family, Split, Strategy
from weft.plan.partitioning.work import Work, total_of, work_of


@dataclass(frozen=True)
class ByQuery(Split):
    """Families with what they cost. Each lane has all events that its queries read, and tells all that it finds."""

    strategy: ClassVar[Strategy] = "query"
    copies: ClassVar[bool] = True
    families: tuple[tuple[int, ...], ...]
    works: tuple[Work, ...]

    def __hash__(self) -> int:
        return hash(self.families)

    def dealt(self, queries: tuple[int, ...], wanted: int) -> list[tuple[int, ...]]:
        """The queries of each lane; lanes without any are left out."""
        lanes = [[self.families[place] for place in own] for own in self.placed(wanted)]
        return [tuple(sorted(number for family in lane for number in family)) for lane in lanes if lane]

    def placed(self, lanes: int) -> list[list[int]]:
        """The places of the families of each lane: the heaviest first, each where it adds least."""
        held: list[list[int]] = [[] for _ in range(lanes)]
        order = sorted(range(len(self.works)), key=lambda place: (-self.works[place].total, place))
        for place in order:
            adding = [self._added(place, own) for own in held]
            held[adding.index(min(adding))].append(place)
        return held

    def _added(self, place: int, own: list[int]) -> float:
        """What a family costs on a lane: what it brings, and all that is there."""
        there = [self.works[other] for other in own]
        return total_of([*there, self.works[place]])


def by_query(families: list[Family], costs: Costs) -> ByQuery:
    """A placement is always possible; it gains nothing for one family."""
    works = tuple(work_of(family, costs) for family in families)
    return ByQuery("families of queries placed on lanes", tuple(family.numbers for family in families), works)
