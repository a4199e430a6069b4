"""Placement and stages of operators, given queries and a number of nodes.

Operators of queries that neither feed nor read other queries are placed one by one, equal ones once. A pattern with
more work than a node's fair part is divided into shares, if there is a split that reduces it. Everything else is placed
query by query, or family by family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery
from weft.algebra.query import AnyQuery
from weft.optimizer.cost import Costs
from weft.plan.partitioning.by_key import by_key
from weft.plan.partitioning.by_slice import by_slice
from weft.plan.partitioning.choice import best_of
from weft.plan.partitioning.estimates import load_of
from weft.plan.partitioning.one import One, one
from weft.plan.partitioning.replicated import Replicated, replicated
from weft.plan.partitioning.splits import Refused, Split
from weft.plan.partitioning.work import total_of, work_of
from weft.plan.placement import Divided, Placement
from weft.plan.properties import Family

MANY = 4  # shares of what is divided for each node, at most
FEWER = 2  # nodes that may be left without a share of what is divided
WORTH = 0.8  # of all work of a pattern: a share with more is not worth the copies


class PlacedFamily(NamedTuple):
    """Queries that run whole: how they are split, and the nodes of the shares."""

    family: Family
    split: Split
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class PlacedQueries:
    """A placement: `roots` are the numbers of the outermost operators of queries, by the queries' numbers.

    `stages`: that of each operator. Its operands are found in the same node at the same stage, or at earlier ones.
    """

    placement: Placement
    roots: dict[int, int]
    whole: tuple[PlacedFamily, ...]
    stages: tuple[int, ...]


def place_queries(families: Sequence[Family], costs: Costs, capacities: Sequence[float]) -> PlacedQueries:
    """Place families of queries on nodes of some capacities.

    A divided pattern has a share for each node, or leaves one or two nodes free; of unequal nodes a large one may have
    several shares. The variant with the least load of the busiest node is chosen.
    """
    nodes = len(capacities)
    most = min(MANY * nodes, round(sum(capacities) / min(capacities)))
    numbers = [*range(nodes, max(nodes - FEWER, 1) - 1, -1), *range(nodes + 1, most + 1)]
    tries = [_placed(families, costs, capacities, shares) for shares in numbers]
    return min(tries, key=lambda found: found.placement.busiest)


def _placed(families: Sequence[Family], costs: Costs, capacities: Sequence[float], shares: int) -> PlacedQueries:
    """Place families of queries on nodes, with `shares` shares of divided patterns."""
    works = [work_of(family, costs) for family in families]
    fair = total_of(works) * max(capacities) / sum(capacities)
    placement = Placement(
        len(capacities), "reuse", costs, divide=_dividing(costs, shares, fair), capacities=tuple(capacities)
    )
    apart = [(family, _pattern_of(family)) for family in families]
    roots: dict[int, int] = {}
    for family, pattern in sorted(apart, key=lambda own: -0.0 if own[1] is None else -costs.total(own[1])):
        if pattern is not None:
            number = placement.deploy(pattern)
            assert number is not None
            roots[family.numbers[0]] = number
    whole = []
    for (family, pattern), work in zip(apart, works, strict=True):
        if pattern is None:
            divided = _divided(family, costs, shares, fair)
            loads = [divided.load] * divided.shares if divided else [work.total]
            split = divided.split if divided else one(family)
            whole.append(PlacedFamily(family, split, tuple(map(placement.place_elsewhere, loads))))
    return PlacedQueries(placement, roots, tuple(whole), tuple(_stages(placement)))


def stays_whole(families: Sequence[Family], costs: Costs, lanes: int) -> bool:
    """Whether a query with several operators would run in one lane, because it cannot be split as a whole."""
    for family, split in best_of(families, costs, lanes):
        pattern = _pattern_of(family)
        if isinstance(split, One) and pattern is not None and _has_operands(pattern):
            return True
    return False


def _has_operands(pattern: Composite) -> bool:
    return any(isinstance(child, Composite) and not isinstance(child, CompositeEvent) for child in pattern.children())


def _pattern_of(family: Family) -> Composite | None:
    """Return the pattern whose operators are placed one by one, or None for families that run as a whole."""
    match family.queries:
        case (CompositeQuery(pattern=pattern),) if not isinstance(pattern, CompositeEvent):
            return pattern
    return None


def _dividing(costs: Costs, shares: int, fair: float) -> Callable[[Composite], Divided | None]:
    def divide(pattern: Composite) -> Divided | None:
        return _divided(Family((0,), (CompositeQuery("", pattern),), ((),)), costs, shares, fair)

    return divide


def _divided(family: Family, costs: Costs, shares: int, fair: float) -> Divided | None:
    """Shares of queries that are too much for one node, if there is a split with which each has less to do."""
    work = work_of(family, costs)
    if shares < 2 or work.total < fair:
        return None
    ways = [split for split in _splits(family, costs) if isinstance(split, Split)]
    if not ways:
        return None
    loads = [load_of(split, family, work, shares) for split in ways]
    if min(loads) > WORTH * load_of(one(family), family, work, 1):
        return None
    return Divided(ways[loads.index(min(loads))], min(loads), shares)


def _splits(family: Family, costs: Costs) -> list[Split | Refused]:
    """Return the splits by which each share finds separate occurrences."""
    found = [by_key(family), by_slice(family), replicated(family, costs.rate)]
    return [split for split in found if not (isinstance(split, Replicated) and split.by_start)]


def _stages(placement: Placement) -> list[int]:
    """The stage of each operator: after those of operands that other nodes, or several lanes, find."""
    found: list[int] = []
    for number, inputs in enumerate(placement.inputs):
        node = placement.node_of[number]
        after = (
            found[one] + (one in placement.divided or placement.node_of[one] != node or number in placement.divided)
            for one in inputs
        )
        found.append(max(after, default=0))
    return found


def named_apart(query: AnyQuery, number: int, pattern: Composite) -> CompositeQuery:
    """A part of a query as a query, which shows nothing."""
    assert isinstance(query, CompositeQuery)
    return replace(query, name=f"{query.name}/{number}", pattern=pattern, fields=(), order=())
