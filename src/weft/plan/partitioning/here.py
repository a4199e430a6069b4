"""Whether lanes in threads of this process would gain, before it is tried: measured rates in, how much faster out.

All events are read by one thread, and giving them to lanes costs something too; so lanes pay where an event has to be
compared with many others, or many queries look at it. Costs are those of the model, in units of one comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.algebra.patterns import Correlate
from weft.algebra.query import AnyQuery, Query
from weft.optimizer.cost import Costs
from weft.plan.partitioning.by_query import ByQuery
from weft.plan.partitioning.choice import best_of, families_of
from weft.plan.partitioning.estimates import load_of
from weft.plan.partitioning.splits import Family, Split
from weft.plan.partitioning.work import total_of, work_of

READING = 2.0  # comparisons that it takes to read an event
ROUTING = {"key": 2.5, "slice": 0.3, "replicate": 1.0, "query": 0.3, "one": 0.0}  # and to give it to a lane
MOST = 1000.0  # events of a window that one is compared with, at most


def gain_of(queries: Sequence[AnyQuery], fed_by: Sequence[Collection[int]], costs: Costs, lanes: int) -> float:
    """How many times as fast so many lanes in threads are; below one they are slower. 0: not to be thought of.

    That is where all lanes together would work longer than one by more than is gained. Neither are shares of ranks for
    this: they are for matches without number, of which one thread gives the first at once.
    """
    families = families_of(queries, fed_by)
    best = best_of(families, costs, lanes)
    if any(split.strategy == "rank" for _, split in best):
        return 0.0
    types = {type_ for query in queries for type_ in query.reads} - {query.defines for query in queries}
    events = sum(costs.statistics.rate(type_).value for type_ in types)
    if not events:  # any type matters, and nobody knows how often it comes
        return 0.0
    alone = total_of(work_of(family, costs) for family in families) + sum(_compared(query, costs) for query in queries)
    routing = max(ROUTING[split.strategy] for _, split in best) * events
    busiest = _busiest(best, costs, lanes)
    gained, spent = alone - routing - busiest, routing + lanes * busiest - alone
    return (READING * events + alone) / (READING * events + routing + busiest) if gained >= spent else 0.0


def _busiest(best: Sequence[tuple[Family, Split]], costs: Costs, lanes: int) -> float:
    """What the busiest lane does, besides reading."""
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
    """What conditions over several events of a regular query take: each is compared with those in its window."""
    if not isinstance(query, Query) or query.partition or query.window is None:
        return 0.0
    if not any(isinstance(node, Correlate) for node in query.pattern.walk()):
        return 0.0
    rate = sum(costs.statistics.rate(type_).value for type_ in query.reads)
    seconds = costs.statistics.seconds(float(query.window.amount))
    inside = float(query.window.amount) if query.window.unit == "events" else rate * seconds
    return rate * min(inside, MOST) / max(len(query.reads), 1)
