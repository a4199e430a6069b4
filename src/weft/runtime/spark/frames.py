"""`weft.match`: a Spark DataFrame of events (batch or streaming) or files in, a Spark DataFrame of matches out."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.batch import match_lanes, run_frame
from weft.runtime.spark.files import Files, file_runs
from weft.runtime.spark.job import job_of
from weft.runtime.spark.session import cores, spark_session
from weft.runtime.spark.streaming import match_stream, observed

MATCH_COLUMNS = ("query", "id", "start", "end", "positions", "bindings", "event")


def match_frame(
    frame: DataFrame,
    program: Program,
    *,
    time: str = "ts",
    type: str = "type",
    order: tuple[str, ...] = (),
    lanes: int | None = None,
    delay: int | None = None,
    rejects: bool = False,
) -> DataFrame:
    """The matches of a program in a DataFrame, as rows of MATCH_DDL.

    `lanes`: over how many tasks the keys of partitioned queries are spread; as many as cores unless it is said.
    `delay`: how many ticks an event of a stream may come after later ones, if the frame has no watermark.
    `rejects`: also give the events that took no part, as rows with the `reason` in one more column. They are
    counted in any case: in a stream's progress, and for a batch in the result's `counts.get` after its first action.
    """
    session = frame.sparkSession
    chosen = plan(program)
    reading = Reading(time, type, time_unit=program.time_unit, order=order)
    check_lanes(lanes)
    if frame.isStreaming:
        partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
        shares = lanes or min(cores(session), partitions)
        job = job_of(chosen, reading, shares, partitions=partitions, streaming=True)
        return _shown(match_stream(frame, job, delay), rejects=rejects)
    if delay is not None:
        raise UsageError("`delay` is for streams: a whole input is sorted, whatever its order")
    job = job_of(chosen, reading, lanes or cores(session))
    return _counted(match_lanes(run_frame(frame, job), job), rejects=rejects)


def match_files(
    files: Files,
    program: Program,
    *,
    time: str = "ts",
    type: str = "type",
    order: tuple[str, ...] = (),
    lanes: int | None = None,
    rejects: bool = False,
) -> DataFrame:
    """The matches of a program in files, which the tasks read themselves; see `match_frame`."""
    check_lanes(lanes)
    session = spark_session()
    reading = Reading(time, type, time_unit=program.time_unit, order=order)
    job = job_of(plan(program), reading, lanes or cores(session))
    return _counted(match_lanes(file_runs(session, files, job), job), rejects=rejects)


def check_lanes(lanes: int | None) -> None:
    """Refuse a number of lanes that cannot be."""
    if lanes is not None and lanes < 1:
        raise UsageError(f"there must be at least one lane, not {lanes}")


def _counted(output: DataFrame, *, rejects: bool) -> DataFrame:
    """What is shown of a batch, which carries the counts of matches and of events that could not be read."""
    counts = Observation()
    shown = _shown(observed(output, counts), rejects=rejects)
    shown.counts = counts
    return shown


def _shown(output: DataFrame, *, rejects: bool) -> DataFrame:
    """Matches, and rejects if they are asked for, without what lanes say of themselves."""
    if rejects:
        return output.where(F.col("query").isNotNull() | F.col("reason").isNotNull())
    return output.where(F.col("query").isNotNull()).select(*MATCH_COLUMNS)
