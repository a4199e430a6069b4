"""NEXT's figures: what rewriting gains on one node (9, 10), and queries that nodes support (11)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from benchmarks.figures.figure import Curves, Figure, Point, above, rises
from benchmarks.measure import UNMEASURED, Steady
from benchmarks.next import KNOWN, RATES, WORKLOADS, poisson, program_of, random_pattern
from benchmarks.next_nodes import POLICIES, supported

from weft.algebra.composites import Composite
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.order import read_events

OPERATORS = (2, 3, 5, 7, 10)
QUERIES = (1, 5, 10, 20, 40)
NODES = (1, 5, 10, 15, 20, 40)
TOGETHER = 40  # operators that are deployed together, of which it is measured how many a core takes
REWRITTEN = "rewritten"
NOISE = "Noise may be the reason: two forms are close, and other work on the machine slows one of them. Run it alone."
TURNS = 6  # of each form: fewer leave in what else the machine did


def stream(scale: float) -> list[EventBatch]:
    """Events of the eight sources."""
    return list(read_events(poisson(max(4_000, int(100_000 * scale))), columns=()))


def seconds_of(patterns: Sequence[Composite], batches: Sequence[EventBatch]) -> tuple[list[float], float]:
    """CPU seconds of the queries as written and rewritten, and the seconds of event time that it was for."""
    program = program_of(patterns)
    plans = [plan(form, statistics=KNOWN) for form in (program, optimize(program, KNOWN))]
    steady = Steady(plans, batches)
    steady.measure(TURNS)
    return steady.seconds, steady.events / sum(RATES.values())


def single_node(scale: float) -> Iterator[Point]:
    """Figure 9: how many operators one core takes at the sources' rates, by the size of queries."""
    batches = stream(scale)[: 2 + UNMEASURED]
    for workload in WORKLOADS:
        for operators in OPERATORS:
            dice = random.Random(operators)
            patterns = [random_pattern(workload, operators, dice) for _ in range(max(2, TOGETHER // operators))]
            seconds, span = seconds_of(patterns, batches)
            for series, busy in zip((workload, f"{workload}, {REWRITTEN}"), seconds, strict=True):
                yield Point(series, operators, operators * len(patterns) * span / busy)


def throughput(scale: float) -> Iterator[Point]:
    """Figure 10: events that a core takes in a second, by the number of queries of five operators."""
    batches = stream(scale)[: 2 + UNMEASURED]
    for workload in WORKLOADS:
        dice = random.Random(10)
        patterns = [random_pattern(workload, 5, dice) for _ in range(max(QUERIES))]
        for queries in QUERIES:
            seconds, span = seconds_of(patterns[:queries], batches)
            for series, busy in zip((workload, f"{workload}, {REWRITTEN}"), seconds, strict=True):
                yield Point(series, queries, sum(RATES.values()) * span / busy)


def nodes(scale: float, workload: str) -> Iterator[Point]:
    """Figure 11: queries that are placed before a node, or the sinks, have too much to do."""
    sinks = 5 if workload == "union" else 1
    for name in POLICIES:
        for count in NODES:
            yield Point(name, count, supported(workload, count, name, scale, sinks))
    if workload == "union":
        for count in NODES:
            yield Point("rewrite+reuse, one sink", count, supported(workload, count, "rewrite+reuse", scale, 1))


def gains(curves: Curves) -> bool:
    """Rewritten queries are as good as written ones everywhere."""
    return all(above(curves[f"{name}, {REWRITTEN}"], curves[name]) for name in WORKLOADS)


def ordered(curves: Curves) -> bool:
    """The policies stand in their order at 40 nodes, and the best one grows."""
    last = [curves[name][-1][1] for name in POLICIES]
    return all(one <= 1.05 * other for one, other in pairwise(last)) and rises(curves["rewrite+reuse"])


def saturates(curves: Curves) -> bool:
    """One sink is the limit for unions, near eighty queries; five are not."""
    alone, several = dict(curves["rewrite+reuse, one sink"]), dict(curves["rewrite+reuse"])
    is_flat = alone[15] == alone[20] == alone[40] and 60 <= alone[40] <= 100
    is_not = several[5] < several[15] < several[40] and several[40] > 2 * alone[40]
    return ordered(curves) and is_flat and is_not and all(alone[nodes] == several[nodes] for nodes in (1, 5))


FIGURES = (
    Figure(
        "next-9",
        "operators that one node supports",
        "operators per query",
        "operators without overload",
        single_node,
        "rewriting is never worse, and gains most for next, then mix, then union",
        gains,
        log="y",
        reason=NOISE,
    ),
    Figure(
        "next-10",
        "throughput of queries of five operators",
        "deployed queries",
        "events per second",
        throughput,
        "rewriting is never worse: about twice for next, a fifth for union, mix between",
        gains,
        log="y",
        reason=NOISE,
    ),
    Figure(
        "next-11-next",
        "queries supported by nodes, next",
        "nodes",
        "queries of five operators",
        partial(nodes, workload="next"),
        "round robin < greedy <= reuse < rewriting at 40 nodes, and the best grows with the nodes",
        ordered,
    ),
    Figure(
        "next-11-union",
        "queries supported by nodes, union",
        "nodes",
        "queries of five operators",
        partial(nodes, workload="union"),
        "the same order with five sinks; one sink is the limit near 80 queries",
        saturates,
    ),
)
