"""Estimate of the speed-up of lanes in threads of this process, from measured rates.

All events are read by one thread, and routing them to lanes has a cost; so lanes pay off where an event is compared
with many events, or read by many queries. Costs are those of the model, in units of one comparison, which takes about
25 ns; the costs of reading, routing and searching were measured for queries of all languages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf

from weft.algebra.patterns import Correlate
from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.optimizer.cost import Costs
from weft.optimizer.cost.lookbacks import rule_work
from weft.plan.keyed import keyed_sequence
from weft.plan.partitioning.by_query import ByQuery
from weft.plan.partitioning.choice import best_of, families_of
from weft.plan.partitioning.estimates import load_of
from weft.plan.partitioning.splits import Split
from weft.plan.partitioning.work import total_of, work_of
from weft.plan.properties import Family

READING = 0.4  # comparisons that it takes to read an event
ROUTING = {"key": 1.4, "slice": 1.2, "replicate": 2.0, "query": 1.2, "one": 0.0}  # and to give it to a lane
SEARCHED = 6.0  # and to search for the sets of a situation that it is in
MOST = 1000.0  # events of a window that one is compared with, at most


def may_gain(queries: Sequence[AnyQuery], lanes: int) -> bool:
    """Return whether measuring pays off: not where queries examine each event once or twice, for any events."""
    most = 1.0 + sum(map(_most_looks, queries))
    return most * (1 - 1 / lanes) > 2 * min(ROUTING[name] for name in ("key", "slice"))


def _most_looks(query: AnyQuery) -> float:
    """Return an upper bound of the cost of an event for a query."""
    match query:
        case Query(partition=partition):
            return inf if not partition and _is_correlated(query) else 1.0
        case SituationQuery(situation=situation) if keyed_sequence(situation) is not None:
            return 1.0
        case Rule(lookbacks=lookbacks) if not any(step.count is None or step.events.related for step in lookbacks):
            return 1.0 + sum(step.count or 0 for step in lookbacks)
    return inf


def gain_of(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]], costs: Costs, lanes: int) -> float:
    """Return the speed-up of lanes in threads; below one they are slower, and 0 means that they are not considered.

    This is the case where the total work of all lanes exceeds the work of one by more than the gain. Splitting by rank
    is not considered either: it is for huge numbers of matches, of which one thread emits the first immediately.
    """
    families = families_of(queries, fed_by)
    best = best_of(families, costs, lanes)
    if any(split.strategy == "rank" for _, split in best):
        return 0.0
    types = {type_ for query in queries for type_ in query.reads} - {query.defines for query in queries}
    events = sum(costs.statistics.rate(type_).value for type_ in types | costs.statistics.rates.keys())
    if not events:  # any type matters, and nobody knows how often it comes
        return 0.0
    alone = total_of(work_of(family, costs) for family in families) + sum(_compared(query, costs) for query in queries)
    # Keys are looked at once for all lanes, everything else by each lane for itself.
    strategies = {split.strategy for _, split in best}
    once = events * max((ROUTING[name] for name in strategies & {"key"}), default=0.0)
    each = events * max((ROUTING[name] for name in strategies - {"key"}), default=0.0)
    lane = each + _busiest(best, costs, lanes)
    gained, spent = alone - once - lane, once + lanes * lane - alone
    return (READING * events + alone) / (READING * events + once + lane) if gained >= spent else 0.0


def _busiest(best: Sequence[tuple[Family, Split]], costs: Costs, lanes: int) -> float:
    """Return the load of the busiest lane, besides reading."""
    busiest, placed = 0.0, None
    for family, split in best:
        compared = sum(_compared(query, costs) for query in family.queries)
        if isinstance(split, ByQuery):
            placed, busiest = split, busiest + compared / lanes
        else:
            busiest += load_of(split, family, work_of(family, costs), lanes) + compared / split.lanes(lanes)
    if placed is not None:
        busiest += max(total_of(part.work for part in own) for own in placed.placed(lanes))
    return busiest


def _compared(query: AnyQuery, costs: Costs) -> float:
    """What conditions over several events take: those of a regular query compare each with those in its window."""
    rate = sum(costs.statistics.rate(type_).value for type_ in query.reads)
    if isinstance(query, Rule):
        return rule_work(query, costs.statistics)
    if isinstance(query, SituationQuery):
        return SEARCHED * rate if keyed_sequence(query.situation) is None else 0.0
    if not isinstance(query, Query) or query.partition or query.window is None or not _is_correlated(query):
        return 0.0
    seconds = costs.statistics.seconds(float(query.window.amount))
    inside = float(query.window.amount) if query.window.unit == "events" else rate * seconds
    return rate * min(inside, MOST) / max(len(query.reads), 1)


def _is_correlated(query: Query) -> bool:
    return any(isinstance(node, Correlate) for node in query.pattern.walk())
