"""Matching a whole input on Spark: pack runs where the data is, shuffle blocks instead of rows, match lane by lane."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from weft.runtime.spark.columns import RUN_COLUMNS, output_columns, told
from weft.runtime.spark.compat import by_partition
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.jobs.lane_ids import numbers_for
from weft.runtime.spark.lanes.ordering import order_runs
from weft.runtime.spark.lanes.worker import count_runs, match_runs
from weft.runtime.spark.session import cores
from weft.runtime.spark.shipping import mapped

TASKS_PER_CORE = 2  # lanes share tasks beyond these: a task has a fixed cost


def match_lanes(runs: DataFrame, job: Job, *, counting: bool = False, tasks: int | None = None) -> DataFrame:
    """Bring each lane's runs to one task, ordered by their first event, and match (or count) there.

    `tasks`: how many there are for the lanes at most; unless it is said, as many as keep the cores busy.
    """
    if job.counts_by_range:
        ranges = len(job.bounds) + 1
        runs = mapped(_dealt(runs, ranges), partial(order_runs, job=job), RUN_COLUMNS, "weft_order")
    most = TASKS_PER_CORE * cores(runs.sparkSession) if tasks is None else tasks
    work = count_runs if counting else match_runs
    return mapped(
        _dealt(runs, min(most, len(job.lanes))), partial(work, job=job), output_columns(job.shape), "weft_match"
    )


def _dealt(runs: DataFrame, tasks: int) -> DataFrame:
    """The rows of lanes (or ranges), which are dealt out to tasks in turn, in order."""
    together = by_partition(runs, "lane", numbers_for(tasks))
    return told(together.sortWithinPartitions("lane", "first", "source", "part", "chunk"), RUN_COLUMNS)
