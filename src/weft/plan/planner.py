"""The planner: from the algebra to physical operators, for all engines, Spark and live programs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from weft.algebra.analysis.feeding import feeders
from weft.algebra.query import AnyQuery, Program
from weft.optimizer.cost import Costs, resolve_statistics
from weft.plan.brackets import choose_join_order, shared_signatures
from weft.plan.layers import Layering
from weft.plan.operators import Plan
from weft.plan.partitioning.choice import share_out
from weft.plan.properties import columns, seen_types
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
    `strategy` says how the work is split: `auto` chooses the best for the number of `lanes` by the statistics; None
    splits by key or not at all.
    """
    queries = program.queries
    fed_by = feeders(queries)
    needed = [seen_types([query], fed=bool(makers)) for query, makers in zip(queries, fed_by, strict=True)]
    known = [types for types in needed if types is not None]
    costs = cache(lambda: Costs(resolve_statistics(program, statistics)))
    groups = share_out(queries, fed_by, strategy, costs, lanes)
    split_of = {number: group.split for group in groups for number in group.queries}
    rewritten = [split_of[number].rewritten(query) for number, query in enumerate(queries)]
    shared = shared_signatures(rewritten, costs)
    run = [choose_join_order(query, costs, shared) for query in rewritten]
    return Plan(
        program,
        Layering(run, running, first).layers(),
        tuple(group.numbered_from(first) for group in groups),
        tuple(sorted({name for query in queries for name in columns(query)})),
        frozenset().union(*known) if len(known) == len(needed) else None,
    )
