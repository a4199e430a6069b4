"""Operators in stages on Spark: the matches of all stages equal the definition."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import together
from tests.property.lanes.test_placed_operators import scattered
from tests.property.lanes.test_strategies_equal_meaning import bounded, cases_of
from tests.spark.pipeline import cut, in_batch, job_for, matches_in
from tests.spark.test_strategies import meant
from tests.strategies_composite import composite_streams

import weft
from weft import engines
from weft.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPOLOGY = 'topology "t" external A(x: int) < "A" [9.0] external B(x: int) < "B" [9.0] external C(x: int) < "C" [9.0] '
PROGRAM = TOPOLOGY + "Q(a.x, c.x): ((A/a ;[dur < 6 && a.x < b.x] B/b) +[prev(a.x) != a.x && len < 4]) ;[dur < 60] C/c"
EVENTS: list[dict[str, Any]] = [{"type": "ABC"[i * 5 % 7 % 3], "ts": i, "x": i * 3 % 8, "y": i} for i in range(90)]


def test_any_program_in_tasks() -> None:
    counted: Counter[str] = Counter()

    @some(20)
    @given(
        cases_of(together, composite_streams()),
        st.integers(2, 4),
        st.integers(0, 1 << 16),
        st.randoms(use_true_random=False),
    )
    def compare(case: Any, nodes: int, seed: int, rng: random.Random) -> None:
        program, events = case
        parts = cut(events, (rng.randint(0, len(events)) for _ in range(2)))
        with scattered(seed, divides=bool(seed % 2)):
            job = job_for(program, nodes, strategy="placed")
        wanted = meant(program, events)
        assert matches_in(in_batch(parts, job)) == wanted
        counted[f"{job.stages > 1}"] += len(wanted)

    compare()
    assert counted["True"] > 0


def test_events_that_several_queries_identify_in_their_own_way() -> None:
    (one,) = weft.compile(f"{TOPOLOGY}q0(*): A/v1 | A/v2", language="step").queries
    text = "SELECT * FROM A v1 | A v2 \\ (A v3 \\ A v4) WHERE v1.x <= 0"
    (other,) = weft.compile(text, language="eql").queries
    queries = one, replace(other, name="q1"), replace(one, name="q2")
    program = bounded(weft.Program("eql", queries), 2)
    events: list[dict[str, Any]] = [{"type": "A", "ts": 0, "x": 0}] * 4
    with scattered(2, divides=False):
        job = job_for(program, 3, strategy="placed")
    assert job.stages == 3
    assert matches_in(in_batch([events], job)) == meant(program, events)


def test_a_stream_keeps_queries_whole() -> None:
    program = weft.compile(PROGRAM, language="step")
    with pytest.raises(UsageError, match="'placed' is for whole inputs"):
        job_for(program, 2, strategy="placed", streaming=True)
    with pytest.raises(UsageError, match="'placed' is for whole inputs"):
        engines.continuous(program, [("a", "a")], strategy="placed", sink="b", checkpoint="c")


@pytest.mark.spark
def test_spark_gives_the_same_matches_and_counts(spark: SparkSession) -> None:
    program = weft.compile(PROGRAM, language="step")
    alone = list(weft.detect(EVENTS, program))
    assert len(alone) > 2
    assert list(weft.detect(EVENTS, program, engine="spark", strategy="placed", lanes=3)) == alone
    frame = spark.createDataFrame(EVENTS)
    matches = weft.match(frame, program, strategy="placed", lanes=3)
    whole = weft.match(frame, program)
    assert matches.columns == whole.columns
    assert sorted(map(repr, matches.collect())) == sorted(map(repr, whole.collect()))
    assert matches.count() == len(alone)
