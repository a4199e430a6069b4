"""Load shedding: whatever is dropped, every match is one of the whole stream."""

from __future__ import annotations

import random
import warnings
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_live_equals_meaning import EventDict, keys

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.plan.shedding import shed_plan

SOME = some(30)
SHEDS = st.builds(
    weft.Shed, share=st.sampled_from([0.3, 0.6, 1.0]), policy=st.sampled_from(["utility", "random", "oldest"])
)


def check(program: Program, events: list[EventDict], shed: weft.Shed, pieces: int) -> None:
    """Compare what is found with less to what is meant by all."""
    meant = set(keys(matches(program, events)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(keys(weft.detect(events, program, shed=shed))) <= meant
        running = weft.live(program, shed=shed)
        size = -(-len(events) // pieces) or 1
        ordered = sorted(events, key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
        found = [match for at in range(0, len(events), size) for match in running.push(ordered[at : at + size])]
    assert set(keys(found + list(running.finish()))) <= set(keys(matches(program, ordered)))


@SOME
@given(strategies.programs(), strategies.streams(word=("A", "B", "C", "A")), SHEDS, st.integers(1, 3))
def test_regular_queries(program: Program, events: list[EventDict], shed: weft.Shed, pieces: int) -> None:
    check(program, events, shed, pieces)


@SOME
@given(composite_programs, strategies_composite.composite_streams(), SHEDS, st.integers(1, 3))
def test_composite_queries(program: Program, events: list[EventDict], shed: weft.Shed, pieces: int) -> None:
    check(program, events, shed, pieces)


@SOME
@given(
    strategies_epn.examples(most=2).map(lambda example: compile_text(example.text, language="epn")[0]),
    strategies_epn.streams(),
    SHEDS,
)
def test_situations(program: Program, events: list[EventDict], shed: weft.Shed) -> None:
    check(program, events, shed, 1)


@SOME
@given(strategies_tesla.texts(strategies_tesla.rule_sets()), strategies_tesla.rule_streams(), SHEDS, st.integers(1, 3))
def test_rules(text: str, events: list[EventDict], shed: weft.Shed, pieces: int) -> None:
    check(compile_text(text, language="tesla")[0], events, shed, pieces)


SAFE = {
    "SELECT * FROM S WHERE (A AS a ; B+ AS b ; C AS c) FILTER a[x > 0] WITHIN 9 EVENTS": {"a", "b", "c"},
    "SELECT * FROM S WHERE (A AS a : B AS b)": set(),
    "SELECT NEXT * FROM S WHERE (A AS a ; B AS b)": set(),
    "SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x)": {"a"},
    "define Y(x: int) from B() and each A(x > 1) within 9 from B where x = A.x": {"A", "B"},
    "define Y(x: int) from B() and last A(x > 1) within 9 from B where x = A.x": {"B"},
    "pattern P sequence(A a, B b) policies evaluation immediate, repeated every, consumption reuse": {"a", "b"},
    "pattern P sequence(A a, B b) policies evaluation immediate, repeated last, consumption reuse": set(),
    "pattern P absence(A a) context fixed 10 ms": set(),
}


def test_which_places_are_safe() -> None:
    for text, expected in SAFE.items():
        language = "eql" if text.startswith("SELECT a.x") else None
        (own,) = shed_plan(compile_text(text, language=language)[0].queries)
        assert {leaf.name for leaf in own.leaves if leaf.safe} == expected, text


def test_what_feeds_an_unsafe_place_is_not_shed() -> None:
    text = """define Y(x: int) from B() and each A(x > 1) within 9 from B where x = A.x;
    define Z(x: int) from C() and not Y() within 9 from C and each B() within 9 from C where x = 1"""
    first, _ = shed_plan(compile_text(text, language="tesla")[0].queries)
    assert not any(leaf.safe for leaf in first.leaves)


def test_all_events_that_may_be_are_shed_and_counted() -> None:
    program = weft.compile("SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a[x > 0]")
    events = [{"type": "AB"[at % 2], "ts": at, "x": at} for at in range(10)]
    running = weft.live(program, shed=weft.Shed(share=1.0))
    assert len(running.push(events)) == 0
    counters = running.counters
    assert {name: count for name, count in counters.items() if name.startswith("shed")} == {
        "shed": 10,
        "shed q.a": 4,
        "shed q.b": 5,
    }


def test_partial_matches_that_are_dropped_invent_nothing() -> None:
    program = weft.compile("SELECT * FROM S WHERE (A AS a ; B AS b) FILTER b[x > 5]")
    events = [{"type": "A" if at % 1000 else "B", "ts": at, "x": at} for at in range(9_000)]
    full = {match.id for match in weft.detect(events, program, budget=weft.Budget(state_bytes=10**9))}
    budget = weft.Budget(state_bytes=200_000, action="drop-oldest")
    running = weft.live(program, budget=budget)
    found = [match for at in range(0, len(events), 100) for match in running.push(events[at : at + 100])]
    assert {match.id for match in found} < full
    assert len(found) > 1000
    assert running.counters["dropped"] > 0
    assert max(Counter(match.positions[-1] for match in found).values()) <= 200_000 // 40  # bytes of a part


def test_what_matters_finds_more_than_chance_where_all_events_matter() -> None:
    dice = random.Random(5)
    pairs = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 10 EVENTS"
    by_key = "SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) PARTITION BY [k] WITHIN 500 MILLISECONDS"
    for text, types in ((pairs, "AB"), (by_key, "ABC")):
        events = [{"type": dice.choice(types), "ts": at, "k": dice.randrange(60)} for at in range(2000)]
        for share in (0.25, 0.5, 0.75):
            found = {}
            for policy in ("utility", "random"):
                running = weft.live(text, shed=weft.Shed(share=share, policy=policy))
                found[policy] = sum(len(running.push(events[at : at + 200])) for at in range(0, 2000, 200))
            assert found["utility"] > 1.2 * found["random"] > 0, (text, share, found)
