"""Operators on nodes: reuse of what runs, and a second one where sending would make its node the busiest."""

from __future__ import annotations

import pytest

import weft
from weft.algebra.composites import Composite, CompositeQuery
from weft.errors import UsageError
from weft.optimizer.cost import Costs
from weft.plan.placement import Placement, place
from weft.statistics import Statistics

RATES = {"A": 100.0, "B": 50.0, **{f"C{n}": 1.0 for n in range(20)}}


def pattern(text: str) -> Composite:
    head = " ".join(f'external {type_}(x: int) < "{type_}" [{rate}]' for type_, rate in RATES.items())
    (query,) = weft.compile(f'topology "t" {head} Q(*): {text}', language="step").queries
    assert isinstance(query, CompositeQuery)
    return query.pattern


def costs() -> Costs:
    return Costs(Statistics(RATES))


def unions(count: int) -> list[Composite]:
    """Patterns that all need what many events make, each with a type of its own."""
    return [pattern(f"(A/a | B/b) | C{n}/c") for n in range(count)]


def test_equal_operators_are_placed_once() -> None:
    alike = unions(2)
    assert len(place(alike, costs(), nodes=1).operators) == 3
    assert len(place(alike, costs(), nodes=1, policy="greedy").operators) == 4


def test_an_operator_that_many_read_runs_in_several_nodes() -> None:
    many = place(unions(20), costs(), nodes=4)
    wanted = pattern("A/a | B/b")
    nodes = [node for node, operator in zip(many.node_of, many.operators, strict=True) if operator == wanted]
    assert 1 < len(nodes) == len(set(nodes)) <= 4
    assert max(many.loads) < 2 * min(many.loads)


def test_a_query_that_runs_already_is_not_placed_again() -> None:
    placement = Placement(2, "reuse", costs())
    first = placement.deploy(unions(1)[0])
    loads = list(placement.loads)
    assert placement.deploy(unions(1)[0]) == first
    assert placement.loads == loads


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="round robin"):
        Placement(2, "robin", costs())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one node"):
        Placement(0, "reuse", costs())
