"""What lanes cost on Spark: CPU of the whole process tree with few and with many lanes, from Parquet files.

A lane gets its own events only, so that all of them together cost the same however many there are. Positions are
counted in time ranges before. Lanes of a query without a key are slices of time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, row
from benchmarks.spark import tree_cpu_seconds, write_events

from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan

ROWS = 8_000_000
FEW, MANY = 2, 64
CONDITIONS = "FILTER a[val > 0.999] AND b[val > 0.999] AND c[val > 0.999]"
KEYED = f"SELECT * FROM S WHERE A AS a ; B AS b ; A AS c {CONDITIONS} PARTITION BY [key] WITHIN 1000000 MILLISECONDS"
SLICED = f"SELECT * FROM S WHERE A AS a ; B AS b ; A AS c {CONDITIONS} WITHIN 10000 MILLISECONDS"
CASES = {"with a key": (KEYED, "key", False), "without": (SLICED, "slice", False), "positions": (KEYED, "key", True)}


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """The CPU of many lanes against that of few; `part`: only one case."""
    count = max(100_000, int(ROWS * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "events.parquet")
        write_events(path, count)
        return [_compared(name, path) for name in CASES if part in (None, name)]


def _compared(name: str, path: str) -> Row:
    few, many = tree_cpu_seconds([_work(name, path, lanes) for lanes in (FEW, MANY)])
    return row(f"{MANY} lanes, {name}", many, "CPU s", f"{FEW} lanes", many / few, "<= 1.25")


def _work(name: str, path: str, lanes: int) -> Callable[[], object]:
    """Match in so many lanes."""
    from weft.connectors.files import READERS
    from weft.runtime.reading.order import Reading
    from weft.runtime.spark.batch import match_lanes
    from weft.runtime.spark.files.batches import Files, file_runs
    from weft.runtime.spark.jobs.job import job_of
    from weft.runtime.spark.lanes.ranges import ranged_by_files
    from weft.runtime.spark.session import cores, spark_session

    text, strategy, positions = CASES[name]
    chosen = plan(optimize(compile_text(text, language="ceql")[0]), strategy=strategy, lanes=lanes)
    job = job_of(chosen, Reading(), lanes, positions=positions)
    session, files = spark_session(), Files(((path, "parquet", {}),), READERS)
    job = ranged_by_files(job, files, cores(session))
    return lambda: match_lanes(file_runs(session, files, job), job).toArrow()
