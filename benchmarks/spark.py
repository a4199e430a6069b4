"""Spark: rows per CPU second (JVM and Python together) from Parquet, against the same work done plainly."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import row

from weft.algebra.query import Program
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan

ROWS = 8_000_000
LANES = 2
QUERY = """
SELECT * FROM S WHERE A AS a ; B AS b ; A AS c
FILTER a[val > 0.999] AND b[val > 0.999] AND c[val > 0.999]
PARTITION BY [key] WITHIN 1000000 EVENTS
"""
SLICED = """
SELECT * FROM S WHERE A AS a ; B AS b ; A AS c
FILTER a[val > 0.999] AND b[val > 0.999] AND c[val > 0.999] WITHIN 10000 MILLISECONDS
"""


def run(scale: float = 1.0) -> list[dict[str, object]]:
    """Figures for files and for DataFrames: with matching, with an empty kernel, and done plainly."""
    rows = max(100_000, int(ROWS * scale))
    program = optimize(compile_text(QUERY, language="ceql")[0])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "events.parquet")
        write_events(path, rows)
        speed = {name: rows / tree_cpu_seconds(work) / 1e6 for name, work in cases(path, program).items()}
        sliced = compile_text(SLICED, language="ceql")[0]
        for name, work in cases(path, sliced, "slice").items():
            if name.startswith("files"):
                speed[f"{name}, slice"] = rows / tree_cpu_seconds(work) / 1e6
        stream = stream_speed(folder, max(20_000, rows // 8), program)
    return [
        row("stream of 100,000 keys, state store included", stream / 1e6, "M events/CPU s", goal=">= 0.3"),
        figure("files, matched, slice", speed, "files, empty kernel, slice", ">= 0.8"),
        figure("files, matched", speed, "files, empty kernel", ">= 0.8"),
        figure("files, empty kernel", speed, "plain", ">= 2.5"),
        figure("files, matched", speed, "plain", ">= 2.5"),
        figure("frame, matched", speed, "frame, empty kernel", ">= 0.8"),
        figure("frame, matched", speed, "plain", ">= 1"),
        figure("plain", speed, "plain", ""),
    ]


def figure(name: str, speed: dict[str, float], baseline: str, goal: str) -> dict[str, object]:
    """One row of the table."""
    return {
        "case": name,
        "value": round(speed[name], 3),
        "unit": "M rows/CPU s",
        "baseline": baseline,
        "ratio": round(speed[name] / speed[baseline], 3),
        "goal": goal,
    }


def stream_speed(folder: str, events: int, program: Program) -> float:
    """Events per CPU second of a stream with many keys, that many events to a trigger.

    The start of a stream, and the first trigger, are left out: what one file and five of them take is compared, after a
    run that warms Java up.
    """
    from weft.engines import continuous

    def seconds(name: str, files: int) -> float:
        work = Path(folder) / name
        (work / "in").mkdir(parents=True)
        for number in range(files):
            write_events(str(work / "in" / f"{number}.parquet"), events, keys=100_000, first=3 * events * number)
        places = {"sink": str(work / "out"), "checkpoint": str(work / "state")}
        options: dict[str, Any] = {**places, "until": "read", "files_per_trigger": 1, "lanes": LANES}
        before = _tree_cpu()
        run = continuous(program, [("S", str(work / "in"))], **options)
        run.start()
        run.wait()
        return _tree_cpu() - before

    seconds("warm", 2)
    few, many = seconds("few", 1), seconds("many", 5)
    return 4 * events / max(many - few, 1e-3)


def cases(path: str, program: Program, strategy: str = "key") -> dict[str, Callable[[], object]]:
    """The pipelines that are compared; all give few rows back."""
    from weft.connectors.files import READERS
    from weft.runtime.reading.order import Reading
    from weft.runtime.spark.batch import match_lanes, run_frame
    from weft.runtime.spark.files.batches import Files, file_runs
    from weft.runtime.spark.job import job_of
    from weft.runtime.spark.plain import plain_pipeline
    from weft.runtime.spark.session import LASTING_SETTINGS, spark_session

    session = spark_session(settings=LASTING_SETTINGS)  # the plain way leans on the JVM: let it be at its best
    chosen = plan(program, strategy=strategy)
    full, empty = (job_of(chosen, Reading(), LANES, empty=nothing) for nothing in (False, True))
    files = Files(((path, "parquet", {}),), READERS)

    def from_files(job: object) -> object:
        return match_lanes(file_runs(session, files, job), job).toArrow()

    def from_frame(job: object) -> object:
        return match_lanes(run_frame(session.read.parquet(path), job), job).toArrow()

    def plain() -> object:
        return plain_pipeline(session.read.parquet(path), "key", "ts", LANES).toArrow()

    return {
        "files, matched": lambda: from_files(full),
        "files, empty kernel": lambda: from_files(empty),
        "frame, matched": lambda: from_frame(full),
        "frame, empty kernel": lambda: from_frame(empty),
        "plain": plain,
    }


def write_events(path: str, rows: int, keys: int = 1000, first: int = 0) -> None:
    """Events in order of time, four types, a thousand keys, from a time on."""
    random = np.random.default_rng(1)
    table = {
        "ts": first + np.arange(rows) * 3 + random.integers(0, 3, rows),
        "type": pa.array(["A", "B", "C", "D"]).take(pa.array(random.integers(0, 4, rows))),
        "key": random.integers(0, keys, rows),
        "val": random.random(rows),
    }
    pq.write_table(pa.table(table), path, row_group_size=1 << 20)


def tree_cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU time of this process and all below it, of several runs after a first one."""
    work()
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        before = _tree_cpu()
        work()
        best = min(best, _tree_cpu() - before)
    return best


def _tree_cpu() -> float:
    """CPU seconds so far of this process and its descendants, ended ones included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = place.read_text()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(place.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[pid] for pid in mine if pid in ticks) / os.sysconf("SC_CLK_TCK")
