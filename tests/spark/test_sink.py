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
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import shape_of
from weft.runtime.spark.file_schema import columns_of_run
from weft.runtime.spark.file_work import FileWork
from weft.runtime.spark.job import job_of
from weft.runtime.spark.lanes.runs import run_rows_of
from weft.runtime.spark.lanes.state import LaneState
from weft.runtime.spark.schema import output_schema
from weft.runtime.spark.sink import FileSink
from weft.runtime.spark.source import Folder
from weft.runtime.spark.watermark import Lateness

PROGRAM = "SELECT a[v] WHERE A AS a ; B AS b WITHIN 9 EVENTS"


class Frame:
    """What a trigger gives, as far as a sink asks."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:
        return self._table


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
    sink.expect(shape, "ms")
    sink.write(Frame(output), 0)  # type: ignore[arg-type]
    (file,) = (tmp_path / "out").glob("*.parquet")
    written = pq.read_table(file)
    expected = weft.detect(table.slice(0, 2), PROGRAM).to_arrow()
    assert written.drop_columns(["bindings"]).to_pylist() == expected.drop_columns(["bindings"]).to_pylist()
    assert written.schema.field("event").type == expected.schema.field("event").type
    (reject,) = (tmp_path / "out" / "rejects").glob("*")
    assert json.loads(reject.read_text())["event"]["v"] in (3.0, "3.00")
    assert sink.counters["matches"] == sink.counters["unreadable"] == 1
