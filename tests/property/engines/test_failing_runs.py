"""Runs that fail a condition are cut off as they grow, and their nodes are used again: the answers are those meant."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import example, given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines.test_engines_equal_meaning import meant, rows_of

import weft
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.automaton import advancing

SOME = some(40)
STRATEGIES = ["ALL", "MAX", "STRICT", "NEXT", "LAST", "ANY"]
FILTERS = [
    "INCREASING(u[x])",
    "DECREASING(u[x])",
    "COUNT(u[x]) >= 2",
    "COUNT(u[y]) > 1",
    "COUNT(u) >= 4",
    "2 <= COUNT(u[x])",
    "COUNT(u[x]) < 3",
    "LAST(u[x]) >= d[x]",
    "d[x] < LAST(u[x])",
    "LAST(u[x]) <> d[y]",
    "FIRST(u[x]) <= d[x]",
    "u[x] <= d[x]",
    "u[y] = d[y]",
    "u[x] + d[x] > 2",
]
TIGHT = [
    "A :+ AS u : A AS d",
    "(A :+ AS u : B AS d) :+",
    "A :+ AS u : B :+ AS d",
    "A AS d : A :+ AS u : B",
    "A :+ AS u OR B AS d",
]
LOOSE = [
    "A + AS u ; A AS d",
    "A + AS u ; B AS d ; A AS u",
    "A + AS u ; B + AS d",
    "(A + AS u ; B AS d) +",
    "A + AS u OR B AS d",
]


@st.composite
def events(draw: st.DrawFn, most: int) -> list[dict[str, object]]:
    value = st.one_of(st.integers(0, 3), st.integers(0, 3), st.none())
    rows = draw(st.lists(st.tuples(st.sampled_from("AAAB"), value, value, st.integers(0, 1)), max_size=most))
    return [
        {"type": kind, "ts": ts, "k": key, **{n: v for n, v in (("x", x), ("y", y)) if v is not None}}
        for ts, (kind, x, y, key) in enumerate(rows)
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[dict[str, object]]]:
    tight = draw(st.booleans())
    pattern = draw(st.sampled_from(TIGHT if tight else LOOSE))
    filters = " AND ".join(draw(st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3, unique=True)))
    strategy = draw(st.sampled_from(STRATEGIES))
    ending = draw(st.sampled_from(["", " PARTITION BY [k]", " WITHIN 6 EVENTS", " CONSUME BY ANY", " LIMIT 2"]))
    return f"SELECT {strategy} * FROM S WHERE {pattern} FILTER {filters}{ending}", draw(events(40 if tight else 9))


@contextmanager
def little_room() -> Iterator[None]:
    """Rings and buffers so small that nodes are given up, and matches of one event do not fit."""
    small, defaults = advancing._SMALL_RING, advancing.AutomatonRun.__init__.__kwdefaults__
    advancing._SMALL_RING = 64
    advancing.AutomatonRun.__init__.__kwdefaults__ = {"ring": 16, "matches": 2}
    try:
        yield
    finally:
        advancing._SMALL_RING, advancing.AutomatonRun.__init__.__kwdefaults__ = small, defaults


THREE: list[dict[str, object]] = [{"type": "A", "ts": ts} for ts in range(3)]


@SOME
@given(cases(), st.integers(1, 11))
@example(("SELECT * FROM S WHERE A :+ AS u FILTER COUNT(u) >= 3", THREE), 2)
def test_the_answers_are_those_meant_with_little_room_and_after_restarts(
    case: tuple[str, list[dict[str, object]]], size: int
) -> None:
    text, stream = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = weft.compile(text)
    chosen = plan(program)
    pages: dict[str, bytes | None] = {}
    found, counted = [], 0
    with little_room():
        matcher, counter = Matcher(chosen), Matcher(chosen)
        for batch in event_batches([stream[at : at + size] for at in range(0, len(stream), size)], chosen):
            found += rows_of(matcher.push(batch))
            counted += sum(counter.count(batch).values())
            pages |= matcher.snapshot()
            matcher = Matcher.restore(chosen, {name: page for name, page in pages.items() if page is not None})
    assert sorted(found) == meant(program, stream)
    assert counted == len(found)
