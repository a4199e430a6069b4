"""Which strategy each family of queries has: the one that is asked for, or that with which lanes have least to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from weft.algebra.query import AnyQuery
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError, did_you_mean
from weft.optimizer.cost import Costs
from weft.plan.partitioning.by_key import by_key
from weft.plan.partitioning.by_match import by_match
from weft.plan.partitioning.by_query import ByQuery, by_query
from weft.plan.partitioning.by_rank import by_rank
from weft.plan.partitioning.by_slice import by_slice, joined
from weft.plan.partitioning.dealing import DEALINGS
from weft.plan.partitioning.estimates import load_of
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.partitioning.one import One, one
from weft.plan.partitioning.replicated import replicated
from weft.plan.partitioning.splits import PLACED, STRATEGIES, Refused, Split, is_placed
from weft.plan.partitioning.work import work_of
from weft.plan.properties import Family, seen_types
from weft.plan.properties import families as joined_families

SPLITS: dict[str, Callable[[Family], Split | Refused]] = {
    "key": by_key,
    "slice": by_slice,
    "rank": by_rank,
    "match": by_match,
    "one": one,
}
AUTO = "auto"
PLACED_WHERE = "the strategy 'placed' is for whole inputs and local runs: streams and live programs keep queries whole"
MANY_LANES = 8  # for which a strategy is chosen when nobody says how many there are: the same on every machine
CHOSEN = ("key", "slice", "replicate", "rank", "one")  # `match` is worth its master only where conditions are dear


def share_out(
    queries: Sequence[AnyQuery],
    fed_by: Sequence[Collection[int]],
    strategy: str | None,
    costs: Callable[[], Costs],
    lanes: int,
) -> tuple[LaneGroup, ...]:
    """Families by the way that they are shared out; those of one way are together, situations apart.

    Without a strategy they are split by key, or not at all; `auto` is the one with which lanes have least to do.
    """
    if is_placed(strategy):
        raise UsageError(PLACED_WHERE)
    if strategy not in (None, AUTO, *STRATEGIES, *(f"match:{dealing}" for dealing in DEALINGS)):
        raise UsageError(f"unknown strategy {strategy!r}; {did_you_mean(str(strategy), (*STRATEGIES, PLACED, AUTO))}")
    families = families_of(queries, fed_by)
    match strategy:
        case None:
            chosen = [(family, _by_default(family)) for family in families]
        case "auto":
            chosen = best_of(families, costs(), lanes)
        case "query":
            placed = by_query(families, costs())
            chosen = [(family, placed) for family in families]
        case _:
            chosen = [(family, _as_asked(family, strategy, costs)) for family in families]
    found: dict[tuple[Split, int], list[int]] = {}
    for family, split in joined(chosen):
        apart = any(isinstance(query, SituationQuery) for query in family.queries) and not isinstance(split, ByQuery)
        found.setdefault((split, family.numbers[0] if apart else -1), []).extend(family.numbers)
    return tuple(lane_group(split, sorted(numbers), queries, fed_by) for (split, _), numbers in found.items())


def best_of(families: Sequence[Family], costs: Costs, lanes: int) -> list[tuple[Family, Split]]:
    """For each family the way with which lanes have least to do; those that stay whole are placed beside each other.

    So are those that all lanes would have to copy events for, if there are enough of them to give every lane one.
    """
    best = [(family, min(ways(family, costs, lanes), key=lambda way: way.load).split) for family in families]
    copied = [family for family, split in best if split.strategy in ("replicate", "rank", "one")]
    whole = copied if len(copied) >= lanes else [family for family, split in best if isinstance(split, One)]
    if len(whole) < 2 or lanes < 2:
        return best
    placed = by_query(whole, costs)
    return [(family, placed if family in whole else split) for family, split in best]


class Way(NamedTuple):
    """A sound way to share a family out, and what the busiest lane then has to do."""

    split: Split
    load: float


def ways(family: Family, costs: Costs, lanes: int) -> list[Way]:
    """The sound ways that are chosen unasked, in the order of the strategies: of equal ones the first is taken."""
    work = work_of(family, costs)
    splits = [split_of(strategy, family, lambda: costs) for strategy in CHOSEN]
    return [Way(split, load_of(split, family, work, lanes)) for split in splits if isinstance(split, Split)]


def split_of(strategy: str, family: Family, costs: Callable[[], Costs]) -> Split | Refused:
    """Return the split of a family by a strategy, or the reason why there is none."""
    if strategy == "replicate":
        return replicated(family, lambda type_: costs().rate(type_))
    return SPLITS[strategy](family)


def families_of(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]) -> list[Family]:
    """The families of queries."""
    return [
        Family(
            tuple(numbers),
            tuple(queries[number] for number in numbers),
            tuple(tuple(sorted(fed_by[number])) for number in numbers),
        )
        for numbers in joined_families(fed_by)
    ]


def _by_default(family: Family) -> Split:
    split = by_key(family)
    return One(f"one lane: {split.reason}") if isinstance(split, Refused) else split


def _as_asked(family: Family, strategy: str, costs: Callable[[], Costs]) -> Split:
    name, _, dealing = strategy.partition(":")
    split = by_match(family, dealing) if dealing else split_of(name, family, costs)
    if isinstance(split, Refused):
        raise UsageError(f"the strategy {strategy!r} is not possible for {family.names}: {split.reason}")
    return split


def lane_group(
    split: Split, numbers: Sequence[int], queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]]
) -> LaneGroup:
    """The lanes of some queries, with the types of events that matter to them."""
    seen = [seen_types([queries[number]], fed=bool(fed_by[number])) for number in numbers]
    known = [types for types in seen if types is not None]
    types = frozenset().union(*known) if len(known) == len(seen) else None
    return LaneGroup(split, tuple(numbers), types)
