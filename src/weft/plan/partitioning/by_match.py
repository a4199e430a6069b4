"""Strategy `match` (DCERE): all lanes find the candidates, and test the conditions of those that they are dealt.

It pays where conditions over several events are dear and many candidates fail them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.algebra.query import Consume
from weft.plan.partitioning.by_rank import listing
from weft.plan.partitioning.splits import Family, Refused, Split, Strategy

BLOCK = 1000  # candidates that are dealt at once


@dataclass(frozen=True)
class ByMatch(Split):
    """An event goes to all lanes; candidates, which are matches but for the conditions, are dealt out by turns."""

    strategy: ClassVar[Strategy] = "match"
    copies: ClassVar[bool] = True


def by_match(family: Family) -> ByMatch | Refused:
    """Candidates, where there are conditions over several events to test."""
    lists = listing(family)
    if isinstance(lists, Refused):
        return lists
    query, has_conditions = lists
    if not has_conditions:
        return Refused(f"{query.name} has no condition over several events to test")
    if query.consume is not Consume.NONE:
        return Refused(f"{query.name} consumes its matches, and a lane does not know whether others keep one")
    return ByMatch(f"by match: blocks of {BLOCK} candidates by turns")
