"""Matching a whole input on Spark: pack runs where the data is, shuffle blocks instead of rows, match lane by lane."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.runtime.spark.columns import RUN_COLUMNS, output_columns, told
from weft.runtime.spark.compat import by_partition
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.worker import count_runs, match_runs
from weft.runtime.spark.shipping import mapped


def match_lanes(runs: DataFrame, job: Job, *, counting: bool = False) -> DataFrame:
    """Bring each lane's runs to one task, ordered by their first event, and match (or count) there."""
    places = {lane.id: place for place, lane in enumerate(job.lanes)}
    by_place = F.create_map(*(F.lit(number) for item in places.items() for number in item))
    together = by_partition(runs, len(places), by_place[F.col("lane")], F.col("lane"))
    ordered = told(together.sortWithinPartitions("lane", "first", "source", "part", "chunk"), RUN_COLUMNS)
    work = count_runs if counting else match_runs
    return mapped(ordered, partial(work, job=job), output_columns(job.shape), "weft_match")
