"""Rewriting changes no match: every random program means the same before and after."""

from __future__ import annotations

from hypothesis import given, settings
from tests.strategies import Example, examples

from weft.algebra.meaning import matches
from weft.algebra.patterns import Event, Filter
from weft.api import detect
from weft.optimizer.pipeline import optimize


@settings(max_examples=50, deadline=None)
@given(examples())
def test_rewrites_preserve_matches(example: Example) -> None:
    assert matches(optimize(example.program), example.events) == matches(example.program, example.events)


@settings(max_examples=50, deadline=None)
@given(examples())
def test_filters_end_up_at_their_events(example: Example) -> None:
    for query in optimize(example.program).queries:
        for node in query.pattern.walk():
            assert not isinstance(node, Filter) or isinstance(node.pattern, Event)


@settings(max_examples=40, deadline=None)
@given(examples())
def test_programs_run_as_they_were_written(example: Example) -> None:
    found = detect(example.events, example.program, optimize=False, rejects=[])
    meant = detect(example.events, example.program, engine="meaning", rejects=[])
    assert [match.id for match in found] == [match.id for match in meant]
