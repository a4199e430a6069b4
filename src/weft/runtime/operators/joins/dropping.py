"""Evict the oldest pending occurrences of a graph when memory is short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from weft.kernels.events.stored import EVENT
from weft.kernels.joins import buckets, occurrences
from weft.plan.dropping import keeps_beginnings, losable_nodes
from weft.runtime.operators.joins.operators import NOTHING
from weft.runtime.operators.joins.sweep import Floor, sweep_graph
from weft.runtime.operators.operator import named
from weft.runtime.store.size import older_half

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator


def drop_oldest(run: JoinOperator, limit: int, names: Collection[str]) -> Counter[str]:
    """Evict the older half of the pending occurrences of queries if all take more than half of `limit` bytes.

    Return how many were evicted, by the names of the queries that needed them.
    """
    graph, row_store = run.graph, run.row_store
    loses = losable_nodes(graph, names)
    own = [op for op in run.operators if loses[op.number] and keeps_beginnings(graph.nodes[op.number])]
    waiting = [op.waiting_since() for op in own]
    rows = max(row_store.row_count, 1)
    each = buckets.ENTRY + occurrences.ROW + len(row_store.slots) // rows + EVENT + row_store.width
    times = np.concatenate([NOTHING, *waiting])
    evicted = times[older_half(times, each * row_store.rows.itemsize, limit)]
    if not len(evicted):
        return Counter()
    floor = int(evicted.max()) + 1
    sweep_graph(run, Floor(floor, frozenset(op.number for op in own)))
    dropped: Counter[str] = Counter()
    for op, since in zip(own, waiting, strict=True):
        dropped[named(graph.queries[op.number])] += int((since < floor).sum())
    return dropped
