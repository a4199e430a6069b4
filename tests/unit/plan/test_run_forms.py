"""The form in which a rewritten query runs: as it was written, unless another one takes much less time."""

from __future__ import annotations

import pytest

import weft
from weft.algebra.composites import Composite, CompositeQuery
from weft.optimizer.chains import Shape
from weft.optimizer.chooser import choose
from weft.optimizer.cost import Costs
from weft.optimizer.pipeline import optimize
from weft.optimizer.written import Written
from weft.plan.operators import JoinOp
from weft.plan.planner import plan
from weft.statistics import Statistics


def pattern_of(text: str) -> Composite:
    (query,) = weft.compile(f"SELECT * FROM {text}", "eql").queries
    assert isinstance(query, CompositeQuery)
    return query.pattern


def running(text: str, rates: tuple[float, ...]) -> CompositeQuery:
    """The query as it runs; the form that costs least is another one than that in which it was written."""
    known, written = Statistics(dict(zip("ABCD", rates, strict=False))), weft.compile(f"SELECT * FROM {text}", "eql")
    assert choose(pattern_of(text), Costs(known)).pattern != pattern_of(text)
    (graph,) = [op for op in plan(optimize(written, known), statistics=known).operators if isinstance(op, JoinOp)]
    return graph.graph.outputs[0].query


@pytest.mark.parametrize(
    ("text", "rates", "stays"),
    [
        ("(A a | B b) | C c", (10, 10, 9), True),
        ("(A a | B b) | C c", (100, 10, 1), False),
        ("A a ; ((B b | D d) ; C c)", (200, 8, 200, 1), True),
        ("(A a ; (B b | D d)) ; C c", (200, 8, 1, 1), False),
        ("((A a | B b) | C c) ; D d", (10, 10, 9, 1), True),
    ],
)
def test_what_gains_little_runs_as_it_was_written(text: str, rates: tuple[float, ...], stays: bool) -> None:
    query = running(text, rates)
    assert (query.pattern == pattern_of(text)) is stays
    assert query.variables == pattern_of(text).variables


@pytest.mark.parametrize(
    ("written", "operands", "shape"),
    [
        ("A a ; (B b ; C c)", ["A a", "B b", "C c"], (0, (1, 2))),
        ("A a ; ((B b | D d) ; C c)", ["A a", "D d | B b", "C c"], (0, (1, 2))),
        ("(A a | B b) | C c", ["C c", "A a", "B b"], ((1, 2), 0)),
        ("(A a ; B b) | C c", ["C c", "A a ; B b"], (1, 0)),
        ("A a ; B b ; C c", ["A a", "C c"], None),
        ("(A a ; B b) ; (C c ; D d)", ["A a", "B b ; C c", "D d"], None),
        ("A a ; B b", ["A a", "D d"], None),
    ],
)
def test_brackets_are_found_again(written: str, operands: list[str], shape: Shape | None) -> None:
    assert Written(pattern_of(written)).shape([pattern_of(one) for one in operands]) == shape
