"""Searches in blocks select the same sets as the definition and as the search slot by slot."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import event_batches, rows_of
from tests.property.engines.test_situations_equal_meaning import Case, meant, run
from tests.strategies_blocks import block_patterns, block_streams
from tests.strategies_epn import EventDict

from weft.algebra.situations import SituationQuery
from weft.languages import compile_text
from weft.plan import layers
from weft.plan.operators import Plan, SituationOp
from weft.plan.planner import plan
from weft.plan.search import SituationSearch, search_of

SOME = some(60)


def case_of(text: str, events: list[EventDict], size: int) -> Case:
    program, _ = compile_text(text, language="epn")
    return Case(program, events, [events[at : at + size] for at in range(0, len(events), size)])


def searches_of(chosen: Plan) -> list[SituationSearch]:
    ways = [op.way for op in chosen.operators if isinstance(op, SituationOp)]
    return [way for way in ways if isinstance(way, SituationSearch)]


def in_blocks(chosen: Plan) -> bool:
    """Whether a search of the plan is in blocks."""
    return any(
        way.blocks or any(step.opens for steps in way.ways.values() for step in steps) for way in searches_of(chosen)
    )


def test_blocks_select_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    seen: Counter[str] = Counter()

    @SOME
    @given(block_patterns(), block_streams(), st.integers(1, 20))
    def check(text: str, events: list[EventDict], size: int) -> None:
        case = case_of(text, events, size)
        chosen = plan(case.program)
        expected = meant(case)
        assert rows_of(run(chosen, event_batches(case.parts, chosen))) == expected
        query = case.program.queries[0]
        assert isinstance(query, SituationQuery)
        kind = query.situation.kind
        seen.update([kind, *([f"{kind} in blocks"] if in_blocks(chosen) else [])])
        if in_blocks(chosen) and expected:
            seen.update([f"{kind} with matches"])

    check()
    assert seen["sequence with matches"] > seen["sequence in blocks"] // 8 > 0, seen
    assert seen["all with matches"] > seen["all in blocks"] // 8 > 0, seen


def test_the_plain_search_selects_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What benchmarks compare blocks with is right, too."""
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    monkeypatch.setattr(layers, "search_of", lambda situation: search_of(situation, in_blocks=False))

    @some(20)
    @given(block_patterns(), block_streams())
    def check(text: str, events: list[EventDict]) -> None:
        case = case_of(text, events, 5)
        chosen = plan(case.program)
        assert not in_blocks(chosen)
        assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)

    check()
