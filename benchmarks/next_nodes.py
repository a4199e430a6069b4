"""NEXT's Figure 11: how many queries of five operators a number of nodes supports, under five policies.

A simulation: nodes have a capacity, the load of a node is that of `plan/placement.py`, and random queries are placed
until one node has more to do than it can. No time is measured there; `executed` measures what nodes take that some such
queries are placed on.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

from benchmarks.measure import Row, row
from benchmarks.next import KNOWN, poisson, program_of, random_pattern
from benchmarks.stages import staged

from weft.algebra.composites import Composite
from weft.optimizer.chooser import choose
from weft.optimizer.cost import Costs
from weft.optimizer.pipeline import optimize
from weft.plan.placement import Placement, Policy
from weft.runtime.reading.order import read_events

CAPACITY = 4_000.0
SINK = 15_000.0  # events in a second that one machine passes on to sinks (NEXT 6)
NODES = (1, 5, 10, 40)
EXECUTED, NODES_EXECUTED = 8, (2, 4)  # queries, and nodes
POLICIES: dict[str, tuple[Policy, bool]] = {
    "round robin": ("round robin", False),
    "greedy": ("greedy", False),
    "reuse": ("reuse", False),
    "rewrite+greedy": ("greedy", True),
    "rewrite+reuse": ("reuse", True),
}  # in the order that is expected of them


def figure_11(scale: float) -> list[Row]:
    """Supported queries for each number of nodes; ratios are against round robin at as many nodes."""
    rows: list[Row] = []
    for workload in ("next", "union"):
        found = {name: [supported(workload, nodes, name, scale) for nodes in NODES] for name in POLICIES}
        for name, counts in found.items():
            for nodes, count, least in zip(NODES, counts, found["round robin"], strict=True):
                case = f"{workload}, {nodes} nodes: {name}"
                rows.append(row(case, count, "queries", "round robin", count / max(least, 1)))
        last = [counts[-1] for counts in found.values()]
        rows.append(row(f"{workload}: order of the policies", float(_is_rising(last)), "1 is as expected", goal="1"))
        growth = found["rewrite+reuse"][-1] / max(found["rewrite+reuse"][1], 1) / (NODES[-1] / NODES[1])
        rows.append(row(f"{workload}: growth of rewrite+reuse, 5 to 40 nodes", growth, "of linear", goal=">= 0.8"))
    return rows


def executed(scale: float) -> list[Row]:
    """Random queries as the strategy `placed` runs them: the busiest node, and all nodes, against one lane."""
    (batch, *_) = read_events(poisson(max(2_000, int(100_000 * scale))), columns=())
    rows: list[Row] = []
    for workload in ("next", "union"):
        dice = random.Random(EXECUTED)
        program = optimize(program_of([random_pattern(workload, 5, dice) for _ in range(EXECUTED)]), KNOWN)
        rows += staged(f"{workload}, {EXECUTED} queries of five operators", program, batch, NODES_EXECUTED, KNOWN)
    return rows


def _is_rising(counts: list[float]) -> bool:
    return all(one <= other * 1.05 for one, other in pairwise(counts))


def supported(workload: str, nodes: int, name: str, scale: float, sinks: int | None = None) -> float:
    """The mean of some runs: how many queries are placed before a node, or one of so many sinks, is overloaded."""
    policy, rewrites = POLICIES[name]
    room = float("inf") if sinks is None else sinks * SINK
    runs = max(1, int(3 * scale))
    return (
        sum(_run(workload, Placement(nodes, policy, Costs(KNOWN)), rewrites, seed, room) for seed in range(runs)) / runs
    )


def _run(workload: str, placement: Placement, rewrites: bool, seed: int, room: float) -> int:
    drawn, sent = _drawn(workload, rewrites, seed), 0.0
    for count in range(1 << 30):
        pattern = drawn.pattern(count)
        placement.deploy(pattern)
        sent += drawn.costs.profile(pattern).rate
        if max(placement.loads) > CAPACITY or sent > room:
            return count
    raise AssertionError("no number of queries is too much")


class Drawn:
    """Random queries without an operator that is too much for a quarter of a node: always the same ones."""

    def __init__(self, workload: str, rewrites: bool, seed: int) -> None:
        self._workload, self._rewrites, self._dice = workload, rewrites, random.Random(seed)
        self.costs = Costs(KNOWN)
        self._patterns: list[Composite] = []

    def pattern(self, number: int) -> Composite:
        """One of them; those before it are drawn first."""
        while len(self._patterns) <= number:
            written = random_pattern(self._workload, 5, self._dice)
            if max(profile.work for _, profile in self.costs.operators([written]).values()) <= CAPACITY / 4:
                self._patterns.append(choose(written, self.costs).pattern if self._rewrites else written)
        return self._patterns[number]


_drawn = cache(Drawn)
