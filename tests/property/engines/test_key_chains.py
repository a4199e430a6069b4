"""Keyed chains equal the definition of their sequences: with ties, intervals, unusual keys, restarts and sweeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches, run_with_restarts
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import meant, rows_of

from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery, CompositeSequence, Without
from weft.algebra.predicates import Attribute, Comparison, Literal, Predicate
from weft.algebra.query import Program
from weft.algebra.terms import Elapsed
from weft.plan.operators import JoinOp
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.joins import operator as run
from weft.runtime.operators.joins import sweep
from weft.runtime.store import pages

SOME = some(40)
EventDict = dict[str, object]


def own(variable: str) -> st.SearchStrategy[tuple[Predicate, ...]]:
    """Nothing, or a condition on the event alone."""
    test = Comparison(">", Attribute("x", variable), Literal(0))
    return st.sampled_from([(), (test,)])


def same(keys: tuple[str, ...], one: str, other: str) -> tuple[Predicate, ...]:
    return tuple(Comparison("=", Attribute(key, one), Attribute(key, other)) for key in keys)


@st.composite
def chains(draw: st.DrawFn) -> Composite:
    keys = draw(st.sampled_from([(), ("k",), ("k", "j")]))
    types = st.sampled_from("AB")
    pattern: Composite = CompositeEvent(draw(types), "v0", draw(own("v0")))
    count = draw(st.integers(2, 4))
    for number in range(1, count):
        name = f"v{number}"
        within = Comparison(draw(st.sampled_from(["<", "<="])), Elapsed("v0", name), Literal(draw(st.integers(1, 6))))
        where, among = draw(own(name)), ()
        if draw(st.booleans()):
            where, among = draw(st.sampled_from([((*where, within), ()), (where, (within,))]))
        before = f"v{draw(st.integers(0, number - 1))}"
        right = CompositeEvent(draw(types), name, draw(own(name)))
        pattern = CompositeSequence(pattern, right, "next", where, (*same(keys, before, name), *among))
    if count == 2 and draw(st.booleans()):
        unwanted = CompositeEvent(draw(st.sampled_from("ABC")), "u", draw(own("u")))
        pattern = Without(pattern, unwanted, "between", same(keys, draw(st.sampled_from(["v0", "v1"])), "u"))
    return pattern


@st.composite
def streams(draw: st.DrawFn) -> list[EventDict]:
    key = st.sampled_from([1, 1, 1, 2, 1.0, "1", True, 0.5, float("nan"), None])
    events: list[EventDict] = []
    for _ in range(draw(st.integers(0, 14))):
        start = draw(st.integers(0, 9))
        end = start + draw(st.sampled_from([0, 0, 0, 1, 3]))
        values = {"k": draw(key), "j": draw(st.sampled_from([1, 1, 2])), "x": draw(st.integers(0, 3))}
        kept = {name: value for name, value in values.items() if value is not None}
        events.append({"type": draw(st.sampled_from("AABBC")), "start": start, "end": end, **kept})
    return sorted(events, key=lambda event: (event["end"], event["start"]))


def numbers_of(found: Iterable[MatchBatch]) -> Counter[str]:
    """How many matches there are of each query."""
    numbers: Counter[str] = Counter()
    for batch in found:
        numbers[batch.query] += len(batch)
    return numbers


@patch.object(pages, "ITEMS", 4)
@patch.object(layer_keys, "LEAST_SLOTS", 0)
@patch.object(sweep, "LEAST_ROWS", 0)
@patch.object(run, "LEAST_ROWS", 0)
@SOME
@given(st.lists(chains(), min_size=1, max_size=2), streams(), st.integers(1, 5), st.integers(1, 3))
def test_chains(patterns: list[Composite], events: list[EventDict], size: int, every: int) -> None:
    program = Program("eql", tuple(CompositeQuery(f"q{n}", pattern) for n, pattern in enumerate(patterns)))
    chosen = plan(program)
    parts = [events[at : at + size] for at in range(0, len(events), size)]
    found = run_with_restarts(chosen, event_batches(parts, chosen), every)
    assert rows_of(found) == meant(program, events)


@SOME
@given(st.lists(chains(), min_size=1, max_size=2), streams(), st.integers(1, 5), st.lists(st.booleans(), min_size=14))
def test_chains_are_counted(patterns: list[Composite], events: list[EventDict], size: int, counts: list[bool]) -> None:
    """A batch whose matches are only counted, between others, has as many as if they were wanted."""
    chosen = plan(Program("eql", tuple(CompositeQuery(f"q{n}", pattern) for n, pattern in enumerate(patterns))))
    matcher, reference = Matcher(chosen), Matcher(chosen)
    for batch, is_counted in zip(
        event_batches([events[at : at + size] for at in range(0, len(events), size)], chosen), counts, strict=False
    ):
        wanted = numbers_of(reference.push(batch))
        assert (+Counter(matcher.count(batch)) if is_counted else numbers_of(matcher.push(batch))) == wanted
    assert numbers_of(matcher.finish()) == numbers_of(reference.finish())


@given(chains())
def test_chains_are_planned(pattern: Composite) -> None:
    (layer,) = plan(Program("eql", (CompositeQuery("q", pattern),))).layers
    (operator,) = layer.operators
    assert isinstance(operator, JoinOp)
    assert [node.chain is not None for node in operator.graph.nodes] == [True]
