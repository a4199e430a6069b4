"""What an event costs at each stage of a batch on Spark, from which docs/scaling.md predicts larger inputs.

Stages of tasks are measured in this process, one after the other; what Spark adds (rows from the JVM, fixed costs) by
jobs of several sizes. The prediction for the largest of them, made from the others, is compared with its run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.measure import Row, row
from benchmarks.spark import tree_cpu, tree_cpu_seconds, write_events

ROWS = 8_000_000
LANES, MANY = 2, 64
QUERY = """SELECT * FROM S WHERE A AS a ; B AS b ; A AS c FILTER a[val > 0.5] AND b[val > 0.5] AND c[val > 0.9]
PARTITION BY [key] WITHIN 3000 MILLISECONDS"""


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """The coefficients (`part` "stages"), and jobs of several sizes ("sizes"); on request "larger" ones."""
    count = max(200_000, int(ROWS * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "events.parquet")
        found: list[Row] = []
        if part in (None, "stages"):
            write_events(path, count)
            found += _stages(path, count)
        if part in (None, "sizes"):
            found += _sizes(folder, count)
        if part == "larger":
            found += _larger(folder, count)
        return found


def _stages(path: str, count: int) -> Iterator[Row]:
    """CPU per event in each stage, and what is shuffled."""
    few, many, counted = _Stages(path, LANES), _Stages(path, MANY), _Stages(path, LANES, positions=True)
    yield row("scan (Arrow)", few.scan / count * 1e6, "CPU µs/event")
    yield row("order, classify, pack", (few.pack - few.scan) / count * 1e6, "CPU µs/event")
    yield row("shuffle", few.bytes / count, "bytes/event")
    yield row("unpack", few.unpack / count * 1e6, "CPU µs/event")
    yield row("match and results", (few.match - few.unpack) / count * 1e6, "CPU µs/event")
    yield row("count positions", (counted.pack - few.pack + counted.order) / count * 1e6, "CPU µs/event")
    yield row("a lane", (many.match + many.pack - few.match - few.pack) / (MANY - LANES) * 1e3, "CPU ms/lane")


class _Stages:
    """CPU seconds of the tasks of a job, stage by stage, in this process."""

    def __init__(self, path: str, lanes: int, *, positions: bool = False) -> None:
        from weft.connectors.files import READERS
        from weft.runtime.spark.files.batches import Files, pack_pieces, pieces_of, plan_tasks, read
        from weft.runtime.spark.lanes.ordering import order_runs
        from weft.runtime.spark.lanes.ranges import ranged_by_files
        from weft.runtime.spark.lanes.worker import match_runs

        job = ranged_by_files(_job(lanes, positions), Files(((path, "parquet", {}),), READERS), LANES)
        pieces = pieces_of(path, "parquet", job.reading, {})
        tasks = plan_tasks(pieces, LANES)
        numbers = [pa.record_batch({"id": [number]}) for number in range(len(tasks))]
        self.scan, _ = _timed(lambda: [chunk.length for piece in pieces for chunk in read(piece, READERS, job.reading)])
        self.pack, runs = _timed(lambda: list(pack_pieces(iter(numbers), tasks, READERS, job)))
        self.bytes = sum(batch.nbytes for batch in runs)
        self.order = 0.0
        if job.counts_by_range:
            rows = _sorted(runs)
            self.order, runs = _timed(lambda: list(order_runs(iter(rows), job)))
            self.bytes += sum(batch.nbytes for batch in runs)
        rows = _sorted(runs)
        self.unpack, _ = _timed(lambda: list(match_runs(iter(rows), replace(job, empty=True))))
        self.match, _ = _timed(lambda: list(match_runs(iter(rows), job)))


def _job(lanes: int, positions: bool) -> Any:
    from weft.languages import compile_text
    from weft.optimizer.pipeline import optimize
    from weft.plan.planner import plan
    from weft.runtime.reading.order import Reading
    from weft.runtime.spark.jobs.job import job_of

    chosen = plan(optimize(compile_text(QUERY, language="ceql")[0]), strategy="key", lanes=lanes)
    return job_of(chosen, Reading(), lanes, positions=positions)


def _sorted(runs: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Rows as Spark brings them to tasks: by lane and first event, those without events in front."""
    table = pa.Table.from_batches(runs)
    empty = pc.is_null(table["first"])
    table = table.append_column("filled", pc.invert(empty))
    by = [(name, "ascending") for name in ("lane", "filled", "first", "source", "part", "chunk")]
    return table.sort_by(by).drop_columns("filled").to_batches()


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time of three runs, and what the last returned."""
    best, found = float("inf"), None
    for _ in range(3):
        before = time.process_time()
        found = work()
        best = min(best, time.process_time() - before)
    return best, found


def _ways() -> dict[str, Callable[[str], Any]]:
    """Jobs by the way in which they read a file."""
    import weft
    from weft.runtime.spark.session import spark_session

    session, program = spark_session(), weft.compile(QUERY)
    return {
        "path": lambda path: weft.match(path, program, lanes=LANES).toArrow(),
        "frame": lambda path: weft.match(session.read.parquet(path), program, lanes=LANES, scan="spark").toArrow(),
    }


def _written(folder: str, sizes: Sequence[int]) -> list[str]:
    """Files of so many events."""
    paths = [str(Path(folder) / f"{size}.parquet") for size in sizes]
    for path, size in zip(paths, sizes, strict=True):
        write_events(path, size)
    return paths


def _larger(folder: str, count: int) -> Iterator[Row]:
    """Single jobs of an eighth, a half, all of the events, and four times as many; the first two predict the others.

    A frame that Spark scans stops at all of them.
    """
    sizes = [count // 8, count // 2, count, 4 * count]
    paths = _written(folder, sizes)
    for name, work in _ways().items():
        work(paths[0])  # starts Spark and its workers, compiles
        jobs = list(zip(sizes, paths, strict=True))[: None if name == "path" else -1]
        found = []
        for size, path in jobs:
            before, began = tree_cpu(), time.perf_counter()
            work(path)
            found.append(tree_cpu() - before)
            slope = (found[1] - found[0]) / (sizes[1] - sizes[0]) if len(found) > 1 else 0.0
            ratio = found[-1] / (found[0] + slope * (size - sizes[0])) if len(found) > 2 else None
            seconds = f"{name}: {size:,} events ({time.perf_counter() - began:.1f} s passed)"
            yield row(seconds, found[-1], "CPU s", "" if ratio is None else "predicted", ratio)


def _sizes(folder: str, count: int) -> Iterator[Row]:
    """Whole jobs of an eighth, a half and all of the events: of a path, and of a frame that Spark scans."""
    sizes = [count // 8, count // 2, count]
    paths = _written(folder, sizes)
    for name, work in _ways().items():
        seconds = tree_cpu_seconds([lambda path=path, work=work: work(path) for path in paths], repeats=2)
        slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
        fixed = seconds[0] - slope * sizes[0]
        yield row(f"{name}: fixed", fixed, "CPU s")
        yield row(f"{name}: whole job", slope * 1e6, "CPU µs/event")
        wanted = fixed + slope * sizes[2]
        yield row(f"{name}: {count:,} events", seconds[2], "CPU s", "predicted", seconds[2] / wanted)
