"""Operators in several lanes, stage after stage, give the matches that are meant, with their ids and in their order:
random programs, operators on random nodes, some patterns in shares, rounds of any size.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs, together
from tests.property.lanes.test_strategies_equal_meaning import Case, agree, cases_of, found, in_order, row
from tests.strategies_composite import composite_streams
from tests.strategies_mixed import mixed_examples

import weft
from weft.algebra.meaning import matches
from weft.plan.placement import Placement
from weft.plan.planner import plan
from weft.plan.staging import placing
from weft.runtime import local
from weft.runtime.execution import staged_matcher

SOME = some(40)


@contextmanager
def scattered(seed: int, divides: bool) -> Iterator[None]:
    """Operators are placed on any nodes, and whatever can be divided is, or nothing."""

    def chosen(self: Placement, work: float, inputs: object) -> int:
        return (seed * (len(self.node_of) + 3) ** 2 >> 3) % self.nodes

    divided = placing._divided

    def maybe_divided(family: Any, costs: Any, nodes: int, fair: float) -> Any:
        dealt = (seed + len(repr(family.queries))) % 3
        return divided(family, costs, nodes, 0.0) if divides and not dealt else None

    with (
        patch.object(Placement, "_chosen", chosen),
        patch.object(placing, "WORTH", 9.0),
        patch.object(placing, "_divided", maybe_divided),
    ):
        yield


def placed(case: Case, nodes: int, seed: int, divides: bool, rounds: int, threads: int) -> Counter[str]:
    """Compare with what is meant; how many matches lanes of so many stages found."""
    program, events = case
    with scattered(seed, divides):
        made = plan(program, strategy="placed", lanes=nodes)
        with patch.object(local, "ROUND", rounds), patch.object(staged_matcher, "TURN", 1 + seed % 4):
            rows = found(program, events, strategy="placed", lanes=nodes, threads=threads)
    meant = in_order(program, map(row, matches(program, events)))
    agree(rows, meant)
    stages = {lane.stage for lane in made.lanes_for(nodes)}
    return Counter({f"{len(stages)} stages": len(meant)})


numbers = st.integers(1, 5), st.integers(0, 1 << 16), st.booleans(), st.sampled_from([2, 5, 1 << 20])
threads = st.sampled_from([1, 2])


@SOME
@given(cases_of(programs, composite_streams()), *numbers, threads)
def test_operators_of_one_query(case: Case, nodes: int, seed: int, divides: bool, rounds: int, threads: int) -> None:
    placed(case, nodes, seed, divides, rounds, threads)


@SOME
@given(cases_of(together, composite_streams()), *numbers, threads)
def test_operators_that_queries_share(
    case: Case, nodes: int, seed: int, divides: bool, rounds: int, threads: int
) -> None:
    placed(case, nodes, seed, divides, rounds, threads)


@SOME
@given(mixed_examples().map(lambda example: (example.program, example.events)), *numbers, threads)
def test_programs_of_several_languages(
    case: Case, nodes: int, seed: int, divides: bool, rounds: int, threads: int
) -> None:
    placed(case, nodes, seed, divides, rounds, threads)


TOPOLOGY = 'topology "t" external A(x: int) < "A" [9.0] external B(x: int) < "B" [9.0] external C(x: int) < "C" [9.0] '
NEXT = "(A/a ;[dur < 9 && a.x < b.x] B/b)"
PATTERNS = (
    f"{NEXT} +[prev(a.x) != a.x && len < 4]",
    f"({NEXT} +[prev(a.x) < a.x]) ;[dur < 60] C/c",
    f"(A/d +[prev(d.x) != d.x && len > 1]) ;[dur < 60 && d.x = b.x] {NEXT}",
    f"({NEXT} ;?[dur < 20] C/c) | (B/d ,[dur < 9] C/e)",
    f"!(C/c ;[dur < 4] C/d) ; {NEXT}",
    f"({NEXT} ,[dur < 20 && a.x != c.x] (A/c ;?[dur < 9] C/d)) +?[prev(d.x) = d.x && len < 3]",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_operators_with_many_matches(pattern: str) -> None:
    program = replace(weft.compile(f"{TOPOLOGY}Q(*): {pattern}", language="step"), inputs=())
    dice, counted = random.Random(7), Counter[str]()
    for seed in range(6):
        events = [{"type": dice.choice("AABC"), "ts": at // 2, "x": dice.randint(0, 5)} for at in range(40)]
        counted += placed((program, events), 2 + seed % 3, seed * 977, bool(seed % 2), 1 << 20, 1 + seed % 2)
    assert counted["2 stages"] + counted["3 stages"] + counted["4 stages"] > 0, counted


@pytest.mark.parametrize("nodes", [3, 5])
def test_what_is_too_much_for_a_node_is_divided(nodes: int) -> None:
    program = replace(weft.compile(f"{TOPOLOGY}Q(*): {PATTERNS[0]}", language="step"), inputs=())
    lower, upper = plan(program, strategy="placed", lanes=nodes).lanes
    assert len(lower.nodes) > 1
    assert (lower.split.strategy, lower.stage, upper.stage, len(upper.nodes)) == ("slice", 0, 1, 1)
    dice = random.Random(nodes)
    events = [{"type": dice.choice("AABC"), "ts": at // 2, "x": dice.randint(0, 5)} for at in range(60)]
    meant = in_order(program, map(row, matches(program, events)))
    assert len(meant) > 3
    agree(found(program, events, strategy="placed", lanes=nodes, threads=2), meant)
