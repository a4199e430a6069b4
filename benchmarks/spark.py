"""Spark: rows per CPU second (JVM and Python together) from Parquet, against the same work done plainly."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import Row, row

from weft.algebra.query import Program
from weft.errors import UsageError, did_you_mean
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


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """All parts, or one: with matching, with an empty kernel, and done plainly."""
    if part is not None and part not in PARTS:
        raise UsageError(f"no part {part!r} of this benchmark; {did_you_mean(part, PARTS)}")
    rows = max(100_000, int(ROWS * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "events.parquet")
        write_events(path, rows)
        return [found for name, work in PARTS.items() if part in (None, name) for found in work(path, rows)]


def _files(path: str, rows: int) -> Iterator[Row]:
    speed = _speeds(path, rows, QUERY, "key", ("files, matched", "files, empty kernel", "plain"))
    yield figure("files, matched", speed, "files, empty kernel", ">= 0.8")
    yield figure("files, empty kernel", speed, "plain", ">= 2.5")
    yield figure("files, matched", speed, "plain", ">= 2.5")


def _slice(path: str, rows: int) -> Iterator[Row]:
    speed = _speeds(path, rows, SLICED, "slice", ("files, matched", "files, empty kernel"))
    yield figure("files, matched", speed, "files, empty kernel", ">= 0.8", " in slices")


def _frame(path: str, rows: int) -> Iterator[Row]:
    speed = _speeds(path, rows, QUERY, "key", ("frame, matched", "frame, empty kernel", "plain"))
    yield figure("frame, matched", speed, "frame, empty kernel", ">= 0.8")
    yield figure("frame, matched", speed, "plain", ">= 1")


def _stream(path: str, rows: int) -> Iterator[Row]:
    speed = stream_speed(str(Path(path).parent), max(20_000, rows // 8), _program(QUERY))
    yield row("stream of 100,000 keys, state store included", speed / 1e6, "M events/CPU s", goal=">= 0.3")


PARTS = {"files": _files, "slice": _slice, "frame": _frame, "stream": _stream}


def figure(name: str, speed: dict[str, float], baseline: str, goal: str, more: str = "") -> Row:
    """One row of the table."""
    return row(name + more, speed[name], "M rows/CPU s", baseline + more, speed[name] / speed[baseline], goal)


def _program(text: str) -> Program:
    return optimize(compile_text(text, language="ceql")[0])


def _speeds(path: str, rows: int, text: str, strategy: str, names: Sequence[str]) -> dict[str, float]:
    """Million rows per CPU second of pipelines by name, which run by turns."""
    known = cases(path, _program(text), strategy)
    seconds = tree_cpu_seconds([known[name] for name in names])
    return {name: rows / own / 1e6 for name, own in zip(names, seconds, strict=True)}


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
        before = tree_cpu()
        run = continuous(program, [("S", str(work / "in"))], **options)
        run.start()
        run.wait()
        return tree_cpu() - before

    seconds("warm", 2)
    few, many = seconds("few", 1), seconds("many", 5)
    return 4 * events / max(many - few, 1e-3)


def cases(path: str, program: Program, strategy: str = "key") -> dict[str, Callable[[], object]]:
    """The pipelines that are compared; all give few rows back."""
    from weft.connectors.files import READERS
    from weft.runtime.reading.order import Reading
    from weft.runtime.spark.batch import match_lanes
    from weft.runtime.spark.files.batches import Files, file_runs
    from weft.runtime.spark.jobs.job import job_of
    from weft.runtime.spark.packing.frames import run_frame
    from weft.runtime.spark.session import LASTING_SETTINGS, spark_session

    session = spark_session(settings=LASTING_SETTINGS)  # the plain way leans on the JVM: let it be at its best
    chosen = plan(program, strategy=strategy)
    full, empty = (job_of(chosen, Reading(), LANES, empty=nothing) for nothing in (False, True))
    files = Files(((path, "parquet", {}),), READERS)

    def from_files(job: object) -> object:
        return match_lanes(file_runs(session, files, job), job).toArrow()

    def from_frame(job: object) -> object:
        return match_lanes(run_frame(session.read.parquet(path), job), job).toArrow()

    def ignore(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    def plain() -> object:
        """Rows shuffled by key, sorted by time, and handed to an operator that looks at nothing."""
        rows = session.read.parquet(path).repartition(LANES, "key").sortWithinPartitions("ts")
        return rows.mapInArrow(ignore, "nothing int").toArrow()

    return {
        "files, matched": lambda: from_files(full),
        "files, empty kernel": lambda: from_files(empty),
        "frame, matched": lambda: from_frame(full),
        "frame, empty kernel": lambda: from_frame(empty),
        "plain": plain,
    }


def write_events(path: str, rows: int, keys: int = 1000, first: int = 0) -> None:
    """Events in order of time, four types, a thousand keys, from a time on."""
    pieces = range(0, rows, ROWS)
    with pq.ParquetWriter(path, _events(1, keys, first).schema) as file:
        for done in pieces:
            table = _events(min(ROWS, rows - done), keys, first + 3 * done)
            file.write_table(table, row_group_size=1 << 20)


def _events(rows: int, keys: int, first: int) -> pa.Table:
    random = np.random.default_rng(1)
    table = {
        "ts": first + np.arange(rows) * 3 + random.integers(0, 3, rows),
        "type": pa.array(["A", "B", "C", "D"]).take(pa.array(random.integers(0, 4, rows))),
        "key": random.integers(0, keys, rows),
        "val": random.random(rows),
    }
    return pa.table(table)


def tree_cpu_seconds(works: Sequence[Callable[[], object]], repeats: int = 3) -> list[float]:
    """The least CPU time of this process and all below it for each, of several runs by turns after a first one."""
    for work in works:
        work()
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for place, work in enumerate(works):
            gc.collect()
            before = tree_cpu()
            work()
            best[place] = min(best[place], tree_cpu() - before)
    return best


def tree_cpu() -> float:
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
