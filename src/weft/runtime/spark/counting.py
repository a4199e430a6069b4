"""Count matches without building them, and collect them without building rows.

These are `count()` and `toArrow()` of the result of `weft.match`. Spark does not report to a Python task which of its
columns are unused. A number of matches needs neither their ids nor the events they include, so these are not read, not
sent and not built.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from weft.runtime.spark.batch import collect_lanes, match_lanes
from weft.runtime.spark.batching import unmeasured_batches
from weft.runtime.spark.compat import arrow_fields
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.noticing import Counts

Runs = Callable[[Job], DataFrame]
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def count_quickly(matches: DataFrame, job: Job, runs: Runs, counts: Counts) -> DataFrame:
    """Let `matches.count()` run a job that only counts; `runs` returns the runs of the input for a job.

    A frame that is cached is counted by Spark, so that `cache().count()` fills the cache.
    """
    usual = matches.count

    def count() -> int:
        if _is_cached(matches):
            return int(usual())
        reading = replace(job.reading, shown=frozenset())
        narrow = replace(job, shape=None, positions=False, is_anonymous=True, reading=reading)
        with counts.telling() as tell, unmeasured_batches(matches.sparkSession, narrow):
            values = totals_of(match_lanes(runs(narrow), narrow, counting=True).collect())
            tell(values)
        return int(values["matches"])

    matches.count = count
    return matches


def collect_quickly(matches: DataFrame, job: Job, runs: Runs, counts: Counts) -> DataFrame:
    """Let `matches.toArrow()` collect what lanes give as it is; cached matches are collected by Spark."""
    if not hasattr(matches, "toArrow") or not hasattr(matches, "_jdf"):
        return matches
    usual = matches.toArrow

    def collect() -> pa.Table:
        if _is_cached(matches) or matches.sparkSession.conf.get(_LARGE_TYPES, "false") == "true":
            return usual()
        with counts.telling() as tell:
            output = collect_lanes(runs(job), job)
            found = output.filter(pc.is_valid(output["query"]))
            rest = output.filter(pc.is_null(output["query"])).select(["query", "rejected", "reason"])
            rows = [{**row, "event": row["rejected"]} for row in rest.to_pylist()]
            tell({**totals_of(rows), "matches": len(found)})
        return found.select(matches.columns).cast(arrow_fields(matches.schema), safe=False)

    matches.toArrow = collect
    return matches


def totals_of(rows: Iterable[Any]) -> dict[str, Any]:
    """What lanes counted, added up: matches, unreadable events with one of the reasons, and their counters."""
    totals: Counter[str] = Counter(matches=0, unreadable=0)
    reasons: list[str] = []
    for row in rows:
        if row["query"] is not None:
            totals["matches"] += int(row["id"], 16)
        elif row["reason"] is not None:
            totals["unreadable"] += 1
            reasons.append(row["reason"])
        else:
            counted = json.loads(row["event"])
            totals.update({name: count for name, count in counted.items() if isinstance(count, int)})
    return {**totals, "reason": min(reasons, default=None)}


def _is_cached(frame: DataFrame) -> bool:
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)
