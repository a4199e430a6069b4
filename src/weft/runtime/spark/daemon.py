"""The parent of Spark's Python workers: loads modules and kernels once, before the workers are forked from it."""

from __future__ import annotations

import gc

from pyspark import daemon


def preload() -> None:
    """Match two events: whatever a worker needs is in memory then, and shared by all of them."""
    from weft.algebra.patterns import Bind, Event, Sequence
    from weft.algebra.query import Program, Query, Window
    from weft.plan.planner import plan
    from weft.runtime.execution.matcher import Matcher
    from weft.runtime.lanes.routing import shares
    from weft.runtime.reading.order import read_events
    from weft.runtime.results.results import Results
    from weft.runtime.spark.jobs.job import job_of

    pattern = Sequence(Bind(Event("A"), "a"), Bind(Event("B"), "b"))
    query = Query("q", pattern, partition=(("k",),), window=Window("time", 1))
    chosen = plan(Program("ceql", (query,)))
    source = read_events([{"type": "A", "ts": 0, "k": 1}, {"type": "B", "ts": 1, "k": 1}])
    job = job_of(chosen, source.reading, 1)
    matcher = Matcher(chosen)
    for batch in source:
        list(shares(batch, job.lanes))
        list(Results(matcher, job.query_names, None).push(batch))


if __name__ == "__main__":
    try:
        preload()
        gc.collect()
        gc.freeze()  # workers would look at all of it after every task
    except Exception as problem:  # a worker that needs what is broken will say so where the user sees it
        import sys

        print(f"weft: kernels could not be loaded ahead: {problem}", file=sys.stderr)
    daemon.manager()
