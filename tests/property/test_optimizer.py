"""Rewriting changes no match: every random program means the same before and after."""

from __future__ import annotations

from hypothesis import given, settings
from tests.strategies import Example, examples

from weft.algebra.meaning import matches
from weft.algebra.patterns import Event, Where
from weft.optimizer.pipeline import optimize


@settings(max_examples=100, deadline=None)
@given(examples())
def test_rewrites_preserve_matches(example: Example) -> None:
    assert matches(optimize(example.program), example.events) == matches(example.program, example.events)


@settings(max_examples=100, deadline=None)
@given(examples())
def test_filters_end_up_at_their_events(example: Example) -> None:
    for query in optimize(example.program).queries:
        for node in query.pattern.walk():
            assert not isinstance(node, Where) or isinstance(node.pattern, Event)
