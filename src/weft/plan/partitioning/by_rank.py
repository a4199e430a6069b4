"""Strategy `rank` (DCORE): every lane has all events and partial matches, and enumerates its share of the matches.

Lanes do not communicate: all compute how many matches end at an event, and which of them belong to which lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.algebra.query import Consume, Query, Strategy
from weft.plan.automaton.cea import build_automaton
from weft.plan.automaton.determinize import Determinizer
from weft.plan.partitioning import splits
from weft.plan.partitioning.splits import Refused, Split
from weft.plan.properties import Family


@dataclass(frozen=True)
class ByRank(Split):
    """An event goes to all lanes; the matches that end at it are assigned to lanes during enumeration."""

    strategy: ClassVar[splits.Strategy] = "rank"
    copies: ClassVar[bool] = True


def by_rank(family: Family) -> ByRank | Refused:
    """Shares of the matches of each event, where an event can end many."""
    lists = listing(family)
    if isinstance(lists, Refused):
        return lists
    query, has_conditions = lists
    if has_conditions and query.consume is not Consume.NONE:
        return Refused(f"{query.name} consumes its matches, and a lane does not know whether others keep one")
    return ByRank("by rank: each lane lists its share of the matches of each event")


def listing(family: Family) -> tuple[Query, bool] | Refused:
    """The query, if it lists all matches of an event, and whether they have conditions over several events."""
    if len(family.queries) > 1:
        return Refused("others read what is found, and must see all of it")
    query = family.queries[0]
    if not isinstance(query, Query):
        return Refused(f"{query.name} is no regular pattern: it has no match graph to share out")
    if query.strategy is not Strategy.ALL or query.limit is not None:
        word = "LIMIT" if query.limit is not None else query.strategy.name
        return Refused(f"{query.name} keeps few matches of an event ({word})")
    if any(part is not None for part in (query.skip, query.unless, query.session, query.top)):
        return Refused(f"whether a match of {query.name} counts depends on the others")
    automaton = Determinizer(query, build_automaton(query))
    if automaton.may_repeat:
        return Refused(f"{query.name} omits variables that distinguish its matches, and equal ones are emitted once")
    return query, bool(automaton.automaton.conditions)
