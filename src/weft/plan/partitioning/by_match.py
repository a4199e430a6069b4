"""Strategy `match` (DCERE): all lanes find the candidates, and each tests the conditions of those assigned to it.

It pays off where conditions over several events are expensive and reject many candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.algebra.query import Consume
from weft.plan.partitioning.by_rank import listing
from weft.plan.partitioning.dealing import DEALINGS, Dealing, is_flat
from weft.plan.partitioning.splits import Refused, Split, Strategy
from weft.plan.properties import Family

BLOCK = 1000  # candidates that are dealt at once
_WAYS: dict[Dealing, str] = {
    "round robin": f"blocks of {BLOCK} candidates by turns",
    "two choices": f"blocks of {BLOCK} candidates, each to the less loaded of two lanes",
    "exact search": f"blocks of {BLOCK} candidates, each to the least loaded lane",
    "maximal": "candidates by how many events of each variable they have",
}


@dataclass(frozen=True)
class ByMatch(Split):
    """An event goes to all lanes; candidates, which are matches without joint conditions, are assigned in blocks.

    For maximal matches (DCORE 4.2) they are assigned by configuration instead: the numbers of events in runs of one
    variable. All candidates of one configuration belong to one lane.
    """

    strategy: ClassVar[Strategy] = "match"
    copies: ClassVar[bool] = True
    dealing: Dealing = "round robin"


def by_match(family: Family, dealing: str = "rr") -> ByMatch | Refused:
    """Candidates, where there are conditions over several events to test."""
    lists = listing(family)
    if isinstance(lists, Refused):
        return lists
    query, has_conditions = lists
    if not has_conditions:
        return Refused(f"{query.name} has no condition over several events to test")
    if query.consume is not Consume.NONE:
        return Refused(f"{query.name} consumes its matches, and a lane does not know whether others keep one")
    way = DEALINGS[dealing]
    if way == "maximal" and not is_flat(query):
        return Refused(
            f"{query.name} is no sequence of events and of repeated events with different neighbours, so that not "
            "every choice of a maximal match's events is a match"
        )
    return ByMatch(f"by match: {_WAYS[way]}", way)
