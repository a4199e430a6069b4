"""Count matches without building them: what `count()` does of a frame that `weft.match` returned.

Spark cannot tell a Python task which of its columns nobody reads. A number of matches needs neither their ids nor the
events they show, so these are not read, not sent and not built.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from weft.runtime.spark.batch import match_lanes
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.noticing import Counts

Runs = Callable[[Job], DataFrame]


def count_quickly(matches: DataFrame, job: Job, runs: Runs, counts: Counts) -> DataFrame:
    """Let `matches.count()` run a job that only counts; `runs` returns the runs of the input for a job.

    A frame that is cached is counted by Spark, so that `cache().count()` fills the cache.
    """
    usual = matches.count

    def count() -> int:
        if _is_cached(matches):
            return int(usual())
        narrow = replace(job, shape=None, positions=False, reading=replace(job.reading, shown=frozenset()))
        with counts.telling() as tell:
            values = totals_of(match_lanes(runs(narrow), narrow, counting=True).collect())
            tell(values)
        return int(values["matches"])

    matches.count = count
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
