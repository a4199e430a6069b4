"""A run that is restarted with other lanes or another strategy finds the same matches, without loss or duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_generations import Changing
from tests.spark.pipeline import Event, cut, matches_in

import weft
from weft.algebra.query import Program
from weft.errors import InputError, UsageError
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize

SOME = some(25)
TOGETHER = "what was seen is counted over all tests"
SEEN: Counter[str] = Counter()
Way = tuple[str | None, int]
WAYS = st.tuples(
    st.sampled_from(["auto", "key", "slice", "replicate", "query", "rank", "one", None]), st.integers(1, 3)
)
MOST = st.lists(st.tuples(st.integers(0, 40), WAYS), min_size=1, max_size=3)


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often queries went over, and refuse a run in which none did."""
    yield
    print(f"\nmoves: {dict(SEEN)}")
    assert not SEEN["streams"] or (SEEN["moved with matches"] and SEEN["stayed"]), dict(SEEN)


def check(program: Program, events: Sequence[Event], first: Way, moves: Sequence[tuple[int, Way]]) -> None:
    """Start the run anew at some places, each time in another way."""
    meant = Counter((match.query, match.id) for match in weft.detect(events, program, engine="meaning", rejects=[]))
    found, moved = moved_run(program, events, first, moves)
    assert Counter(found) == meant
    SEEN["streams"] += 1
    SEEN["moved with matches"] += bool(moved and meant)


def moved_run(
    program: Program, events: Sequence[Event], first: Way, moves: Sequence[tuple[int, Way]]
) -> tuple[list[tuple[str, str]], bool]:
    run, moved = Changing(), False
    places = sorted(min(place, len(events)) for place, _ in moves)
    ways = [first, *(way for _, way in moves)]
    try:
        for part, way in zip(cut(events, places), ways, strict=True):
            try:
                told = run.become(program, *way)
            except UsageError:  # a strategy that is none for this program
                told = run.become(program, None, way[1])
            moved |= any(move.is_possible for move in told)
            SEEN["stayed"] += any(not move.is_possible for move in told)
            assert run.stream is not None
            for piece in cut(part, [len(part) // 2]):
                run.stream.trigger([piece])
    except InputError:  # an event longer than all before, which a stream refuses
        assume(False)
    assert run.stream is not None
    run.stream.end()
    return [(match.query, match.id) for match in matches_in(run.stream.table())], moved


@SOME
@given(strategies.programs(), strategies.streams(word=("A", "B", "C", "A")), WAYS, MOST)
def test_regular_queries(program: Program, events: list[Event], first: Way, moves: list[tuple[int, Way]]) -> None:
    check(program, events, first, moves)


@SOME
@given(composite_programs.map(optimize), strategies_composite.composite_streams(), WAYS, MOST)
def test_composite_queries(program: Program, events: list[Event], first: Way, moves: list[tuple[int, Way]]) -> None:
    check(program, events, first, moves)


@SOME
@given(
    strategies_epn.examples(most=1).map(lambda example: compile_text(example.text, language="epn")[0]),
    strategies_epn.streams(),
    WAYS,
    MOST,
)
def test_situations(program: Program, events: list[Event], first: Way, moves: list[tuple[int, Way]]) -> None:
    check(program, events, first, moves)


@SOME
@given(
    strategies_tesla.texts(strategies_tesla.rule_sets(size=2)).map(
        lambda text: compile_text(text, language="tesla")[0]
    ),
    strategies_tesla.rule_streams(),
    WAYS,
    MOST,
)
def test_rules(program: Program, events: list[Event], first: Way, moves: list[tuple[int, Way]]) -> None:
    check(program, events, first, moves)
