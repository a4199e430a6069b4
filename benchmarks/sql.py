"""Six patterns by weft on Spark and by hand-written Spark SQL: CPU time of all processes, from Parquet to a count.

Part "written" writes the matches of two of them with all their events instead, and SQL the same rows. Part "fixed" is
what the second call in a session takes for few events, each way in a process of its own.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import Row, row
from benchmarks.spark import tree_cpu
from benchmarks.sql_tasks import TASKS, WRITTEN, WRITTEN_RARELY, Task, payments, trades

from weft.errors import UsageError, did_you_mean

EVENTS = 4_000_000
FILES = 4
REPEATS = 3
SPARK_SCAN = "frame, Spark's scan"
ROOT = Path(__file__).parent.parent
FEW = 10_000
WRITTEN_EVENTS = 1_000_000
SQL_COLUMNS = ("id", "start", "end", "variables")
WAYS = {"frame, direct scan": ">= 3", SPARK_SCAN: ">= 1.3", "path": ">= 3"}
Work = Callable[[], int]


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """Each pattern in a DataFrame, read in two ways, and in a path; a `part` is a pattern's number, or a name."""
    numbers = [str(number) for number, _ in enumerate(TASKS, 1)]
    if part is not None and part not in (*numbers, *PARTS):
        raise UsageError(f"no part {part!r} of this benchmark; {did_you_mean(part, [*numbers, *PARTS])}")
    if part in PARTS:
        return list(PARTS[part](scale))
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
    seconds = _least_seconds(works)
    rows = [row(f"{task.name}: {found['SQL']:,} matches, SQL", seconds["SQL"], "CPU s")]
    for name in WAYS:
        goal = WAYS[name] if count >= EVENTS else ">= 1"
        rows.append(row(f"  {name}", seconds[name], "CPU s", "SQL", seconds["SQL"] / seconds[name], goal))
    return rows


def _least_seconds(works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least CPU time of each work, which take turns; all have run once."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(REPEATS):
        for name, work in works.items():
            gc.collect()
            before = tree_cpu()
            work()
            seconds[name] = min(seconds[name], tree_cpu() - before)
    return seconds


def written(scale: float) -> Iterator[Row]:
    """Matches with all attributes of their events: collected, written to nothing, and to Parquet."""
    from weft.runtime.spark.session import LASTING_SETTINGS, spark_session

    count = max(FEW, int(WRITTEN_EVENTS * scale))
    session = spark_session(settings=LASTING_SETTINGS)
    for task in (WRITTEN, WRITTEN_RARELY):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(f"{folder}/events", payments(count) if task.payments else trades(count))
            yield from _written(session, task, f"{folder}/events", f"{folder}/out")


def _written(session: Any, task: Task, path: str, out: str) -> Iterator[Row]:
    """The rows of one pattern; weft gives its usual columns, or those that SQL gives."""
    import weft

    program = weft.compile(task.query, language=task.language)

    def by_sql() -> Any:
        session.read.parquet(path).createOrReplaceTempView("events")
        return session.sql(task.sql)

    def by_weft(**options: Any) -> Any:
        return weft.match(session.read.parquet(path), program, **options)

    sources: dict[str, Callable[[], Any]] = {
        "SQL": by_sql,
        "weft, direct scan": by_weft,
        "weft, direct scan, SQL's columns": partial(by_weft, columns=SQL_COLUMNS),
        "weft, Spark's scan": partial(by_weft, scan="spark"),
        "weft, Spark's scan, SQL's columns": partial(by_weft, scan="spark", columns=SQL_COLUMNS),
    }
    found = {name: source().count() for name, source in sources.items()}
    if len(set(found.values())) > 1:
        raise RuntimeError(f"the numbers of matches differ: {found}")
    ends: dict[str, Callable[[Any], object]] = {
        "noop": lambda frame: frame.write.format("noop").mode("overwrite").save(),
        "Parquet": lambda frame: frame.write.mode("overwrite").parquet(out),
        "toArrow": lambda frame: frame.toArrow(),
    }
    for end, act in ends.items():
        works = {name: partial(_acted, act, source) for name, source in sources.items()}
        for work in works.values():
            work()
        seconds = _least_seconds(works)
        yield row(f"{task.name}: {found['SQL']:,} matches to {end}, SQL", seconds["SQL"], "CPU s")
        for name in list(sources)[1:]:
            yield row(f"  {name}", seconds[name], "CPU s", "SQL", seconds["SQL"] / seconds[name])


def _acted(act: Callable[[Any], object], source: Callable[[], Any]) -> object:
    return act(source())


def fixed(scale: float) -> Iterator[Row]:
    """The second call in a session, with few events: each way in processes of its own, the least of several."""
    code = "import sys; from benchmarks.sql import second_call; second_call(sys.argv[1], sys.argv[2])"
    command = [sys.executable, "-c", code]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "payments")
        write(path, payments(FEW))
        seconds = {
            name: min(
                float(subprocess.check_output([*command, name, path], text=True, cwd=ROOT).split()[-1])
                for _ in range(max(1, int(REPEATS * scale)))
            )
            for name in ("SQL", *WAYS)
        }
    yield row(f"second call, {FEW:,} events, SQL", seconds["SQL"], "CPU s")
    for name in WAYS:
        yield row(f"  {name}", seconds[name], "CPU s", "SQL", seconds[name] / seconds["SQL"], "<= 1.5")


def second_call(way: str, path: str) -> None:
    """Print the CPU time of the second call in this process."""
    work = works_of(WRITTEN, path)[way]
    work()
    before = tree_cpu()
    work()
    print(tree_cpu() - before)


PARTS = {"written": written, "fixed": fixed}


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
