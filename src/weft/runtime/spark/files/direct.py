"""Direct scan: tasks read the Parquet files of a DataFrame with Arrow, so that no event becomes a row of the JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weft.runtime.data.events import STREAM
from weft.runtime.reading.chunks import arrow_chunk
from weft.runtime.reading.order import EventSource
from weft.runtime.spark.columns import RUN_COLUMNS
from weft.runtime.spark.files.batches import Piece, plan_tasks, repeated_texts
from weft.runtime.spark.files.scans import Scan, UnknownScanError, scan_of
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import CHUNK_ROWS, pack_part
from weft.runtime.spark.packing.filters import useful
from weft.runtime.spark.packing.frames import needed_names, run_frame
from weft.runtime.spark.session import cores
from weft.runtime.spark.shipping import mapped

AUTO, SPARK = "auto", "spark"
SCANS = (AUTO, SPARK)
DIRECT = "direct scan"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")  # times in another calendar
_LENIENT = ("ignoreCorruptFiles", "ignoreMissingFiles")
_probed: WeakKeyDictionary[object, dict[str, bool]] = WeakKeyDictionary()  # by Spark context: folders all can open


@dataclass(frozen=True)
class DirectRead:
    """How a task reads a piece of a file: the columns by their names in the frame, with its types, and which rows."""

    columns: Mapping[str, str]
    types: pa.Schema  # of the files' columns that are read
    condition: pc.Expression | None
    repeated: tuple[str, ...]  # columns with few values

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows of some row groups."""
        with _opened(piece.path, [*self.repeated, *piece.repeated]) as file:
            for batch in file.iter_batches(
                CHUNK_ROWS, row_groups=piece.groups, columns=self.types.names, use_threads=False
            ):
                yield self._as_in_frame(batch)

    def _as_in_frame(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = {field.name: _cast(batch.column(field.name), field.type) for field in self.types}
        if self.condition is not None:
            table = pa.table(arrays).filter(self.condition).combine_chunks()
            arrays = {name: _only_chunk(table[name]) for name in table.schema.names}
        return pa.RecordBatch.from_arrays([arrays[own] for own in self.columns.values()], names=list(self.columns))


def frame_runs(frame: DataFrame, job: Job, schema: StructType, scan: str = AUTO) -> tuple[DataFrame, str]:
    """The runs of a frame, as rows of RUN_DDL, and how its rows come to the tasks."""
    why = "Spark's scan, as asked for"
    if scan != SPARK:
        try:
            return direct_runs(frame, job, schema), DIRECT
        except UnknownScanError as problem:
            why = f"Spark's scan: {problem}"
        except (OSError, pa.ArrowException, UnicodeError) as problem:
            why = f"Spark's scan: a file cannot be read with Arrow: {problem}"
    return run_frame(useful(frame, job, schema), job, schema), why


def direct_runs(frame: DataFrame, job: Job, schema: StructType) -> DataFrame:
    """The runs of a frame that is a plain scan; raises UnknownScanError for any other."""
    scan = scan_of(frame)
    session = frame.sparkSession
    _check_session(session, scan)
    known = scan.types.names
    columns = {name: scan.columns[name] for name in needed_names(schema.names, job) if scan.columns[name] in known}
    read = DirectRead(
        columns,
        pa.schema([field for field in scan.types if field.name in {*columns.values(), *scan.tested}]),
        scan.condition,
        tuple(columns[name] for name in (job.reading.type, STREAM) if name in columns),
    )
    untested = pa.schema([field for field in read.types if field.name not in scan.tested])
    pieces = [piece for path in scan.paths for piece in _pieces(path, read.types, untested)]
    tasks = plan_tasks(pieces, cores(session))
    count = max(1, len(tasks))
    work = partial(pack_scan, tasks=tasks, read=read, job=job)
    return mapped(session.range(0, count, 1, count), work, RUN_COLUMNS, "weft_direct_scan")


def pack_scan(
    numbers: Iterator[pa.RecordBatch], tasks: Sequence[Sequence[Piece]], read: DirectRead, job: Job
) -> Iterator[pa.RecordBatch]:
    """In a task: read the pieces of the tasks with these numbers and pack their events."""
    for part in (number for batch in numbers for number in batch.column(0).to_pylist()):
        batches = (rows for pieces in tasks[part : part + 1] for piece in pieces for rows in read.batches(piece))
        chunks = (arrow_chunk(rows, job.reading.time_unit) for rows in batches)
        yield from pack_part((EventSource(partial(list, (chunk,)), job.reading) for chunk in chunks), job, part)


def _pieces(path: str, types: pa.Schema, untested: pa.Schema) -> list[Piece]:
    """The row groups of a file, if its columns are those of the frame; `untested`: those that no filter reads."""
    with _opened(path) as file:
        own, metadata = file.schema_arrow, file.metadata
        old_times = {column.path for column in _leaves(file.schema) if column.physical_type == "INT96"}
        if any(key in (own.metadata or {}) or key in (metadata.metadata or {}) for key in _LEGACY):
            raise UnknownScanError(f"{path} has times in the calendar of Spark 2")
        for field in types:
            place = own.get_field_index(field.name)
            if place < 0 or not _reads_as(own.field(place).type, field.type, instant=field.name in old_times):
                raise UnknownScanError(f"the column {field.name!r} of {path} is not as in the frame")
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        Piece(
            path,
            "parquet",
            group.num_rows,
            range(number, number + 1),
            repeated=repeated_texts(untested, group),
        )
        for number, group in enumerate(groups)
        if group.num_rows
    ]


def _opened(path: str, repeated: Sequence[str] = ()) -> pq.ParquetFile:
    """A file, with the times that Spark writes unless it is told otherwise (INT96) as Spark has them."""
    return pq.ParquetFile(path, memory_map=True, read_dictionary=list(repeated), coerce_int96_timestamp_unit="us")


def _leaves(schema: pq.ParquetSchema) -> list[pq.ColumnSchema]:
    return [schema.column(number) for number in range(len(schema))]


def _reads_as(own: pa.DataType, wanted: pa.DataType, *, instant: bool) -> bool:
    """Whether Arrow gives values of a file's type that are Spark's, when they are cast; `instant`: old times in UTC."""
    if pa.types.is_timestamp(own) and pa.types.is_timestamp(wanted):
        return own.unit in ("ms", "us") and (instant or own.tz is not None) == (wanted.tz is not None)
    if pa.types.is_large_string(own) and pa.types.is_string(wanted):
        return True
    if pa.types.is_dictionary(own):
        return bool(own.value_type == wanted)
    return bool(own == wanted)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind or (pa.types.is_dictionary(array.type) and array.type.value_type == kind):
        return array
    return array.cast(kind)


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _check_session(session: SparkSession, scan: Scan) -> None:
    """Make sure that the workers can open the files: on this machine they can, elsewhere some are asked."""
    try:
        context = session.sparkContext
    except PySparkException as error:
        raise UnknownScanError("a session of Spark Connect reads its own files") from error
    if any(str(session.conf.get(f"spark.sql.files.{name}", "false")).lower() == "true" for name in _LENIENT):
        raise UnknownScanError("the session reads over broken or missing files")
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        return
    folder = str(Path(scan.paths[0]).parent)
    known = _probed.setdefault(context, {})
    if folder not in known:
        path, count = scan.paths[0], cores(session)
        known[folder] = all(context.range(0, count, 1, count).map(lambda _: os.access(path, os.R_OK)).collect())
    if not known[folder]:
        raise UnknownScanError(f"not all workers can open {scan.paths[0]}")
