"""Giving up the oldest occurrences that wait in a graph, where there is no room for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from weft.kernels.joins import buckets, occurrences
from weft.plan.dropping import keeps_beginnings, losable_nodes
from weft.runtime.operators.joins.sweep import Floor, sweep_graph
from weft.runtime.operators.operator import named

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator


def drop_oldest(run: JoinOperator, limit: int, names: Collection[str]) -> Counter[str]:
    """Drop the older half of what waits for some queries, if it is made of more than half so many bytes."""
    graph, arena = run.graph, run.arena
    loses = losable_nodes(graph, names)
    own = [op for op in run.operators if loses[op.number] and keeps_beginnings(graph.nodes[op.number])]
    waiting = [op.waiting_since() for op in own]
    rows = max(arena.row_count, 1)
    each = buckets.ENTRY + occurrences.ROW + len(arena.slots) // rows + occurrences.EVENT + arena.width
    if 2 * sum(map(len, waiting)) * each * arena.rows.itemsize <= limit:
        return Counter()
    floor = int(np.median(np.concatenate(waiting))) + 1
    sweep_graph(run, Floor(floor, frozenset(op.number for op in own)))
    dropped: Counter[str] = Counter()
    for op, since in zip(own, waiting, strict=True):
        dropped[named(graph.queries[op.number])] += int((since < floor).sum())
    return dropped
