"""Rules in lanes: split by the key that ties their events, or in one lane, they fire as they are meant to."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.spark.pipeline import Event, Stream, cut, in_batch, job_for, matches_in, without_positions

import weft
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.classify.keys import lane_of
from weft.runtime.reading.order import read_events

SOME = some(20)

KEYED = (
    "define X(k: {kind}, v: int) from B(k = $k) and {pick} A(k = $k) within 6 from B where k = B.k, v = A.v",
    "define X(k: {kind}) from B(k = $k, v > 0) and last A(k = $k) within 9 from B and not C(k = $k) between A and B "
    "where k = A.k consuming A",
    "define Y(k: {kind}, n: int) from X(k = $k) and {pick} C(k = $k) within 7 from X "
    "where k = X.k, n = Count(A(k = $k) within 9 from X)",
    "define Y(k: {kind}) from C(k = $k) and {pick} X(k = $k) within 7 from C where k = X.k",
    "define Z(v: int) from B(k = $k) and each B(k = $k) as B2 within 4 from B where v = B2.v",
)
APART = "define W(v: int) from C() and last A() within 3 from C where v = A.v"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    kind = draw(st.sampled_from([st.sampled_from(["int", "double"]), st.just("string")]))
    pick = st.sampled_from(["each", "first", "last", "2-last"])
    chosen = draw(st.lists(st.sampled_from(KEYED), min_size=1, max_size=4))
    texts = [text.format(kind=draw(kind), pick=draw(pick)) for text in chosen]
    return weft.compile("\n".join([*texts, *([APART] if draw(st.booleans()) else [])]), language="tesla")


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Events of few keys. A generator of their own draws them: drawn one by one they would be too much alike."""
    keys = draw(st.sampled_from([(2, 2.5), (2, 2.0, "2"), (0, -0.5, None), (2**53, 2**53 + 1), (1, True, 2.5)]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    return [
        {"type": chance.choice("ABC"), "ts": at // 2, "k": chance.choice(keys), "v": chance.randint(0, 2)}
        for at in range(draw(st.integers(0, 14)))
    ]


def meant(program: Program, given: Sequence[Event]) -> list[weft.Match]:
    return sorted(weft.detect(given, program, engine="meaning"), key=repr)


@SOME
@given(programs(), streams(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_batch(program: Program, given: list[Event], lanes: int, rng: random.Random) -> None:
    assert any(group.key for group in plan(program).lanes)
    parts = cut(given, (rng.randint(0, len(given)) for _ in range(2)))
    assert matches_in(in_batch(parts, job_for(program, lanes))) == meant(program, given)


@SOME
@given(programs(), streams(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_stream(program: Program, given: list[Event], lanes: int, rng: random.Random) -> None:
    """Trigger by trigger, with lanes that are read from their pages again now and then."""
    stream = Stream(job_for(program, lanes, streaming=True, positions=False), delay=0)
    for part in cut(given, (rng.randint(0, len(given)) for _ in range(3))):
        stream.trigger([part])
        if rng.random() < 0.5:
            stream.forget()
    stream.end()
    assert without_positions(matches_in(stream.table())) == without_positions(meant(program, given))


def test_what_a_rule_defines_stays_in_the_lane_of_its_events() -> None:
    program = weft.compile(
        "define X(k: int) from B(k = $k) and last A(k = $k) within 6 from B where k = B.k\n"
        "define Y() from C(k = $k) and each X(k = $k) within 7 from C"
    )
    given: list[Event] = [
        {"type": type_, "ts": at, "k": k} for at, (type_, k) in enumerate([("A", 2.5), ("B", 2.5), ("C", 2)])
    ]
    assert [match.query for match in meant(program, given)] == ["X", "Y"]
    assert matches_in(in_batch([given], job_for(program, 16))) == meant(program, given)


@pytest.mark.parametrize(("one", "other"), [(2, 2.75), (-0.5, 0), (2**53, 2**53 + 1), (7.0, 7)])
def test_a_key_that_is_handed_on_as_another_kind_of_number_stays_in_its_lane(one: float, other: float) -> None:
    (batch,) = read_events([{"type": "A", "ts": 1, "k": one}, {"type": "A", "ts": 2, "k": other}])
    (alone,) = read_events([{"type": "A", "ts": 2, "k": other}])
    first, second = lane_of(batch, (("k",),), 1000)
    assert first == second == lane_of(alone, (("k",),), 1000)[0]
