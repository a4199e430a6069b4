"""Matching a stream on Spark: the same runs and lanes as in batch, with each lane's state in Spark's state store."""

from __future__ import annotations

import warnings
from itertools import count

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.errors import UsageError
from weft.runtime.spark.batch import run_frame
from weft.runtime.spark.job import Job
from weft.runtime.spark.lanes.processor import PACKED_DDL, LaneProcessor, unpack_output
from weft.runtime.spark.schema import OUTPUT_DDL
from weft.runtime.spark.session import STREAMING_SETTINGS
from weft.runtime.spark.watermark import Lateness

_observed = count(1)  # two observations of one query must not have one name
_WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark


def match_stream(frame: DataFrame, job: Job, delay: int | None = None) -> DataFrame:
    """Matches and rejects (rows of OUTPUT_DDL) of a streaming DataFrame.

    An event waits until the watermark has passed its end: Spark's, if the frame has one on its time column,
    else the largest time seen less `delay` ticks. Arrival order is that of triggers, partitions and rows.
    """
    lateness = lateness_of(frame, job, delay)
    return match_run_stream(run_frame(frame, job), job, lateness)


def match_run_stream(runs: DataFrame, job: Job, lateness: Lateness) -> DataFrame:
    """Matches and rejects of a stream of runs."""
    prepare(runs.sparkSession, len(job.lanes))
    packed = runs.groupBy("lane").transformWithState(
        statefulProcessor=LaneProcessor(job, lateness),
        outputStructType=PACKED_DDL,
        outputMode="append",
        timeMode="EventTime" if lateness.by_spark else "None",
    )
    return observed(packed.mapInArrow(unpack_output, OUTPUT_DDL))


def observed(output: DataFrame, counts: Observation | None = None) -> DataFrame:
    """The same rows, counted: in `counts`, else in a stream's progress as `weft` (`weft_2` …) of `observedMetrics`."""
    number = next(_observed)
    late = F.col("reason").startswith("late: ")
    return output.observe(
        counts or ("weft" if number == 1 else f"weft_{number}"),
        F.count("query").alias("matches"),
        F.count_if(late).alias("late"),
        F.count_if(~late).alias("unreadable"),
    )


def lateness_of(frame: DataFrame, job: Job, delay: int | None) -> Lateness:
    """Whether Spark's watermark decides, or our own."""
    reading = job.reading
    watched = [field.name for field in frame.schema if _WATERMARK in (field.metadata or {})]
    if not watched:
        if delay is not None and delay < 0:
            raise UsageError(f"delay must not be negative, and it is {delay}")
        return Lateness(delay or 0, reading.time_unit)
    wanted = reading.time if reading.time in frame.columns else "end"
    if wanted not in watched:
        raise UsageError(
            f"the watermark is on {watched[0]!r}, but the time of events is in {wanted!r}: "
            f"use frame.withWatermark({wanted!r}, …)"
        )
    if delay is not None:
        raise UsageError("the frame has a watermark already: leave out `delay`")
    return Lateness(None, reading.time_unit)


def prepare(session: SparkSession, lanes: int) -> None:
    """Set what the operator's state needs; point out a setting that would waste most of each trigger."""
    for name, value in STREAMING_SETTINGS.items():
        session.conf.set(name, value)
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    if partitions > 4 * lanes:
        warnings.warn(
            f"{lanes} lanes on {partitions} shuffle partitions: every trigger starts {partitions} tasks. "
            f'Before the query starts: spark.conf.set("spark.sql.shuffle.partitions", {lanes})',
            stacklevel=4,
        )
