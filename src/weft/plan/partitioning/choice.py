"""Which strategy each family of queries has: the one that is asked for, or the first that is sound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from weft.algebra.query import AnyQuery
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError, did_you_mean
from weft.optimizer.cost import Costs
from weft.plan.operators import Lanes
from weft.plan.partitioning.by_key import by_key
from weft.plan.partitioning.by_match import by_match
from weft.plan.partitioning.by_query import by_query
from weft.plan.partitioning.by_rank import by_rank
from weft.plan.partitioning.by_slice import by_slice
from weft.plan.partitioning.one import One, one
from weft.plan.partitioning.replicated import replicated
from weft.plan.partitioning.splits import STRATEGIES, Family, Refused, Split
from weft.plan.properties import families, seen_types

SPLITS: dict[str, Callable[[Family], Split | Refused]] = {
    "key": by_key,
    "slice": by_slice,
    "replicate": replicated,
    "rank": by_rank,
    "match": by_match,
    "one": one,
}


def share_out(
    queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]], strategy: str | None, costs: Callable[[], Costs]
) -> tuple[Lanes, ...]:
    """Families by the way that they are shared out; those of one way are together, situations apart."""
    if strategy is not None and strategy not in STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}; {did_you_mean(strategy, STRATEGIES)}")
    if strategy == "query":
        placed = by_query(families_of(queries, fed_by), costs())
        return (_lanes(placed, range(len(queries)), queries, fed_by),) if queries else ()
    found: dict[tuple[Split, int], list[int]] = {}
    for family in families_of(queries, fed_by):
        split = _by_default(family) if strategy is None else _as_asked(family, strategy)
        apart = family.numbers[0] if any(isinstance(query, SituationQuery) for query in family.queries) else -1
        found.setdefault((split, apart), []).extend(family.numbers)
    return tuple(_lanes(split, sorted(numbers), queries, fed_by) for (split, _), numbers in found.items())


def families_of(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]) -> list[Family]:
    """The families of queries."""
    return [
        Family(
            tuple(numbers),
            tuple(queries[number] for number in numbers),
            tuple(tuple(sorted(fed_by[number])) for number in numbers),
        )
        for numbers in families(fed_by)
    ]


def _by_default(family: Family) -> Split:
    split = by_key(family)
    return One(f"one lane: {split.reason}") if isinstance(split, Refused) else split


def _as_asked(family: Family, strategy: str) -> Split:
    split = SPLITS[strategy](family)
    if isinstance(split, Refused):
        raise UsageError(f"the strategy {strategy!r} is not possible for {family.names}: {split.reason}")
    return split


def _lanes(
    split: Split, numbers: Sequence[int], queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]
) -> Lanes:
    seen = [seen_types([queries[number]], fed=bool(fed_by[number])) for number in numbers]
    known = [types for types in seen if types is not None]
    types = frozenset().union(*known) if len(known) == len(seen) else None
    return Lanes(split, tuple(numbers), types)
