"""Matching a stream on Spark: the same runs and lanes as in batch; state in files, or in Spark's state store."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from weft.errors import UsageError
from weft.runtime.reading.fronts import MAX_JUMP, jump_ticks
from weft.runtime.spark.columns import RUN_COLUMNS, output_columns, told
from weft.runtime.spark.connections.frames import KafkaFrame
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.kernels import send_kernels
from weft.runtime.spark.lanes.processor import NO_EVENTS, LaneProcessor, unpack_output
from weft.runtime.spark.packing.frames import run_frame
from weft.runtime.spark.session import own_python
from weft.runtime.spark.streams.file_state import AUTO, LEFT_OUT, keeps_files, match_in_files
from weft.runtime.spark.streams.listening import listener_of
from weft.runtime.spark.streams.starting import packed_column, watch_starts
from weft.runtime.spark.watermark import Lateness

COUNTED = ("matches", "late", "unreadable", "events", "held", "state_bytes", "changes", "changes_refused", *LEFT_OUT)
_observed = count(1)  # two observations of one query must not have one name
_WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark
_AFTER_MATCHING = "weft"  # likewise, if the column is that of matches


def match_stream(
    frame: DataFrame,
    job: Job,
    schema: StructType,
    delay: int | None = None,
    *,
    warns: bool = False,
    kafka: KafkaFrame | None = None,
    state: str = AUTO,
) -> DataFrame:
    """Matches and rejects (rows of OUTPUT_SCHEMA) of a streaming DataFrame.

    An event waits until the watermark has passed its end: Spark's, if the frame has one on its time column,
    else the largest time seen less `delay` ticks. Arrival order is that of triggers, partitions and rows.
    `warns`: warn about rejects while the stream runs. `kafka`: the frame has Kafka's records.
    `state`: where lanes keep it.
    """
    lateness = lateness_of(schema, job, delay) if kafka is None else kafka.lateness(job, delay)
    job = replace(job, jump=lateness.jump)
    runs = run_frame(frame, job, schema) if kafka is None else kafka.runs(job)
    number = next(_observed)
    name = "weft" if number == 1 else f"weft_{number}"
    if warns and hasattr(frame, "_jdf"):  # of Spark Connect the progress tells
        listener_of(frame.sparkSession).names.add(name)
    if keeps_files(frame, state, lateness):
        output, counts = match_in_files(runs, job, lateness)
        return output.observe(name, *counts)
    packed = packed_run_stream(runs, job, lateness)
    with own_python(frame.sparkSession):
        output = packed.mapInArrow(unpack_output, output_columns(job.shape))
    return observed(with_watermark(output, job) if lateness.by_spark else output, name, left_out=job.left_out)


def packed_run_stream(runs: DataFrame, job: Job, lateness: Lateness) -> DataFrame:
    """The output of lanes with their state in Spark's store, many rows packed into each."""
    column = packed_column(job.partitions or len(job.lanes))
    kind = StructType([StructField(column, BinaryType())])
    with own_python(runs.sparkSession):
        whole = told(runs.withColumn("first", F.coalesce("first", F.lit(NO_EVENTS))), RUN_COLUMNS)
        packed = whole.groupBy("lane").transformWithStateInPandas(
            statefulProcessor=LaneProcessor(job, lateness, column, send_kernels(runs.sparkSession)),
            outputStructType=kind,
            outputMode="append",
            timeMode="EventTime" if lateness.by_spark else "None",
        )
    watch_starts(packed)
    return told(packed, kind)


def with_watermark(output: DataFrame, job: Job) -> DataFrame:
    """The same rows, with Spark's watermark on the end of matches: downstream operators see the progress of time.

    In one trigger the operator gives the matches whose end the watermark has passed since the trigger before, so none
    is late for an operator that comes after it.
    """
    watermark = {_WATERMARK: 0, _AFTER_MATCHING: True}
    names = output_columns(job.shape).names
    columns = [F.col("end").alias("end", metadata=watermark) if name == "end" else name for name in names]
    return output.select(*columns)


def observed(output: DataFrame, counts: Observation | str, *more: Column, left_out: Sequence[str] = ()) -> DataFrame:
    """The same rows, counted: in an observation, or under a name among the `observedMetrics` of a stream's progress.

    Besides matches, late and unreadable events: those taken, those that wait for the watermark, the bytes of state and
    what was left out within limits, by query, too, in counters of these names; and `more`.
    """
    late = F.col("reason").startswith("late: ")
    told = F.when(F.col("query").isNull() & F.col("reason").isNull(), F.col(_told(output)))

    def total(path: str) -> Column:
        return F.coalesce(F.sum(F.get_json_object(told, path).cast("bigint")), F.lit(0))

    counters = F.from_json(told, "map<string,bigint>")

    def counter(name: str) -> Column:
        return F.coalesce(F.sum(F.try_element_at(counters, F.lit(name))), F.lit(0)).alias(name)

    return output.observe(
        counts,
        F.count("query").alias("matches"),
        F.count_if(late).alias("late"),
        F.count_if(~late).alias("unreadable"),
        total("$.events").alias("events"),
        total("$.standing.held").alias("held"),
        total("$.standing.state_bytes").alias("state_bytes"),
        total("$.standing.changes").alias("changes"),
        total("$.standing.changes_refused").alias("changes_refused"),
        *(counter(name) for name in (*LEFT_OUT, *left_out)),
        *more,
    )


def _told(output: DataFrame) -> str:
    """The column that has what lanes say besides matches."""
    return "rejected" if "rejected" in output.columns else "event"


def lateness_of(schema: StructType, job: Job, delay: int | None) -> Lateness:
    """Whether Spark's watermark decides, or our own; `schema` is the frame's."""
    reading = job.reading
    watched = [field.name for field in schema if _WATERMARK in (field.metadata or {})]
    if not watched:
        if delay is not None and delay < 0:
            raise UsageError(f"delay must not be negative, and it is {delay}")
        if delay is None:
            warnings.warn(
                "the stream has no watermark: an event that a trigger brings after later ones of earlier triggers is "
                "late and takes no part (`late` in the stream's progress counts them). Say how late events may be: "
                f"frame.withWatermark({reading.time!r}, …), or delay=… in ticks",
                stacklevel=5,
            )
        return Lateness(delay or 0, reading.time_unit, jump=jump_ticks(MAX_JUMP, reading.time_unit))
    wanted = reading.time if reading.time in schema.names else "end"
    if wanted not in watched:
        raise UsageError(
            f"the watermark is on {watched[0]!r}, but the time of events is in {wanted!r}: "
            f"use frame.withWatermark({wanted!r}, …)"
        )
    if delay is not None:
        raise UsageError("the frame has a watermark already: leave out `delay`")
    follows = any(_AFTER_MATCHING in (field.metadata or {}) for field in schema if field.name == wanted)
    return Lateness(None, reading.time_unit, after_matching=follows)
