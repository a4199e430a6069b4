"""Matching files on Spark: the tasks read them with Arrow, so that no event becomes a row of the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from weft.errors import InputError
from weft.runtime.events import STREAM
from weft.runtime.order import Reading
from weft.runtime.spark.batch import check_columns, events_of, match_run_rows
from weft.runtime.spark.job import Job
from weft.runtime.spark.packing import gather, pack_chunk
from weft.runtime.spark.schema import RUN_DDL

TASK_ROWS = 4_000_000  # a task reads at least about this many rows, if there are enough cores' worth of tasks


@dataclass(frozen=True)
class RowGroups:
    """Consecutive row groups of a Parquet file."""

    path: str
    first: int
    last: int  # not included
    rows: int
    columns: tuple[str, ...]  # those that are needed


def match_parquet(session: SparkSession, paths: Sequence[str], job: Job) -> DataFrame:
    """Matches and rejects (rows of OUTPUT_DDL) of Parquet files; arrival order is that of the files, then of rows."""
    return match_run_rows(parquet_runs(session, paths, job), job)


def parquet_runs(session: SparkSession, paths: Sequence[str], job: Job) -> DataFrame:
    """The runs of Parquet files, as rows of RUN_DDL."""
    tasks = plan_tasks(row_groups(paths, job.reading), session.sparkContext.defaultParallelism)
    count = max(1, len(tasks))
    return session.range(0, count, 1, count).mapInArrow(partial(pack_parquet, tasks=tasks, job=job), RUN_DDL)


def row_groups(paths: Sequence[str], reading: Reading) -> list[RowGroups]:
    """Every row group of the files, in order."""
    groups: list[RowGroups] = []
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                names = file.schema_arrow.names
                check_columns(names, reading)
                sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        except FileNotFoundError:
            raise InputError(f"no such file: {path}") from None
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read as Parquet: {error}") from None
        columns = tuple(name for name in names if reading.needed is None or name in reading.needed)
        groups += [RowGroups(path, i, i + 1, rows, columns) for i, rows in enumerate(sizes)]
    return groups


def plan_tasks(groups: Sequence[RowGroups], cores: int) -> list[list[RowGroups]]:
    """Row groups shared out to tasks in their order, neighbours together: a few tasks per core, none tiny."""
    total = sum(group.rows for group in groups)
    wanted = max(cores, min(4 * cores, total // TASK_ROWS))
    share = max(1, -(-total // max(1, wanted)))
    tasks: list[list[RowGroups]] = []
    before = 0
    for group in groups:
        place = min(before // share, wanted - 1)
        before += group.rows
        while len(tasks) <= place:
            tasks.append([])
        tasks[place].append(group)
    return [task for task in tasks if task]


def pack_parquet(
    numbers: Iterator[pa.RecordBatch], tasks: Sequence[Sequence[RowGroups]], job: Job
) -> Iterator[pa.RecordBatch]:
    """In a task: read the row groups of the tasks with these numbers and pack their events."""
    for part in (number for batch in numbers for number in batch.column(0).to_pylist()):
        chunk = 0
        for groups in tasks[part : part + 1]:
            for table in gather(_read(groups, job.reading)):
                yield pack_chunk(events_of(table, job.reading), part, chunk, job)
                chunk += 1


def _read(groups: Sequence[RowGroups], reading: Reading) -> Iterator[pa.RecordBatch]:
    for group in groups:
        repeated = [name for name in (reading.type, STREAM) if name in group.columns]
        with pq.ParquetFile(group.path, memory_map=True, read_dictionary=repeated) as file:
            rows = range(group.first, group.last)
            yield from file.iter_batches(1 << 17, row_groups=rows, columns=list(group.columns), use_threads=False)
