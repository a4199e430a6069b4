"""Positions are counted in time ranges: lanes get only their own events, with positions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.pipeline import cut, in_batch, job_for, local, matches_in, packed, sorted_rows

import weft
from weft.runtime.spark.lanes import ordering, ranges, worker
from weft.runtime.spark.lanes.ordering import bounds_of, order_runs
from weft.runtime.spark.packing import chunks
from weft.runtime.spark.packing.runs import run_rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYED = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 0] PARTITION BY [k] WITHIN 9 MILLISECONDS"
NEAR = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 0] WITHIN 12 EVENTS"
EVENTS = [
    {"type": "ABC"[place % 3], "ts": place * 7 % 90 // 4, "k": place % 5, "x": place % 4, "n": place}
    for place in range(90)
]


@pytest.mark.parametrize(("query", "strategy"), [(KEYED, "key"), (NEAR, "slice")])
@pytest.mark.parametrize("enough", [1, 1 << 14])
def test_lanes_are_sent_their_own_events_only(query: str, strategy: str, enough: int) -> None:
    program = weft.compile(query)
    job = replace(job_for(program, 4, strategy=strategy), bounds=(5, 6, 17))
    with patch.object(chunks, "WORTH_A_ROW", enough), patch.object(worker, "SMALL", 100 * enough):
        rows = [packed(part, number, job) for number, part in enumerate(cut(EVENTS, (20, 55)))]
        ordered = pa.Table.from_batches(order_runs(iter(sorted_rows(pa.Table.from_batches(rows)).to_batches()), job))
        sent = [row for batch in ordered.to_batches() for row in run_rows_of(batch)]
        runs = [row.run() for row in sent if row.first is not None]
        assert all(len(run) == len(run.events) for run in runs)
        assert sum(row.told[0] for row in sent if row.first is None) == len(EVENTS)
        if strategy == "key":
            assert sum(map(len, runs)) == sum(event["type"] in "AB" for event in EVENTS)
        assert matches_in(in_batch(cut(EVENTS, (20, 55)), job)) == local(program, EVENTS) != []


def test_ranges_have_about_equally_many_events() -> None:
    ends = np.repeat(np.arange(1000), 3)
    with patch.object(ordering, "EVENTS_OF_A_RANGE", 300):
        bounds = bounds_of(ends, len(ends), 2)
    assert len(bounds) == 9
    assert set(np.diff([0, *np.searchsorted(ends, bounds), len(ends)])) == {300}
    assert bounds_of(np.zeros(5, np.int64), 10**9, 2) == ()  # one time cannot be divided
    assert bounds_of(ends, 1000, 8) == ()  # few events have one range


@pytest.mark.spark
@pytest.mark.parametrize("query", [KEYED, NEAR])
@pytest.mark.parametrize("given", ["path", "scan", "sample"])
def test_ranges_of_files_and_frames(spark: SparkSession, tmp_path: Path, query: str, given: str) -> None:
    program = weft.compile(query)
    path = tmp_path / "events.parquet"
    pq.write_table(pa.Table.from_pylist(EVENTS), path, row_group_size=25)
    frame = spark.read.parquet(str(path))
    events = {"path": str(path), "scan": frame, "sample": frame.repartition(3)}[given]
    found: list[tuple[int, ...]] = []

    def noted(*arguments: object) -> tuple[int, ...]:
        found.append(bounds_of(*arguments))  # type: ignore[arg-type]
        return found[-1]

    small = (
        patch.object(ordering, "EVENTS_OF_A_RANGE", 20),
        patch.object(ranges, "EVENTS_OF_A_RANGE", 20),
        patch.object(ranges, "_POINT", 4),
        patch.object(ranges, "_SMALL", 0),
        patch.object(ranges, "_SAMPLED", 0.9),
        patch.object(ranges, "bounds_of", noted),
    )
    order = "n" if given == "sample" else None
    with small[0], small[1], small[2], small[3], small[4], small[5]:
        matches = weft.match(events, program, lanes=3, positions=True, **({} if order is None else {"order": order}))
        rows = matches.collect()
    wanted = weft.detect(EVENTS, program)
    assert sorted((row.id, tuple(row.positions)) for row in rows) == sorted((m.id, m.positions) for m in wanted)
    assert len(found) == 1
    assert len(found[0]) >= 2
