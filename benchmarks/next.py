"""NEXT's experiments with rewriting (Figures 9 and 10), on the local engine: what the model says, and what is measured.

Eight Poisson sources of 1 to 128 events a second; random queries over them: of next, of union, and mixed. A ratio is
the cost, or the CPU time, of a query as it was written over that of its rewritten form.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from benchmarks.measure import UNMEASURED, Row, Steady, row

import weft
from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery, CompositeSequence, CompositeUnion
from weft.optimizer.chains import Shape
from weft.optimizer.cost import Costs, profiles
from weft.optimizer.cost.brackets import best_brackets, plain_brackets
from weft.optimizer.join_order import PRICES, work_of
from weft.optimizer.pipeline import optimize
from weft.plan.operators import JoinOp, Plan
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.order import read_events

RATES = {f"S{number}": float(2**number) for number in range(8)}
KNOWN = weft.Statistics(RATES)
WORKLOADS = ("next", "union", "mix")
MOST_TRIED = 8  # operands of a chain all of whose brackets are tried
GOALS = {"next": ">= 2.0", "union": ">= 1.15", "mix": "between"}


def run(scale: float = 1.0, *, nodes: bool = False) -> list[Row]:
    """All cases; `scale` multiplies the number of events and of queries. `nodes`: Figure 11 and placed queries."""
    if nodes:
        from benchmarks.next_nodes import executed, figure_11

        return [*figure_11(scale), *executed(scale)]
    stream = list(read_events(poisson(max(20_000, int(400_000 * scale))), columns=()))
    queries = max(5, int(50 * scale))
    rows: list[Row] = []
    for workload in WORKLOADS:
        rows += _of_five_operators(workload, stream, queries)
    rows += _by_size(stream, max(3, queries // 5))
    rows += _many_queries(stream, queries)
    return [*rows, *_optimising(queries * 20), *_exactness(queries * 20)]


def poisson(count: int, seed: int = 7) -> pa.Table:
    """Events of all sources in order, about so many; times are in milliseconds."""
    seconds = count / sum(RATES.values())
    dice = np.random.default_rng(seed)
    times, types = [], []
    for name, rate in RATES.items():
        own = np.cumsum(dice.exponential(1000 / rate, int(rate * seconds * 1.2) + 8))
        times.append(own[own < seconds * 1000].astype(np.int64))
        types += [name] * len(times[-1])
    order = np.argsort(np.concatenate(times), kind="stable")
    return pa.table({"type": pa.array(types).take(pa.array(order)), "ts": np.concatenate(times)[order]})


# ---------------------------------------------------------------- random queries


def random_pattern(workload: str, operators: int, dice: random.Random) -> Composite:
    """A random tree with so many operators, every shape equally likely, leaves drawn with replacement."""
    names = iter(range(operators + 1))

    def leaf() -> Composite:
        return CompositeEvent(dice.choice(list(RATES)), f"v{next(names)}")

    def tree(shape: Shape, join: Callable[[Composite, Composite], Composite]) -> Composite:
        return leaf() if isinstance(shape, int) else join(tree(shape[0], join), tree(shape[1], join))

    if workload != "mix":
        return tree(random_shape(operators, dice), CompositeUnion if workload == "union" else _next)
    return _mixed(operators, dice, leaf)


def _next(left: Composite, right: Composite) -> Composite:
    return CompositeSequence(left, right, "next")


def _mixed(operators: int, dice: random.Random, leaf: Callable[[], Composite]) -> Composite:
    """Nested sub-trees of two operators, each all next or all union."""
    if operators <= 0:
        return leaf()
    join = dice.choice([_next, CompositeUnion])
    inner = _mixed(operators - 2, dice, leaf)
    if operators == 1:
        return join(inner, leaf())
    return join(join(inner, leaf()), leaf()) if dice.random() < 0.5 else join(inner, join(leaf(), leaf()))


def random_shape(operators: int, dice: random.Random) -> Shape:
    """Brackets, each with the same probability."""
    counts = [1]
    for size in range(1, operators + 1):
        counts.append(sum(counts[left] * counts[size - 1 - left] for left in range(size)))
    if operators == 0:
        return 0
    ways = [counts[left] * counts[operators - 1 - left] for left in range(operators)]
    left = dice.choices(range(operators), ways)[0]
    return random_shape(left, dice), random_shape(operators - 1 - left, dice)


def program_of(patterns: Sequence[Composite]) -> weft.Program:
    """The patterns as one program."""
    return weft.Program("eql", tuple(CompositeQuery(f"q{n}", pattern) for n, pattern in enumerate(patterns)))


# ---------------------------------------------------------------- figures


class Ratios(NamedTuple):
    """Written over rewritten: by the optimiser's model, by the prices that choose the form that runs, and measured."""

    model: float
    expected: float
    measured: float


def _ratios(patterns: Sequence[Composite], batches: Sequence[EventBatch], repeats: int = 5) -> Ratios:
    """Both forms take turns on events that are read already, and find the same."""
    costs, program = Costs(KNOWN), program_of(patterns)
    forms = [program, optimize(program, KNOWN)]
    plans = [plan(form, statistics=KNOWN) for form in forms]
    steady = Steady(plans, batches)
    found = steady.measure(repeats)
    for _ in range(2 * repeats):  # only what looks slower is measured longer: other work may have been the reason
        if steady.seconds[0] >= 0.98 * steady.seconds[1]:
            break
        found += steady.measure()
    if any(counts != found[0] for counts in found):
        raise RuntimeError(f"a rewritten form finds something else: {patterns}")
    model = [costs.total(*(query.pattern for query in form.queries)) for form in forms]  # type: ignore[union-attr]
    expected = [expected_ns(chosen, costs) for chosen in plans]
    return Ratios(model[0] / model[1], expected[0] / expected[1], steady.seconds[0] / steady.seconds[1])


def expected_ns(chosen: Plan, costs: Costs) -> float:
    """What a plan is expected to take in a second of events."""
    outputs = [out.query.pattern for op in chosen.operators if isinstance(op, JoinOp) for out in op.graph.outputs]
    return PRICES.event * sum(RATES.values()) + work_of(outputs, costs)


def _of_five_operators(workload: str, stream: Sequence[EventBatch], queries: int, seed: int = 5) -> list[Row]:
    dice = random.Random(seed)
    found = [_ratios([random_pattern(workload, 5, dice)], stream) for _ in range(queries)]
    medians = Ratios(*(median(one[place] for one in found) for place in range(3)))
    slowest = min(one.measured for one in found)
    case = f"{workload}, 5 operators, {queries} queries"
    return [
        row(f"{case}: model", medians.model, "times", "as written", medians.model),
        row(f"{case}: expected", medians.expected, "times", "as written", medians.expected),
        row(f"{case}: measured CPU", medians.measured, "times", "as written", medians.measured, GOALS[workload]),
        row(f"{case}: least of all", slowest, "times", "as written", slowest, ">= 0.952"),
    ]


def _by_size(stream: Sequence[EventBatch], queries: int) -> list[Row]:
    """Figure 9: the gain grows with the number of operators, next >> mix > union."""
    rows: list[Row] = []
    for workload in WORKLOADS:
        for operators in (2, 3, 5, 7, 10):
            dice = random.Random(operators)
            patterns = [random_pattern(workload, operators, dice) for _ in range(queries)]
            found = [_ratios([pattern], stream[: 2 + UNMEASURED], repeats=2) for pattern in patterns]
            model, measured = median(one.model for one in found), median(one.measured for one in found)
            rows.append(row(f"{workload}, {operators} operators: measured", measured, "times", "model", model))
    return rows


def _many_queries(stream: Sequence[EventBatch], queries: int) -> list[Row]:
    """Figure 10: several queries of five operators together, which share what they have in common.

    Measured is far below the model where that counts looks: of 16 queries of next four make five sixths of its sum, as
    all left ones that wait look at each burst of right ones. Here a left one is joined once, which the prices know.
    """
    rows: list[Row] = []
    for workload in WORKLOADS:
        dice = random.Random(10)
        patterns = [random_pattern(workload, 5, dice) for _ in range(max(4, queries // 3))]
        found = _ratios(patterns, stream[: 2 + UNMEASURED], repeats=2)
        case = f"{workload}, {len(patterns)} queries at once"
        rows.append(row(f"{case}: expected", found.expected, "times", "model", found.model))
        rows.append(row(f"{case}: measured", found.measured, "times", "model", found.model))
    return rows


def _optimising(queries: int) -> list[Row]:
    dice = random.Random(3)
    program = program_of([random_pattern("next", 5, dice) for _ in range(queries)])
    start = process_time()
    optimize(program, KNOWN)
    shown = process_time() - start
    chain = [profiles.leaf(dice.uniform(1, 128)) for _ in range(20)]
    start = process_time()
    best_brackets(chain)
    return [
        row(f"optimising {queries} queries of 5 operators", shown, "s", goal="< 3 s for 1,000"),
        row("optimising a chain of 20 operands", process_time() - start, "s", goal="< 1.5 s"),
    ]


def _exactness(chains: int) -> list[Row]:
    """How often each algorithm misses the best brackets of its model, by trying all of them."""
    dice = random.Random(1)
    exact = plain = worst = 0.0
    for _ in range(chains):
        operands = [profiles.leaf(float(2 ** dice.randint(0, 7))) for _ in range(dice.randint(3, MOST_TRIED))]
        best = min(cost for cost, _ in all_forms(operands))
        exact += cost_of_shape(best_brackets(operands), operands) > best * (1 + 1e-9)
        found = cost_of_shape(plain_brackets(operands), operands) / best
        plain, worst = plain + (found > 1 + 1e-9), max(worst, found)
    return [
        row(f"misses of the exact algorithm in {chains} chains", exact, "chains", goal="0"),
        row(f"misses of the document's algorithm in {chains} chains", plain, "chains", "the best", worst),
    ]


def all_forms(operands: Sequence[profiles.Profile]) -> list[tuple[float, profiles.Profile]]:
    """A chain with all its brackets, none left out: what its operators do, and what comes out."""
    forms = {(at, at): [(0.0, operand)] for at, operand in enumerate(operands)}
    for length in range(1, len(operands)):
        for first in range(len(operands) - length):
            last = first + length
            forms[first, last] = [
                (one + other + joined.work, joined)
                for cut in range(first, last)
                for one, left in forms[first, cut]
                for other, right in forms[cut + 1, last]
                for joined in [profiles.follow(left, right)]
            ]
    return forms[0, len(operands) - 1]


def cost_of_shape(shape: Shape, operands: Sequence[profiles.Profile]) -> float:
    """What the operators of a chain do with these brackets."""

    def cost(part: Shape) -> tuple[float, profiles.Profile]:
        if isinstance(part, int):
            return 0.0, operands[part]
        (one, left), (other, right) = cost(part[0]), cost(part[1])
        joined = profiles.follow(left, right)
        return one + other + joined.work, joined

    return cost(shape)[0]
