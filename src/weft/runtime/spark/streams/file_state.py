"""Matching a stream with the state of lanes in files beside the query's checkpoint: to Spark the query is stateless."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from weft.errors import UsageError
from weft.runtime.spark.columns import RUN_COLUMNS, output_columns, told
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.trigger import TriggerWork
from weft.runtime.spark.shipping import mapped
from weft.runtime.spark.streams.starting import OPERATOR, place_of, watch_starts
from weft.runtime.spark.watermark import Lateness

LEFT_OUT = ("shed", "sampled", "dropped")  # by a budget, or where there is too much
AUTO, FILES, SPARK = "auto", "files", "spark"
STATES = (AUTO, FILES, SPARK)
_COUNTS = "weft_counts"  # a column with the counters of a lane's report
_STANDING = ("held", "state_bytes", "changes", "changes_refused")
_number = count(1)


def keeps_files(frame: DataFrame, state: str, lateness: Lateness) -> bool:
    """Whether the state of lanes is kept in files: all tasks must see the checkpoint's folder."""
    if state not in STATES:
        raise UsageError(f"state must be one of {', '.join(map(repr, STATES))}, not {state!r}")
    if state == SPARK:
        return False
    why = "the frame has a watermark of Spark's" if lateness.by_spark else None
    if not hasattr(frame, "_jdf"):
        why = "the frame is one of Spark Connect"
    if why is not None and state == FILES:
        raise UsageError(f"{why}, whose streams keep their state in Spark's store: leave out state='files'")
    return why is None and (state == FILES or _is_local(frame))


def _is_local(frame: DataFrame) -> bool:
    try:
        return str(frame.sparkSession.sparkContext.master).partition("[")[0] == "local"
    except PySparkException:
        return False


def by_lane(runs: DataFrame, job: Job) -> DataFrame:
    """The runs, with those of a lane in one partition: ids of lanes are chosen for that."""
    return told(runs.repartition(job.partitions or len(job.lanes), "lane"), RUN_COLUMNS)


def match_in_files(runs: DataFrame, job: Job, lateness: Lateness) -> tuple[DataFrame, list[Column]]:
    """The output of lanes, and the counts to observe of it."""
    number = next(_number)
    counters = ("events", *_STANDING, *LEFT_OUT, *job.left_out)
    work = TriggerWork(job, lateness, place=place_of(number))
    columns = StructType([*output_columns(job.shape), StructField(_COUNTS, ArrayType(LongType()))])
    task = partial(counted_rows, work=work, names=counters)
    output = mapped(by_lane(runs, job), task, columns, f"{OPERATOR}{number}")
    watch_starts(output)
    late = F.col("reason").startswith("late: ")
    totals = [F.coalesce(F.sum(F.get(_COUNTS, F.lit(at))), F.lit(0)).alias(n) for at, n in enumerate(counters)]
    counts = [F.count("query").alias("matches"), F.count_if(late).alias("late"), F.count_if(~late).alias("unreadable")]
    return output, counts + totals


def counted_rows(
    batches: Iterator[pa.RecordBatch], work: TriggerWork, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """In a task: the output of a trigger; rows of counters have these as numbers, too."""
    text = "event" if work.job.shape is None else "rejected"
    kind = pa.list_(pa.int64())
    for rows in work.rows(batches):
        counts = pa.nulls(len(rows), kind)
        if len(rows) == 1 and not rows["query"][0].is_valid and not rows["reason"][0].is_valid:
            found = json.loads(rows[text][0].as_py())
            found |= found.get("standing", {})
            counts = pa.array([[found.get(name) for name in names]], kind)
        fields = [*rows.schema, pa.field(_COUNTS, kind)]
        yield pa.RecordBatch.from_arrays([*rows.columns, counts], schema=pa.schema(fields))
