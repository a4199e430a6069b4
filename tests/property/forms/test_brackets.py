"""Trees of next and union in the brackets that run: with ties, intervals, equal branches, restarts and sweeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run_with_restarts
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import meant, rows_of

from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery, CompositeSequence, CompositeUnion
from weft.algebra.query import Program
from weft.optimizer import join_order
from weft.optimizer.chooser import choose
from weft.optimizer.cost import Costs
from weft.optimizer.pipeline import optimize
from weft.plan.operators import JoinOp, Plan
from weft.plan.planner import plan
from weft.runtime.operators.joins import operator as run
from weft.runtime.operators.joins import sweep
from weft.statistics import Statistics

EventDict = dict[str, object]
RATES = st.fixed_dictionaries({type_: st.sampled_from([1.0, 8.0, 64.0]) for type_ in "ABC"})
TOGETHER = "what was seen is counted over all tests"
SEEN: Counter[str] = Counter()
ENOUGH = 150


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Refuse a run in which no brackets were changed for the engine where streams had matches."""
    yield
    print(f"\nbrackets: {dict(SEEN)}")
    assert SEEN["trees"] < ENOUGH or SEEN["other brackets, with matches"] > 0


@st.composite
def trees(draw: st.DrawFn) -> Composite:
    numbers = count()

    def tree(operators: int) -> Composite:
        if not operators:
            return CompositeEvent(draw(st.sampled_from("AABC")), f"v{next(numbers)}")
        left = draw(st.integers(0, operators - 1))
        one, other = tree(left), tree(operators - 1 - left)
        return (
            CompositeUnion(one, other)
            if draw(st.sampled_from([True, False, False, False]))
            else CompositeSequence(one, other, "next")
        )

    return tree(draw(st.integers(3, 5)))


@st.composite
def streams(draw: st.DrawFn) -> list[EventDict]:
    events: list[EventDict] = []
    for _ in range(draw(st.integers(4, 16))):
        start = draw(st.integers(0, 8))
        end = start + draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
        events.append({"type": draw(st.sampled_from("AABC")), "start": start, "end": end})
    return sorted(events, key=lambda event: (event["end"], event["start"]))


def patterns_of(chosen: Plan) -> list[Composite]:
    return [out.query.pattern for op in chosen.operators if isinstance(op, JoinOp) for out in op.graph.outputs]


@patch.object(join_order, "WORTH", 1.0)
@patch.object(sweep, "LEAST_ROWS", 0)
@patch.object(run, "LEAST_ROWS", 0)
@some(ENOUGH)
@given(st.lists(trees(), min_size=1, max_size=2), streams(), RATES, st.integers(1, 16), st.integers(1, 3))
def test_trees(
    patterns: list[Composite], events: list[EventDict], rates: dict[str, float], size: int, every: int
) -> None:
    written = Program("eql", tuple(CompositeQuery(f"q{n}", pattern) for n, pattern in enumerate(patterns)))
    rewritten = optimize(written, Statistics(rates))
    expected = meant(written, events)
    for program in (written, rewritten):
        chosen = plan(program, statistics=Statistics(rates))
        parts = [events[at : at + size] for at in range(0, len(events), size)]
        assert rows_of(run_with_restarts(chosen, event_batches(parts, chosen), every)) == expected
    asked = [choose(pattern, Costs(Statistics(rates))).pattern for pattern in patterns]
    SEEN["trees"] += 1
    if patterns_of(chosen) != asked:
        SEEN["other brackets"] += 1
        SEEN["other brackets, with matches"] += bool(expected)
