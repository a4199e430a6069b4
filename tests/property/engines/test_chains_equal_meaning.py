"""Patterns of the builder: the engine gives the matches that are meant, and their text builds them again."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run, run_with_restarts
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import meant, rows_of
from tests.property.running.test_time_passes import with_time
from tests.strategies_chain import EventDict, patterns, streams

import weft
from weft import Pattern
from weft.algebra.meaning import matches
from weft.plan.planner import plan

SOME = some(75)


@SOME
@given(patterns(), streams())
def test_any_batches(pattern: Pattern, events: list[EventDict]) -> None:
    program = pattern.program()
    chosen = plan(program)
    found = run(chosen, event_batches([events[:3], events[3:5], events[5:]], chosen))
    assert rows_of(found) == meant(program, events)


@SOME
@given(patterns(), streams(), st.randoms(use_true_random=False))
def test_time_may_pass(pattern: Pattern, events: list[EventDict], rng: random.Random) -> None:
    program = pattern.program()
    assert rows_of(with_time(plan(program), events, rng)) == meant(program, events)


@SOME
@given(patterns(), streams())
def test_restarts(pattern: Pattern, events: list[EventDict]) -> None:
    chosen = plan(pattern.program())
    found = run_with_restarts(chosen, event_batches([[event] for event in events], chosen))
    assert rows_of(found) == meant(pattern.program(), events)


@SOME
@given(patterns(), streams())
def test_detect_gives_match_order(pattern: Pattern, events: list[EventDict]) -> None:
    found = [(m.end, m.start, m.positions) for m in weft.detect(events, pattern)]
    assert found == [(m.end, m.start, m.positions) for m in matches(pattern.program(), events)]
    assert weft.count(events, pattern) == {"q": len(found)}


@SOME
@given(patterns())
def test_the_text_builds_the_pattern_again(pattern: Pattern) -> None:
    assert eval(str(pattern), dict(vars(weft))) == pattern
