"""NEXT's Figure 11: how many queries of five operators a number of nodes supports, under five policies.

A simulation: nodes have a capacity, the load of a node is that of `plan/placement.py`, and random queries are placed
until one node has more to do than it can. No time is measured.
"""

from __future__ import annotations

import random
from itertools import pairwise

from benchmarks.measure import Row, row
from benchmarks.next import KNOWN, random_pattern

from weft.algebra.composites import Composite
from weft.optimizer.chooser import choose
from weft.optimizer.cost import Costs
from weft.plan.placement import Placement, Policy

CAPACITY = 4_000.0
NODES = (1, 5, 10, 40)
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
        found = {name: [_supported(workload, nodes, name, scale) for nodes in NODES] for name in POLICIES}
        for name, counts in found.items():
            for nodes, count, least in zip(NODES, counts, found["round robin"], strict=True):
                case = f"{workload}, {nodes} nodes: {name}"
                rows.append(row(case, count, "queries", "round robin", count / max(least, 1)))
        last = [counts[-1] for counts in found.values()]
        rows.append(row(f"{workload}: order of the policies", float(_is_rising(last)), "1 is as expected", goal="1"))
        growth = found["rewrite+reuse"][-1] / max(found["rewrite+reuse"][1], 1) / (NODES[-1] / NODES[1])
        rows.append(row(f"{workload}: growth of rewrite+reuse, 5 to 40 nodes", growth, "of linear", goal=">= 0.8"))
    return rows


def _is_rising(counts: list[float]) -> bool:
    return all(one <= other * 1.05 for one, other in pairwise(counts))


def _supported(workload: str, nodes: int, name: str, scale: float) -> float:
    """The mean of some runs: how many queries are placed before a node is overloaded."""
    policy, rewrites = POLICIES[name]
    runs = max(1, int(3 * scale))
    return sum(_run(workload, nodes, policy, rewrites, seed) for seed in range(runs)) / runs


def _run(workload: str, nodes: int, policy: Policy, rewrites: bool, seed: int) -> int:
    dice = random.Random(seed)
    costs = Costs(KNOWN)
    placement = Placement(nodes, policy, costs)
    count = 0
    while True:
        placement.deploy(_drawn(workload, dice, costs, rewrites))
        if max(placement.loads) > CAPACITY:
            return count
        count += 1


def _drawn(workload: str, dice: random.Random, costs: Costs, rewrites: bool) -> Composite:
    """A random query without an operator that is too much for a quarter of a node."""
    while True:
        written = random_pattern(workload, 5, dice)
        if max(profile.work for _, profile in costs.operators([written]).values()) <= CAPACITY / 4:
            return choose(written, costs).pattern if rewrites else written
