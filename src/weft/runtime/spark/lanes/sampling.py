"""Lanes for the heavy keys of a Spark frame, found in its first rows by a separate job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from weft.runtime.data import blocks
from weft.runtime.lanes.heavy import suited
from weft.runtime.spark.compat import to_arrow
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.frames import events_of, needed_columns

LOOKED_AT = 1 << 14  # rows; of each partition as many are computed, at most
# What rows pass through on the way from where they lie, when the first of them do not need the others.
_READ = ("Range", "LocalRelation", "LogicalRDD", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation")
_QUICK = frozenset((*_READ, "Project", "Filter", "Union"))


def suited_to_frame(job: Job, frame: DataFrame) -> Job:
    """The job with lanes for heavy keys, as the first rows of a frame show them."""
    if not job.has_keys:
        return job
    read, names = needed_columns(frame, frame.schema, job)
    for rows in to_arrow(read.limit(LOOKED_AT)).rename_columns(names).combine_chunks().to_batches():
        return replace(job, lanes=suited(job.lanes, blocks.concat(list(events_of(rows, job.reading)))))
    return job


def is_quick(frame: DataFrame) -> bool:
    """Whether the first rows of a frame are had without computing all of it, as far as Spark says how it will."""
    try:
        return all(str(node.nodeName()) in _QUICK for node in _nodes(frame._jdf.queryExecution().optimizedPlan()))
    except (AttributeError, TypeError, Py4JError):  # a frame of Spark Connect, or another Spark's classes
        return False


def _nodes(plan: Any) -> list[Any]:
    """A node of Spark's plan and all below it."""
    found = [plan]
    for node in found:  # which grows meanwhile
        children = node.children()
        found += [children.apply(number) for number in range(children.size())]
    return found
