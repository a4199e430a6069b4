"""The files that a run writes: in Parquet with the columns that other results have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.pipeline import PageDict

import weft
from weft.connectors.files import READERS
from weft.plan.planner import plan
from weft.runtime.data.blocks import packed_rows
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import shape_of
from weft.runtime.spark.files.log import Folder
from weft.runtime.spark.files.schema import columns_of_run
from weft.runtime.spark.files.work import FileWork
from weft.runtime.spark.jobs.job import job_of
from weft.runtime.spark.lanes.state import LaneState
from weft.runtime.spark.packing.runs import run_rows_of
from weft.runtime.spark.runs.sink import FileSink
from weft.runtime.spark.runs.sink_parts import PACKED, share_out
from weft.runtime.spark.schema import counters_as_output, output_schema
from weft.runtime.spark.watermark import Lateness
from weft.runtime.watching.triggers import Trigger

PROGRAM = "SELECT a[v] WHERE A AS a ; B AS b WITHIN 9 EVENTS"


class Told:
    """What tasks tell of a trigger, as far as a sink asks."""

    def __init__(self, sink: FileSink, trigger: int, *tables: pa.Table) -> None:
        self._told = [
            packed_rows(rows) for table in tables for rows in share_out(table.to_batches(), sink.work, trigger)
        ]

    def toArrow(self) -> pa.Table:
        return pa.table({PACKED: pa.array(self._told, pa.binary())})


def write(sink: FileSink, trigger: int, *tables: pa.Table) -> None:
    """Write the output of tasks, a table each."""
    sink.write(Told(sink, trigger, *tables), trigger)  # type: ignore[arg-type]


def test_parquet_files_have_the_columns_of_other_results(tmp_path: Path) -> None:
    table = pa.table(
        {
            "type": ["A", "B", None],
            "ts": pa.array([1, 2, 3], pa.timestamp("ms")),
            "v": pa.array(["1.50", "2.00", "3.00"]).cast(pa.decimal128(12, 2)),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    (tmp_path / "in" / "b.parquet").write_text("something else")
    session: Any = None  # Parquet says itself which columns it has
    folders, kept = [Folder("in", str(tmp_path / "in"), {})], tmp_path / "columns"
    columns = columns_of_run(session, folders, {".parquet": "parquet"}, READERS, kept, waits=False)
    assert columns_of_run(session, [], {}, READERS, kept, waits=False) == columns
    program = weft.compile(PROGRAM)
    shape = shape_of(program.queries, columns, Reading())
    job = job_of(plan(program), Reading(), 1, streaming=True, shape=shape)
    work = FileWork(job, dict(READERS))
    runs = [*work.runs(str(tmp_path / "in" / "a.parquet"), "parquet", 0, 0, {}), work.end(1)]
    state = LaneState.load(PageDict(), job, job.lanes[0].id)
    rows = [row for batch in runs for row in run_rows_of(batch)]
    output = pa.Table.from_batches([*state.take(rows, Lateness(0)), *state.go_on()], output_schema(shape))
    sink = FileSink(str(tmp_path / "out"), None, "parquet", ["q"])
    sink.expect(shape, "ms", 1)
    write(sink, 0, output)
    (file,) = (tmp_path / "out").glob("*.parquet")
    written = pq.read_table(file)
    expected = weft.detect(table.slice(0, 2), PROGRAM).to_arrow()
    assert written.drop_columns(["bindings"]).to_pylist() == expected.drop_columns(["bindings"]).to_pylist()
    assert written.schema.field("event").type == expected.schema.field("event").type
    (reject,) = (tmp_path / "out" / "rejects").glob("*")
    assert json.loads(reject.read_text())["event"]["v"] in (3.0, "3.00")
    assert sink.counters["matches"] == sink.counters["unreadable"] == 1


def rows_of(ends: range, reason: str | None = None) -> pa.Table:
    """Matches that end at these times, latest first; or rejects."""
    made: list[dict[str, Any]] = [
        {
            "query": None if reason else "q",
            "id": f"{end:032x}",
            "start": end,
            "end": end,
            "positions": [end],
            "bindings": [("a", [end])],
            "event": "{}",
            "reason": reason,
        }
        for end in reversed(ends)
    ]
    return pa.Table.from_pylist(made, output_schema(None))


def test_tasks_write_what_is_too_much_for_the_driver(tmp_path: Path) -> None:
    """Many matches are in several files, each in match order; a trigger that is done again leaves the same ones."""
    sink = FileSink(str(tmp_path), None, "jsonl", ["q"], collected=4000, piece=3000)
    told: list[Trigger] = []
    sink.watchers.append(told.append)
    sink.expect(None, "ms", 1)
    many = [rows_of(range(first, first + 20)) for first in range(0, 200, 20)]
    wrong = [rows_of(range(first, first + 20), "late: it was") for first in range(0, 100, 20)]
    (tmp_path / "matches-00000003-0000-9999.jsonl").write_text("of a process that died")
    (tmp_path / ".matches-00000003-0000-0000.jsonl.abc.unfinished").write_text("likewise")
    for _ in range(2):  # as after a kill between sink and commit
        sink.begin()
        write(sink, 3, pa.concat_tables([*many, *wrong]))
        files = sorted(tmp_path.glob("matches-00000003*"))
        assert len(files) > 2
        parts = [[json.loads(line)["end"] for line in file.read_text().splitlines()] for file in files]
        assert all(part == sorted(part) for part in parts)
        assert sorted(end for part in parts for end in part) == list(range(200))
        rejects = [line for file in (tmp_path / "rejects").iterdir() for line in file.read_text().splitlines()]
        assert len(rejects) == 100
        assert not list(tmp_path.glob(".matches-*"))
    assert [(trigger.matches, trigger.late, trigger.unreadable) for trigger in told] == [({"q": 200}, 100, 0)] * 2


def test_a_task_that_was_tried_twice_is_there_once(tmp_path: Path) -> None:
    """What the first try wrote has a name that nobody gives out."""
    sink = FileSink(str(tmp_path), None, "jsonl", ["q"], collected=1, piece=1)
    sink.expect(None, "ms", 1)

    Told(sink, 0, rows_of(range(5)))
    write(sink, 0, rows_of(range(5)))
    assert [path.name for path in tmp_path.iterdir()] == ["matches-00000000-0000-0000.jsonl"]


def test_what_lanes_left_out_is_told_with_the_trigger(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path), None, "jsonl", ["q"])
    told: list[Trigger] = []
    sink.watchers.append(told.append)
    sink.expect(None, "ms", 2)
    lanes = [
        {"sampled": 3, "sampled out of q": 3, "shed": 1, "shed q.a": 1, "shed q/1.a": 1},
        {"sampled": 4, "sampled out of q": 4, "dropped": 2, "dropped of q": 2},
        {"events": 9},
    ]
    write(sink, 0, *(pa.Table.from_batches([counters_as_output(one)]) for one in lanes))
    write(sink, 1, rows_of(range(3)))
    whole = {"shed": 1, "sampled": 7, "dropped": 2, "shed q.a": 1, "sampled out of q": 7, "dropped of q": 2}
    assert [trigger.left_out for trigger in told] == [whole, {}]
    assert sink.counters["sampled out of q"] == 7


def test_few_matches_are_one_file_in_match_order(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path), None, "jsonl", ["q"])
    sink.expect(None, "ms", 2)
    write(sink, 0, rows_of(range(5)), rows_of(range(3, 9)))
    (file,) = tmp_path.iterdir()
    ends = [json.loads(line)["end"] for line in file.read_text().splitlines()]
    assert ends == sorted([*range(5), *range(3, 9)])
