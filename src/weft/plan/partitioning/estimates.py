"""Estimated load of each lane under a split, by which a strategy is chosen before events arrive.

Work is per second of event time (`work.py`); `output` is the cost of enumerating matches, where one event can end many.
"""

from __future__ import annotations

from weft.algebra import patterns
from weft.algebra.composites import Composite, CompositeEvent, composites_in
from weft.algebra.query import Query, Strategy
from weft.plan.partitioning.by_slice import USUAL, BySlice
from weft.plan.partitioning.replicated import Replicated
from weft.plan.partitioning.splits import Split
from weft.plan.partitioning.work import PartWork
from weft.plan.properties import Family

MANY = 10.0  # matches to an event, where it can end many
COPIED = 0.1  # what it takes to give a lane an event that it only copies, against looking at it


def output_of(family: Family, work: PartWork) -> float:
    """What it takes to list the matches: much where a repetition may take any of the events."""
    many = any(
        isinstance(query, Query)
        and query.strategy is Strategy.ALL
        and query.limit is None
        and any(isinstance(node, patterns.Repeat) for node in query.pattern.walk())
        for query in family.queries
    )
    return MANY * work.total if many else 0.0


def load_of(split: Split, family: Family, work: PartWork, lanes: int) -> float:
    """Return the estimated load of the busiest lane."""
    total, output = work.total, output_of(family, work)
    reading = sum(work.sources.values())
    match split.strategy:
        case "key":
            return (total + output) / lanes
        case "slice":
            assert isinstance(split, BySlice)
            around = 1 / USUAL if split.back + split.ahead else 0.0
            copied = reading * COPIED if split.unit == "events" else 0.0
            return (total + output) * (1 + around if lanes > 1 else 1) / lanes + copied * (lanes > 1)
        case "replicate":
            assert isinstance(split, Replicated)
            if split.by_start:
                return total + output + reading * COPIED
            own = reading - sum(rate for type_, rate in work.sources.items() if type_ not in _own(family, split))
            return reading - own + (total - (reading - own)) / lanes
        case "rank":
            return total + output / lanes + reading * COPIED * (lanes > 1)
        case "match":  # every lane lists the candidates; what testing them takes is not known
            return total + output + reading * COPIED * (lanes > 1)
    return total + output


def _own(family: Family, split: Replicated) -> set[str]:
    """The types whose events a lane looks at as its own ones only."""
    queries = composites_in(family.queries)
    leaves = [node for query in queries for node in query.pattern.walk(Composite) if isinstance(node, CompositeEvent)]
    return {leaf.type for leaf in leaves if leaf.variable in split.leaves.own and leaf.type in split.shared}
