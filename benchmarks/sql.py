"""Six patterns by weft on Spark and by hand-written Spark SQL: CPU time of all processes, from Parquet to a count."""

from __future__ import annotations

import gc
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import Row, row
from benchmarks.spark import tree_cpu
from benchmarks.sql_tasks import TASKS, Task, payments, trades

from weft.errors import UsageError, did_you_mean

EVENTS = 4_000_000
FILES = 4
REPEATS = 3
SPARK_SCAN = "frame, Spark's scan"
WAYS = {"frame, direct scan": ">= 3", SPARK_SCAN: ">= 1.3", "path": ">= 3"}
Work = Callable[[], int]


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """Each pattern in a DataFrame, read in two ways, and in a path; a `part` is a pattern's number, from 1 on."""
    numbers = [str(number) for number, _ in enumerate(TASKS, 1)]
    if part is not None and part not in numbers:
        raise UsageError(f"no part {part!r} of this benchmark; {did_you_mean(part, numbers)}")
    chosen = TASKS if part is None else TASKS[int(part) - 1 : int(part)]
    count = max(10_000, int(EVENTS * scale))
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: str(Path(folder) / name) for kind, name in ((False, "trades"), (True, "payments"))}
        for kind in {task.payments for task in chosen}:
            write(paths[kind], payments(count) if kind else trades(count))
        return [found for task in chosen for found in compared(task, paths[task.payments], count)]


def write(folder: str, events: pa.Table) -> None:
    """Some Parquet files of events in a folder."""
    Path(folder).mkdir()
    share = -(-len(events) // FILES)
    for number in range(FILES):
        own = events.slice(number * share, share)
        pq.write_table(own, f"{folder}/{number}.parquet", row_group_size=1 << 18)


def compared(task: Task, folder: str, count: int) -> list[Row]:
    """The rows of one pattern: what SQL takes, and how much more than each way of weft."""
    works = works_of(task, folder)
    found = {name: work() for name, work in works.items()}
    if len(set(found.values())) > 1:
        raise RuntimeError(f"{task.name}: the numbers of matches differ: {found}")
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(REPEATS):
        for name, work in works.items():
            gc.collect()
            before = tree_cpu()
            work()
            seconds[name] = min(seconds[name], tree_cpu() - before)
    rows = [row(f"{task.name}: {found['SQL']:,} matches, SQL", seconds["SQL"], "CPU s")]
    for name in WAYS:
        goal = WAYS[name] if count >= EVENTS else ">= 1"
        rows.append(row(f"  {name}", seconds[name], "CPU s", "SQL", seconds["SQL"] / seconds[name], goal))
    return rows


def works_of(task: Task, folder: str) -> dict[str, Work]:
    """The same matches, counted in several ways."""
    import weft
    from weft.runtime.spark.session import LASTING_SETTINGS, spark_session

    session = spark_session(settings=LASTING_SETTINGS)  # SQL leans on the JVM: let that be at its best
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of the queries have no bound of time, as their SQL has none
        program = weft.compile(task.query, language=task.language)

    def by_sql() -> int:
        session.read.parquet(folder).createOrReplaceTempView("events")
        return int(session.sql(task.sql).count())

    def by_weft(events: Any, **options: Any) -> int:
        return int(weft.match(events, program, **options).count())

    return {
        "SQL": by_sql,
        "frame, direct scan": lambda: by_weft(session.read.parquet(folder)),
        SPARK_SCAN: lambda: by_weft(session.read.parquet(folder), scan="spark"),
        "path": lambda: by_weft(folder),
    }
