"""What a lane of a stream is sent and keeps: its own events, and how far time has come."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.pipeline import (
    Event,
    Stream,
    counters_in,
    job_for,
    local,
    matches_in,
    packed,
    reasons_in,
    without_positions,
)

import weft
from weft.errors import UsageError
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.spark.packing.frames import needed_columns
from weft.runtime.spark.packing.runs import RunRow, run_rows_of
from weft.runtime.spark.packing.streams import Summary

PAIR = "SELECT a[x] WHERE A AS a ; B AS b FILTER a[x] > 900 PARTITION BY k WITHIN 50 MILLISECONDS"
QUIET = "pattern N absence(A a) context from Open for 10 by k"


def events(count: int, keys: int, first: int = 0) -> list[Event]:
    chance = random.Random(first)
    kinds = [chance.choice("AABX") for _ in range(count)]
    return [
        {"type": kind, "ts": first + at, "k": chance.randrange(keys), "x": chance.randrange(1000)}
        for at, kind in enumerate(kinds)
    ]


def rows_for(count: int, lanes: int, **more: Any) -> tuple[Job, list[RunRow]]:
    job = job_for(weft.compile(PAIR), lanes, streaming=True, **more)
    return job, list(run_rows_of(packed(events(count, 50), 0, job)))


@pytest.mark.parametrize("lanes", [2, 8])
def test_a_lane_gets_the_events_of_its_keys_that_a_query_can_use(lanes: int) -> None:
    job, rows = rows_for(1000, lanes, positions=False)
    useful = [e for e in events(1000, 50) if e["type"] == "B" or (e["type"] == "A" and e["x"] > 900)]  # type: ignore
    runs = [row.run() for row in rows]
    assert [len(run) for run in runs] == [len(run.events) for run in runs]  # no times of others
    assert len(useful) <= sum(map(len, runs)) <= len(useful) + 2  # the first event of each type stays
    assert job.sieve is not None


def test_what_a_lane_is_told_besides_does_not_grow_with_the_events() -> None:
    sizes = {
        (count, lanes): {len(bytes(row.others or b"")) for row in rows_for(count, lanes, positions=False)[1][1:]}
        for count in (100, 3000)
        for lanes in (2, 8)
    }
    assert len(set(map(frozenset, sizes.values()))) == 1, sizes
    told = [Summary.of(row.others) for row in rows_for(3000, 4, positions=False)[1]]
    assert [summary.clusters for summary in told] == [told[0].clusters] * 4
    assert [summary.apart > 0 for summary in told] == [True, False, False, False]


def test_where_positions_are_asked_for_lanes_get_all_times() -> None:
    _, rows = rows_for(100, 3)
    assert [len(row.run()) for row in rows] == [100] * 3


def in_triggers(stream: Stream, given: list[Event], size: int) -> None:
    for begin in range(0, len(given), size):
        stream.trigger([given[begin : begin + size]])
        stream.forget()


@pytest.mark.parametrize("keys", [1, 2])
def test_lanes_without_events_find_nothing_and_hold_nothing_up(keys: int) -> None:
    """All events have few keys: other lanes are told of time only."""
    program, given = weft.compile(PAIR), events(600, keys)
    stream = Stream(job_for(program, 5, streaming=True, positions=False), delay=7)
    in_triggers(stream, given, 50)
    stream.end()
    output = stream.table()
    assert without_positions(matches_in(output)) == without_positions(local(program, given)) != []
    assert reasons_in(output) == []
    assert sum(told.get("events", 0) for told in counters_in(output)) == len(given)


def test_an_absence_is_decided_by_time_that_a_lane_is_only_told() -> None:
    program = weft.compile(QUIET, "epn")
    stream = Stream(job_for(program, 4, streaming=True, positions=False), delay=0)
    stream.trigger([[{"type": "Open", "ts": 1, "k": 1}, {"type": "A", "ts": 2, "k": 2}]])
    stream.forget()
    assert matches_in(stream.table()) == []
    stream.trigger([[{"type": "X", "ts": 20, "k": 2}]])
    assert [(match.start, match.end) for match in matches_in(stream.table())] == [(1, 11)]


def test_state_grows_with_what_is_pending_and_not_with_what_is_past() -> None:
    stream = Stream(job_for(weft.compile(PAIR), 2, streaming=True, positions=False), delay=5)
    sizes = []
    for number in range(24):
        stream.trigger([events(3000, 10, first=3000 * number)])
        sizes.append(sum(len(page) for pages in stream.pages.values() for page in pages.values()))
    assert max(sizes) < 6 * 3000, sizes  # bytes: each event that was kept would take more than 60


def test_positions_cannot_be_asked_for_later() -> None:
    program = weft.compile(PAIR)
    stream = Stream(job_for(program, 2, streaming=True, positions=False), delay=0)
    stream.trigger([events(20, 3)])
    stream.job = job_for(program, 2, streaming=True)
    with pytest.raises(UsageError, match="began without counting them"):
        stream.trigger([events(20, 3, first=20)])
    stream.job = job_for(program, 2, streaming=True, positions=False)
    stream.trigger([events(20, 3, first=20)])


def test_positions_can_be_done_without_later() -> None:
    program, given = weft.compile(PAIR), events(400, 5)
    stream = Stream(job_for(program, 2, streaming=True), delay=9)
    in_triggers(stream, given[:200], 40)
    stream.job = job_for(program, 2, streaming=True, positions=False)
    in_triggers(stream, given[200:], 40)
    stream.end()
    assert without_positions(matches_in(stream.table())) == without_positions(local(program, given)) != []


def test_a_program_that_counts_events_gets_positions_unasked() -> None:
    program, given = weft.compile("SELECT a[x] WHERE A AS a ; B AS b PARTITION BY k WITHIN 9 EVENTS"), events(300, 4)
    stream = Stream(job_for(program, 3, streaming=True, positions=False), delay=9)
    in_triggers(stream, given, 40)
    stream.end()
    assert matches_in(stream.table()) == local(program, given) != []


@pytest.mark.spark
def test_rows_that_no_query_can_use_leave_java_without_their_values(spark: SparkSession, tmp_path: Path) -> None:
    columns = "ts long, type string, k long, x long"
    frame = spark.readStream.schema(columns).parquet(str(tmp_path))
    job = job_of(plan(weft.compile(PAIR)), Reading(), 2, streaming=True, positions=False)
    read, _ = needed_columns(frame, frame.schema, job)
    assert "900" in read._jdf.queryExecution().analyzed().toString()
    for other in (replace(job, positions=True), replace(job, tallies=True)):
        read, _ = needed_columns(frame, frame.schema, other)
        assert "900" not in read._jdf.queryExecution().analyzed().toString()
