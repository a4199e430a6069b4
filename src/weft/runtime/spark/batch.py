"""Matching a whole input on Spark: pack runs where the data is, shuffle blocks instead of rows, match lane by lane."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from weft.runtime.data.blocks import unpacked_rows
from weft.runtime.spark.columns import RUN_COLUMNS, SENT_COLUMNS, output_columns, told
from weft.runtime.spark.compat import by_partition, to_arrow
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.jobs.lane_ids import numbers_for
from weft.runtime.spark.lanes.ordering import order_runs
from weft.runtime.spark.lanes.stages import first_stage, next_stage
from weft.runtime.spark.lanes.worker import count_runs, match_packed, match_runs
from weft.runtime.spark.schema import output_schema
from weft.runtime.spark.session import cores
from weft.runtime.spark.shipping import mapped

PACKED_COLUMNS = StructType([StructField("rows", BinaryType())])
TASKS_PER_CORE = 2  # lanes share tasks beyond these: a task has a fixed cost


def match_lanes(runs: DataFrame, job: Job, *, counting: bool = False, tasks: int | None = None) -> DataFrame:
    """Bring each lane's runs to one task, ordered by their first event, and match (or count) there.

    `tasks`: how many there are for the lanes at most; unless it is said, as many as keep the cores busy.
    """
    runs, most = _ordered(runs, job), _most_tasks(runs) if tasks is None else tasks
    if job.stages > 1:
        return _in_stages(runs, job, counting, most)
    work = count_runs if counting else match_runs
    return mapped(
        _dealt(runs, min(most, len(job.lanes))), partial(work, job=job), output_columns(job.shape), "weft_match"
    )


def collect_lanes(runs: DataFrame, job: Job) -> pa.Table:
    """Return all rows that lanes give; they pass the JVM as Arrow's bytes, not one by one."""
    schema = output_schema(job.shape)
    if job.stages > 1:
        return to_arrow(match_lanes(runs, job)).cast(schema)
    dealt = _dealt(_ordered(runs, job), min(_most_tasks(runs), len(job.lanes)))
    packed = mapped(dealt, partial(match_packed, job=job), PACKED_COLUMNS, "weft_match")
    return pa.Table.from_batches([unpacked_rows(bytes(row[0])) for row in packed.collect()], schema)


def _most_tasks(runs: DataFrame) -> int:
    return TASKS_PER_CORE * cores(runs.sparkSession)


def _ordered(runs: DataFrame, job: Job) -> DataFrame:
    """The runs, ordered in time ranges first if lanes need positions."""
    if not job.counts_by_range:
        return runs
    ranges = len(job.bounds) + 1
    return mapped(_dealt(runs, ranges), partial(order_runs, job=job), RUN_COLUMNS, "weft_order")


def _in_stages(runs: DataFrame, job: Job, counting: bool, tasks: int) -> DataFrame:
    """Match stage by stage: what lanes send, and results so far, are shuffled to the tasks of the next stage."""
    first = partial(first_stage, job=job, counting=counting)
    found = mapped(_dealt(runs, min(tasks, len(job.lanes))), first, SENT_COLUMNS, "weft_match")
    for stage in range(1, job.stages):
        lanes = sum(lane.stage == stage for lane in job.lanes)
        columns = SENT_COLUMNS if stage < job.stages - 1 else output_columns(job.shape)
        work = partial(next_stage, job=job, stage=stage, counting=counting)
        dealt = told(by_partition(found, "to", numbers_for(min(tasks, max(lanes, 1)))), SENT_COLUMNS)
        found = mapped(dealt, work, columns, f"weft_stage_{stage}")
    return found


def _dealt(runs: DataFrame, tasks: int) -> DataFrame:
    """The rows of lanes (or ranges), which are dealt out to tasks in turn, in order."""
    together = by_partition(runs, "lane", numbers_for(tasks))
    return told(together.sortWithinPartitions("lane", "first", "source", "part", "chunk"), RUN_COLUMNS)
