"""Bounds of the time ranges in which positions are counted: from the statistics of Parquet files, or from a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from weft.runtime.data import blocks
from weft.runtime.data.events import Int64s
from weft.runtime.reading.kinds import ticks_of
from weft.runtime.reading.order import Reading
from weft.runtime.reading.times import END, START
from weft.runtime.spark.columns import quoted
from weft.runtime.spark.compat import to_arrow
from weft.runtime.spark.files.batches import Files
from weft.runtime.spark.files.scans import UnknownScanError, scan_of
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.ordering import EVENTS_OF_A_RANGE, bounds_of
from weft.runtime.spark.packing.frames import events_of
from weft.runtime.spark.session import cores

_SAMPLED = 0.001  # of the rows of a frame whose times nothing tells
_SMALL = 1 << 24  # bytes, as Spark estimates them: one range is enough
_POINT = 1 << 12  # rows of a file for each time of the sample


def ranged_by_files(job: Job, files: Files, least: int) -> Job:
    """The job with time ranges for files; Parquet says its times, other formats have one range."""
    if not job.counts_by_range:
        return job
    return _ranged(job, [(path, _time(job.reading, ())) for path, form, _ in files.paths if form == "parquet"], least)


def ranged_by_frame(job: Job, frame: DataFrame) -> Job:
    """Return the job with time ranges for a frame: by the files that it reads, else by a sample (a separate job)."""
    if not job.counts_by_range:
        return job
    least = cores(frame.sparkSession)
    column = _time(job.reading, frame.columns)
    with suppress(UnknownScanError, OSError, pa.ArrowException, UnicodeError):
        scan = scan_of(frame)
        return _ranged(job, [(path, scan.columns[column]) for path in scan.paths], least)
    if _is_small(frame):
        return job
    names = [name for name in (job.reading.time, START, END, job.reading.type) if name in frame.columns]
    rows = to_arrow(frame.select(*map(quoted, names)).sample(_SAMPLED, seed=1)).combine_chunks()
    reading = Reading(job.reading.time, job.reading.type, time_unit=job.reading.time_unit)
    ends = [batch.ends for part in rows.to_batches() for batch in events_of(part, reading)]
    sample = np.concatenate([blocks.empty().ends, *ends])
    return replace(job, bounds=bounds_of(sample, int(len(sample) / _SAMPLED), least))


def _time(reading: Reading, names: Iterable[str]) -> str:
    """The column that says when events end."""
    return END if END in names else reading.time


def _is_small(frame: DataFrame) -> bool:
    try:
        size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        return int(size.toString()) < _SMALL
    except (AttributeError, TypeError, Py4JError):  # a frame of Spark Connect, or another Spark's classes
        return False


def _ranged(job: Job, columns: Iterable[tuple[str, str]], least: int) -> Job:
    """The job with ranges by columns of times in Parquet files."""
    found = [_times(path, name, job.reading.time_unit) for path, name in columns]
    rows = sum(count for count, _ in found)
    if rows < EVENTS_OF_A_RANGE // 2 or any(times is None for _, times in found):
        return job
    sample = np.concatenate([times for _, times in found if times is not None])
    return replace(job, bounds=bounds_of(sample, rows, least))


def _times(path: str, name: str, time_unit: str) -> tuple[int, Int64s | None]:
    """How many rows a file has, and times that are spread as theirs; None if its statistics do not tell."""
    with pq.ParquetFile(path) as file:
        place = file.schema_arrow.get_field_index(name)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        rows = sum(group.num_rows for group in groups)
        leaf = next((at for at in range(len(file.schema)) if file.schema.column(at).path == name), None)
        if place < 0 or leaf is None:
            return rows, None
        kind = file.schema_arrow.field(place).type
        told = [(group.column(leaf).statistics, group.num_rows) for group in groups if group.num_rows]
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        return rows, None
    if any(known is None or not known.has_min_max for known, _ in told):
        return rows, None
    return rows, np.concatenate([blocks.empty().ends, *_spread(told, kind, time_unit)])


def _spread(told: Iterable[tuple[pq.Statistics, int]], kind: pa.DataType, time_unit: str) -> Iterator[Int64s]:
    """For row groups with these statistics: times between their first and last."""
    for known, rows in told:
        bounds = pa.array([known.min, known.max], kind)
        ticks = ticks_of(bounds, time_unit) if pa.types.is_timestamp(kind) else bounds.cast(pa.int64())
        low, high = (int(tick) for tick in ticks.to_pylist())
        points = -(-rows // _POINT)
        yield low + (high - low) * np.arange(points) // points
