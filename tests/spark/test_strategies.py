"""Every strategy on Spark: the lanes of a batch and of a stream, with restarts, equal the definition."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.lanes.test_strategies_equal_meaning import DEALT, REFUSED, bounded, eased_program
from tests.spark.pipeline import Event, Stream, cut, in_batch, job_for, matches_in, reasons_in, without_positions
from tests.spark.test_streaming import outcome, read_stream, write_files
from tests.strategies_composite import composite_streams
from tests.strategies_mixed import mixed_examples

import weft
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.plan.partitioning import by_slice
from weft.plan.partitioning.by_key import ByKey
from weft.runtime.operators.automaton import assignment as dealt
from weft.runtime.spark.lanes.sampling import is_quick, suited_to_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES = ("slice", "replicate", "query")
SOME = some(12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def meant(program: Program, events: list[Event]) -> list[weft.Match]:
    return sorted(weft.detect(events, program, engine="meaning"), key=repr)


def check(cases: Any, strategies: tuple[str, ...] = STRATEGIES) -> Counter[str]:
    """Compare, for random cases; how many matches each strategy had to find."""
    counted: Counter[str] = Counter()

    @SOME
    @given(cases, st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
    def compare(case: tuple[Program, list[Event]], lanes: int, usual: int, rng: random.Random) -> None:
        program, events = case
        wanted = meant(program, events)
        parts = cut(events, (rng.randint(0, len(events)) for _ in range(2)))
        for strategy in strategies:
            with patch.object(by_slice, "USUAL", usual):
                try:
                    batch = job_for(program, lanes, strategy=strategy)
                except UsageError as error:
                    if REFUSED not in str(error):
                        raise
                    continue
                stream = Stream(job_for(program, lanes, strategy=strategy, streaming=True, positions=False), delay=0)
            assert matches_in(in_batch(parts, batch)) == wanted
            for part in parts:
                stream.trigger([part])
                if rng.random() < 0.5:
                    stream.forget()
            stream.end()
            assert without_positions(matches_in(stream.table())) == without_positions(wanted)
            counted[strategy] += len(wanted)

    compare()
    return counted


def test_composite_queries_in_batch_and_stream() -> None:
    drawn = st.tuples(composite_programs, st.integers(2, 5), composite_streams())
    counted = check(drawn.map(lambda d: (bounded(d[0], d[1]), d[2])))
    assert min(counted[strategy] for strategy in STRATEGIES) > 0


def test_shares_of_matches_in_batch_and_stream() -> None:
    patterns = st.sampled_from(["A+ AS a ; B AS b", "A AS a ; B+ AS b", "A AS a ; B AS b ; C", "(A AS a ; B AS b)+"])
    conditions = st.sampled_from(["", "FILTER a[x] < b[x]", "FILTER a[x] = b[x]", "FILTER COUNT(a) > 1"])
    attributes = {"type": st.sampled_from("AABC"), "x": st.sampled_from([1, 2, 2.5, "u"])}
    streams = st.lists(st.fixed_dictionaries(attributes), min_size=3, max_size=9)

    def case(drawn: Any) -> tuple[Program, list[Event]]:
        pattern, condition, events = drawn
        program = weft.compile(f"SELECT * WHERE {pattern} {condition} WITHIN 6 MILLISECONDS")
        return program, [{**event, "ts": at // 2, "k": "u"} for at, event in enumerate(events)]

    with patch.object(dealt, "BLOCK", 3):
        counted = check(st.tuples(patterns, conditions, streams).map(case), ("rank", "match", *DEALT))
    assert min(counted[strategy] for strategy in ("rank", "match", *DEALT)) > 0


def test_mixed_programs_in_batch_and_stream() -> None:
    counted = check(mixed_examples().map(lambda e: (replace(eased_program(e.program), inputs=()), e.events)))
    assert min(counted["slice"], counted["query"]) > 0


PROGRAM = "SELECT * WHERE A AS a ; B AS b FILTER a[x] < b[x] WITHIN 8 MILLISECONDS"
EVENTS: list[dict[str, Any]] = [
    {"type": "ABC"[i * 5 % 7 % 3], "ts": 2 * i, "k": "u", "x": i * 3 % 8} for i in range(90)
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_late_event_is_told_once(strategy: str) -> None:
    program = weft.compile("SELECT a.x FROM A a ; B b WHERE (a, b) OCCURS WITHIN 5", language="eql")
    stream = Stream(job_for(program, 3, strategy=strategy, streaming=True, positions=False), delay=0)
    stream.trigger([EVENTS[:40]])
    stream.trigger([[{"type": "A", "ts": 1, "x": 0}, {"type": "C", "ts": 1, "x": 0}, *EVENTS[40:]]])
    stream.end()
    assert len(reasons_in(stream.table())) == 2


def test_another_way_to_share_out_is_refused_by_what_a_stream_has_kept() -> None:
    program = weft.compile(PROGRAM)
    stream = Stream(job_for(program, 2, strategy="slice", streaming=True, positions=False), delay=0)
    stream.trigger([EVENTS[:40]])
    stream.job = replace(job_for(program, 2, strategy="one", streaming=True), lanes=stream.job.lanes)
    stream.job = replace(stream.job, lanes=tuple(replace(lane, share=1 - lane.share) for lane in stream.job.lanes))
    with pytest.raises(UsageError, match="shared out in another way"):
        stream.trigger([EVENTS[40:]])


@pytest.mark.spark
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", EVENTS, 3)
    program = weft.compile(PROGRAM)
    wanted = list(weft.detect(EVENTS, program))
    for strategy in ("slice", "rank", "match"):
        assert list(weft.detect(EVENTS, program, engine="spark", strategy=strategy, lanes=3)) == wanted
    frame = weft.match(read_stream(spark, tmp_path / "in"), program, delay=0, strategy="slice", lanes=2)
    found = outcome(frame, tmp_path, availableNow=True)
    last = max(int(event["ts"]) for event in EVENTS)
    assert sorted(row.id for row in found) == sorted(match.id for match in wanted if match.end < last)


@pytest.mark.spark
def test_heavy_keys_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    program = weft.compile("SELECT * WHERE A AS a ; B AS b PARTITION BY [x] WITHIN 8 MILLISECONDS")
    events = [{**event, "x": 1 if at % 3 else at} for at, event in enumerate(EVENTS)]
    wanted = list(weft.detect(events, program, engine="meaning"))
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    for source in (events, iter(events), tmp_path / "events.jsonl"):
        assert list(weft.detect(source, program, engine="spark", strategy="key", lanes=3)) == wanted


@pytest.mark.spark
def test_heavy_keys_of_a_frame(spark: SparkSession) -> None:
    """They have a lane of their own where the first rows are had quickly, or where it is asked for."""
    program = weft.compile("SELECT * WHERE A AS a ; B AS b PARTITION BY [x] WITHIN 8 MILLISECONDS")
    events = [{**event, "x": 1 if at % 3 else at} for at, event in enumerate(EVENTS)]
    wanted = [match.id for match in weft.detect(events, program, engine="meaning")]
    frame = spark.createDataFrame(events, "type string, ts long, k string, x long")
    job = job_for(program, 3, strategy="key")
    first = suited_to_frame(job, frame).lanes[0].split
    assert suited_to_frame(job, frame.limit(0)) is job
    assert isinstance(first, ByKey)
    assert first.own == 1
    quick = {"as it is": frame, "chosen": frame.where("x > 0").select("x", "ts"), "both": frame.union(frame)}
    assert {name: is_quick(one) for name, one in quick.items()} == dict.fromkeys(quick, True)
    assert not any(map(is_quick, (frame.orderBy("ts"), frame.groupBy("x").count(), frame.join(frame, "x"))))
    assert [match.id for match in weft.detect(frame, program, strategy="key", lanes=3)] == wanted
    found = weft.match(frame.orderBy("ts"), program, strategy="key", lanes=3, heavy_keys=True)
    assert sorted(row.id for row in found.collect()) == sorted(wanted)


@pytest.mark.spark
def test_heavy_keys_of_a_stream_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", EVENTS, 1)
    with pytest.raises(UsageError, match="a stream's keys keep their lanes"):
        weft.match(read_stream(spark, tmp_path / "in"), PROGRAM, delay=0, heavy_keys=True)
