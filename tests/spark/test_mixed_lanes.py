"""Queries of several languages that feed each other, in lanes: by a key that goes through all of them, or in one."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.harness import some
from tests.spark.pipeline import Event, Stream, cut, in_batch, job_for, matches_in, without_positions

import weft
from weft.algebra.query import Program
from weft.api import merge_programs
from weft.plan.planner import plan

SOME = some(20)

# Each defines R with a key, and is split by it.
BOTTOM = (
    "QUERY R AS SELECT a[v], b[k] WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 6 EVENTS",
    "define R(k: int, v: int) from B(k = $k) and each A(k = $k) within 6 from B where k = B.k, v = A.v",
    "pattern R sequence(A a, B b) where a.k = b.k derive k = a.k, v = b.v",
)
TOP = (
    "QUERY T AS SELECT * WHERE R AS r ; C AS c PARTITION BY [k] WITHIN 1 HOUR",
    "define T(v: int) from C(k = $k) and last R(k = $k) within 9 from C where v = R.v",
    "pattern T sequence(R r, C c) where r.k = c.k derive v = r.v",
)
# Without the key, or without a way for it: one lane.
LOOSE = (
    "QUERY T AS SELECT * WHERE R AS r ; C AS c WITHIN 3 EVENTS",
    "QUERY T AS SELECT * WHERE R AS r : C AS c PARTITION BY [k] WITHIN 3 EVENTS",
    "pattern T absence(R r) context fixed 4",
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    chance = random.Random(draw(st.integers(0, 2**32)))
    return [
        {"type": chance.choice("ABC"), "ts": at // 2, "k": chance.choice((1, 2, 2.5)), "v": chance.randint(0, 2)}
        for at in range(draw(st.integers(0, 14)))
    ]


def meant(program: Program, given: Sequence[Event]) -> list[weft.Match]:
    return sorted(weft.detect(given, program, engine="meaning"), key=repr)


@pytest.mark.parametrize("bottom", BOTTOM)
def test_a_key_goes_through_all_of_a_family_or_none(bottom: str) -> None:
    for top in TOP:
        (lanes,) = plan(merge_programs([bottom, top])).lanes
        assert lanes.key == (("k",),)
    for top in LOOSE:
        (lanes,) = plan(merge_programs([bottom, top])).lanes
        assert lanes.key == ()
    without = bottom.replace("b[k]", "b[v] AS k").replace("k = B.k", "k = B.v").replace("k = a.k,", "k = a.v,")
    (lanes,) = plan(merge_programs([without, TOP[2]])).lanes
    assert lanes.key == ()


@SOME
@given(
    st.sampled_from(BOTTOM),
    st.sampled_from(TOP + LOOSE),
    streams(),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_batch_and_stream(bottom: str, top: str, given: list[Event], lanes: int, rng: random.Random) -> None:
    program = merge_programs([bottom, top])
    parts = cut(given, (rng.randint(0, len(given)) for _ in range(2)))
    assert matches_in(in_batch(parts, job_for(program, lanes))) == meant(program, given)
    stream = Stream(job_for(program, lanes, streaming=True, positions=False), delay=0)
    for part in parts:
        stream.trigger([part])
        if rng.random() < 0.5:
            stream.forget()
    stream.end()
    assert without_positions(matches_in(stream.table())) == without_positions(meant(program, given))


@pytest.mark.spark
def test_on_spark(spark: SparkSession) -> None:
    program = merge_programs([BOTTOM[2], TOP[1], "QUERY U AS SELECT t[v] WHERE T AS t ; A AS a WITHIN 20 EVENTS"])
    chance = random.Random(1)
    events = [
        {"type": chance.choice("ABC"), "ts": at, "k": chance.randint(1, 3), "v": chance.randint(0, 9)}
        for at in range(60)
    ]
    wanted = list(weft.detect(events, program, engine="local"))
    assert list(weft.detect(events, program, engine="spark")) == wanted
    assert {match.query for match in wanted} == {"R", "T", "U"}
