"""Every split that is offered for a sequence or for `all` equals the definition, for all policies."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_blocks import case_of
from tests.property.engines.test_engines_equal_meaning import event_batches, rows_of
from tests.property.engines.test_situations_equal_meaning import meant, run
from tests.strategies_blocks import block_patterns, block_streams
from tests.strategies_epn import EventDict

from weft.algebra.query import Program
from weft.algebra.situations import SituationQuery
from weft.optimizer.pipeline import trace
from weft.optimizer.rules.split_sequence import split_sequence, splits_of
from weft.plan import layers
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.statistics import Statistics


def split(program: Program, early: int) -> Program:
    """The program with its pattern split."""
    (query,) = program.queries
    assert isinstance(query, SituationQuery)
    return replace(program, queries=(replace(query, situation=split_sequence(query.situation, early)),))


@pytest.mark.parametrize("kind", ["sequence", "all"])
def test_all_splits_find_what_is_meant(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)
    seen: Counter[str] = Counter()

    @some(40)
    @given(block_patterns((kind,)), block_streams(), st.integers(1, 20))
    def check(text: str, events: list[EventDict], size: int) -> None:
        case = case_of(text, events, size)
        (query,) = case.program.queries
        assert isinstance(query, SituationQuery)
        expected = meant(case)
        for early in splits_of(query.situation):
            chosen = plan(split(case.program, early))
            assert rows_of(run(chosen, event_batches(case.parts, chosen))) == expected
            seen.update(["splits" if early else "whole"])
            seen.update(["with matches"] if early and expected else [])

    check()
    assert seen["splits"] > (40 if kind == "sequence" else 15), seen
    assert seen["with matches"] > seen["splits"] // 20, seen


@pytest.mark.parametrize("kind", ["sequence", "all"])
def test_splits_survive_restarts(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Also when another split is chosen in between."""
    monkeypatch.setattr(layers, "keyed_sequence", lambda situation: None)

    @some(25)
    @given(block_patterns((kind,)), block_streams(), st.booleans())
    def check(text: str, events: list[EventDict], changes: bool) -> None:
        case = case_of(text, events, 3)
        (query,) = case.program.queries
        assert isinstance(query, SituationQuery)
        most = splits_of(query.situation)[-1]
        chosen = plan(split(case.program, most))
        matcher, found, pages = Matcher(chosen), [], dict[str, bytes]()
        for number, batch in enumerate(event_batches(case.parts, chosen)):
            if changes and number % 2:
                chosen = plan(split(case.program, number // 2 % (most + 1)))
                matcher.replace_queries({0: chosen.program.queries[0]})
            found += matcher.push(batch)
            pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
            matcher = Matcher.restore(chosen, dict(pages))
        assert rows_of([*found, *matcher.finish()]) == meant(case)

    check()


def test_the_split_that_rates_choose_finds_what_is_meant() -> None:
    statistics = Statistics(rates=dict.fromkeys("ABCDE", 100.0))
    fired: Counter[str] = Counter()

    @some(20)
    @given(block_patterns(), block_streams())
    def check(text: str, events: list[EventDict]) -> None:
        case = case_of(text, events, 6)
        traced = trace(case.program, statistics)
        fired.update(rewrite.rule for rewrite in traced.rewrites)
        chosen = plan(traced.program)
        assert rows_of(run(chosen, event_batches(case.parts, chosen))) == meant(case)

    check()
    assert fired["split_sequence"] > 0
