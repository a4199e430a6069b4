"""Rewriting by cost changes no match: any chain, union, rates and stream; and it really happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.strategies_chains import RATES, chain_streams, chain_texts, union_texts
from tests.strategies_composite import composite_streams, eql_programs, step_programs

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.api import detect
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.optimizer.pipeline import trace
from weft.statistics import Statistics

pytestmark = [pytest.mark.filterwarnings("ignore::weft.DataWarning"), pytest.mark.xdist_group("rewriting")]
RAN: set[str] = set()
SEEN: Counter[str] = Counter()  # rewrites by rule, and streams with matches of rewritten programs


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often rewrites fired, and refuse a run in which one never did."""
    yield
    print(f"\nrewrites: {dict(SEEN)}")
    for name in (
        ()
        if len(RAN) < 3
        else ("rebracket_next", "lift_plain_conditions", "spread_key", "reorder_union", "with matches")
    ):
        assert SEEN[name] > 0, f"{name} never happened in {dict(SEEN)}"


def compiled(text: str, language: str) -> Program | None:
    try:
        return replace(compile_text(text, language=language)[0], inputs=())
    except ProgramError:
        return None


def rows(found: Iterable[Any]) -> list[tuple[object, ...]]:
    """Matches in match order, as all engines give them."""
    in_order = sorted(found, key=lambda m: (m.end, m.start, m.positions, m.id))
    return [(m.id, m.query, m.start, m.end, m.positions, m.bindings, m.event) for m in in_order]


def check(program: Program, rates: Mapping[str, float], events: list[dict[str, object]]) -> None:
    found = trace(program, Statistics(rates))
    written = rows(matches(program, events))
    rewrites = [rewrite.rule for rewrite in found.rewrites]
    SEEN.update(rewrites)
    SEEN["with matches"] += bool(rewrites and written)
    SEEN["with fewer costs"] += any(one.cost_after < one.cost_before for one in found.queries)
    assert rows(matches(found.program, events)) == written
    if rewrites:
        engine = detect(events, program, statistics=Statistics(rates), rejects=[])
        assert [match.id for match in engine] == [row[0] for row in written]


@some(150)
@given(chain_texts(), RATES, st.lists(chain_streams(), min_size=2, max_size=2))
def test_chains(text: str, rates: dict[str, float], streams: list[list[dict[str, object]]]) -> None:
    RAN.add("chains")
    program = compiled(text, "eql")
    if program is not None:
        for events in streams:
            check(program, rates, events)


@some(40)
@given(union_texts(), RATES, chain_streams())
def test_unions(text: str, rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("unions")
    program = compiled(text, "eql")
    assert program is not None
    check(program, rates, events)


@some(60)
@given(st.one_of(eql_programs(), step_programs()), RATES, composite_streams())
def test_any_program(text: str, rates: dict[str, float], events: list[dict[str, object]]) -> None:
    RAN.add("any")
    program = compiled(text, "step" if text.startswith("topology") else "eql")
    if program is not None:
        check(program, rates, events)
