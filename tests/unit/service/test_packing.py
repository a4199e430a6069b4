"""Rows that tell lanes of events, without Spark: their size where matches are counted, and texts that occur often."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.files.batches import pieces_of
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.spark.lanes.worker import count_runs
from weft.runtime.spark.packing import chunks
from weft.runtime.spark.packing.frames import events_of

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "SELECT * WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 50 MILLISECONDS"
EVENTS = pa.table(
    {
        "ts": [at // 3 for at in range(3000)],
        "type": ["AB"[at * 7 % 5 % 2] for at in range(3000)],
        "k": [f"key {at % 11}" for at in range(3000)],
        "x": [at * 31 % 97 for at in range(3000)],
    }
)


def counted(job: Job, parts: int) -> tuple[Counter[str], list[int]]:
    """The matches in some parts of the input, and the sizes of the rows that tell of them."""
    reading, share = job.reading, len(EVENTS) // parts
    packed: list[pa.RecordBatch] = []
    for part in range(parts):
        rows = EVENTS.slice(part * share, share).to_batches(max_chunksize=400)
        packed += chunks.pack_part((events_of(batch, reading) for batch in rows), job, part)
    table = pa.Table.from_batches(packed)
    by = [(name, "ascending") for name in ("lane", "first", "source", "part", "chunk")]
    ordered = table.sort_by(by).combine_chunks().to_batches()
    places = list(zip(*(table[name].to_pylist() for name in ("lane", "part", "chunk")), strict=True))
    filled = [place for place, first in zip(places, table["first"].to_pylist(), strict=True) if first is not None]
    assert len(filled) == len(set(filled))  # places decide between equal times
    totals: Counter[str] = Counter()
    for row in chain.from_iterable(rows.to_pylist() for rows in count_runs(iter(ordered), job)):
        if row["query"] is not None:
            totals[row["query"]] += int(row["id"], 16)
    return totals, [
        len(times) + len(events)
        for times, events in zip(*(table[n].to_pylist() for n in ("times", "events")), strict=True)
    ]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("lanes", [1, 4])
def test_rows_of_jobs_that_count_are_bounded(parts: int, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = weft.compile(QUERY)
    job = job_of(plan(program, lanes=lanes), Reading(), lanes, positions=False)
    usual, sizes = counted(job, parts)
    assert usual == weft.count(EVENTS, program)
    assert usual.total() > 0
    monkeypatch.setattr(chunks, "MOST_ROW_BYTES", 1500)
    bounded, small = counted(replace(job, is_anonymous=True), parts)
    assert bounded == usual
    assert max(small) <= 1500 < max(sizes)


def test_texts_that_occur_often_are_read_as_a_dictionary(tmp_path: Path) -> None:
    path = str(tmp_path / "events.parquet")
    table = EVENTS.append_column("note", pa.array([f"note {at}" for at in range(3000)]))
    pq.write_table(table, path, row_group_size=1000)
    assert [piece.repeated for piece in pieces_of(path, "parquet", Reading(), {})] == [{"type", "k"}] * 3
