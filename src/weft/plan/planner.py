"""The planner: from the algebra to physical operators, for all engines, Spark and live programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from weft.algebra.analysis.feeding import feeders
from weft.algebra.query import AnyQuery, Program
from weft.optimizer.cost import Costs, resolve_statistics
from weft.plan.layers import Layering
from weft.plan.operators import Layer, NodeLoad, Plan
from weft.plan.partitioning.choice import share_out
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.partitioning.splits import capacities_of, is_placed
from weft.plan.properties import columns, seen_types
from weft.plan.staging.fragments import staged
from weft.statistics import Statistics
from weft.tree import deep

NOTHING: Mapping[int, AnyQuery] = {}


@deep
def plan(
    program: Program,
    running: Mapping[int, AnyQuery] = NOTHING,
    first: int = 0,
    *,
    strategy: str | None = None,
    lanes: int = 1,
    statistics: Statistics | None = None,
) -> Plan:
    """Choose operators for every query of a program, and arrange them in layers.

    Queries may read the output of `running` ones, given by number. The program's own are numbered from `first` on.
    `strategy` controls how the work is split: `auto` chooses the best for the number of `lanes` by the statistics;
    `placed` places operators on that number of nodes (`placed:2,1,1`: of these capacities); None splits by key or not
    at all.
    """
    queries = program.queries
    fed_by = feeders(queries)
    needed = [seen_types([query], fed=bool(makers)) for query, makers in zip(queries, fed_by, strict=True)]
    costs = cache(lambda: Costs(resolve_statistics(program, statistics)))
    if is_placed(strategy):
        capacities = capacities_of(strategy) or (1.0,) * lanes
        chosen = staged(queries, fed_by, costs(), capacities)
        return _made(program, chosen.layers, chosen.lanes, needed, tuple(map(NodeLoad, chosen.loads, capacities)))
    groups = share_out(queries, fed_by, strategy, costs, lanes)
    split_of = {number: group.split for group in groups for number in group.queries}
    run = [split_of[number].rewritten(query) for number, query in enumerate(queries)]
    return _made(
        program, Layering(run, running, first).layers(), [group.numbered_from(first) for group in groups], needed
    )


def _made(
    program: Program,
    layers: Iterable[Layer],
    groups: Iterable[LaneGroup],
    needed: Sequence[frozenset[str] | None],
    placed: tuple[NodeLoad, ...] = (),
) -> Plan:
    """The plan of a program, given the types that each of its queries needs."""
    known = [types for types in needed if types is not None]
    return Plan(
        program,
        tuple(layers),
        tuple(groups),
        tuple(sorted({name for query in program.queries for name in columns(query)})),
        frozenset().union(*known) if len(known) == len(needed) else None,
        placed,
    )
