"""SQL's row patterns: in process by size of partitions and length of patterns, on Spark against window functions."""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.spark import tree_cpu

import weft
from weft.errors import BudgetError, UsageError, did_you_mean

ROWS = 1_000_000
SPARK_ROWS = 4_000_000
FILES = 4
REPEATS = 3
FLINK = {"rising run": 29.0}  # CPU s a million events of Flink SQL 2.3 for the same question, on another machine
V_SHAPE = """PARTITION BY symbol ORDER BY ts
  MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom, COUNT(DOWN.*) AS n
  PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)"""
AVERAGE = """PARTITION BY symbol ORDER BY ts MEASURES FIRST(A.ts) AS begins, LAST(A.ts) AS ends, AVG(A.price) AS average
  PATTERN (A+ B) DEFINE A AS AVG(A.price) < 100, B AS price >= 0"""
THRESHOLD = """PARTITION BY symbol ORDER BY ts MEASURES SUM(A.volume) AS total, COUNT(*) AS n
  PATTERN (A+ B) DEFINE A AS SUM(A.volume) < 2000"""
RUN = 10  # prices of a rising run, at least
# Each pattern as a clause, and as the window functions that a careful user writes over the view `ticks`.
ON_SPARK = {
    "V shape": (
        V_SHAPE.replace("PATTERN", "AFTER MATCH SKIP TO LAST UP PATTERN"),
        """WITH moved AS (SELECT *, coalesce(sign(price - lag(price) OVER w), 0) AS way, lag(price) OVER w AS above
             FROM ticks WINDOW w AS (PARTITION BY symbol ORDER BY ts)),
           edges AS (SELECT *, CASE WHEN way = lag(way) OVER w THEN 0 ELSE 1 END AS turns
             FROM moved WINDOW w AS (PARTITION BY symbol ORDER BY ts)),
           legs AS (SELECT *, sum(turns) OVER (PARTITION BY symbol ORDER BY ts) AS leg FROM edges),
           runs AS (SELECT symbol, leg, first(way) AS way, max(above) AS top, min(price) AS bottom, count(*) AS n
             FROM legs GROUP BY symbol, leg)
           SELECT symbol, top, bottom, n
           FROM (SELECT *, lead(way) OVER (PARTITION BY symbol ORDER BY leg) AS after FROM runs)
           WHERE way < 0 AND after > 0""",
    ),
    "rising run": (
        f"""PARTITION BY symbol ORDER BY ts MEASURES FIRST(price) AS low, LAST(price) AS high, COUNT(*) AS n
            PATTERN (A UP{{{RUN - 1},}}) DEFINE UP AS price > PREV(price)""",
        f"""WITH moved AS (SELECT *, price > lag(price) OVER w AS rises FROM ticks
             WINDOW w AS (PARTITION BY symbol ORDER BY ts)),
           runs AS (SELECT *, sum(CASE WHEN rises THEN 0 ELSE 1 END) OVER (PARTITION BY symbol ORDER BY ts) AS run
             FROM moved)
           SELECT symbol, run, min(price) AS low, max(price) AS high, count(*) AS n FROM runs
           GROUP BY symbol, run HAVING count(*) >= {RUN}""",
    ),
    "A then B within": (
        """PARTITION BY symbol ORDER BY ts MEASURES A.ts AS a, B.ts AS b AFTER MATCH SKIP TO NEXT ROW
           PATTERN (A X*? B) WITHIN INTERVAL '1' SECOND DEFINE A AS volume >= 900, B AS volume < 20""",
        """SELECT symbol, ts AS a, b FROM (
             SELECT symbol, ts, volume,
               last(CASE WHEN volume < 20 THEN ts END, true) OVER (PARTITION BY symbol ORDER BY ts DESC
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS b FROM ticks)
           WHERE volume >= 900 AND b - ts < INTERVAL '1' SECOND""",
    ),
}
PARTS = ("partitions", "lengths", "conditions", "endless", "spark")


def run(scale: float = 1.0, part: str | None = None) -> list[Row]:
    """All figures, or those of a `part`: partitions, lengths, conditions, endless, spark."""
    if part is not None and part not in PARTS:
        raise UsageError(f"no part {part!r} of this benchmark; {did_you_mean(part, PARTS)}")
    count = max(10_000, int(ROWS * scale))
    found: list[Row] = []
    for name, figures in (
        ("partitions", _partitions),
        ("lengths", _lengths),
        ("conditions", _conditions),
        ("endless", _endless),
    ):
        if part in (None, name):
            found += figures(count)
    return found + (_on_spark(max(10_000, int(SPARK_ROWS * scale))) if part in (None, "spark") else [])


def ticks(count: int, symbols: int = 100, *, shuffled: bool = False) -> pa.Table:
    """Prices that go up and down, by symbol, in order of time unless they are shuffled."""
    random = np.random.default_rng(7)
    table = pa.table(
        {
            "symbol": pa.array(np.char.add("S", random.integers(0, symbols, count).astype(str))),
            "ts": pa.array(np.arange(count) * 1000).cast(pa.timestamp("us")),
            "price": np.round(100 + np.cumsum(random.normal(size=count)) / 10, 2),
            "volume": pa.array(random.integers(0, 1000, count), pa.int32()),
        }
    )
    return table.take(pa.array(random.permutation(count))) if shuffled else table


def _measured(case: str, clause: str, table: pa.Table, goal: str) -> Row:
    weft.row_pattern(table.slice(0, 1000), clause)
    seconds = cpu_seconds(lambda: weft.row_pattern(table, clause), repeats=REPEATS)
    return row(case, seconds / len(table) * 1_000_000, "CPU s a million rows", goal=goal)


def _partitions(count: int) -> list[Row]:
    """Figure 1: by size of partitions, in order and not."""
    goal = "0.25 s at most"
    found = [_measured(f"V shape, {n:,} partitions", V_SHAPE, ticks(count, n), goal) for n in (1, 100, 10_000, 100_000)]
    return [*found, _measured("V shape, shuffled rows", V_SHAPE, ticks(count, shuffled=True), goal)]


def _lengths(count: int) -> list[Row]:
    """Figure 1: by length of patterns."""
    table, found = ticks(count), []
    for length in (3, 10, 30):
        names = [f"A{k}" for k in range(length)]
        conditions = ", ".join(f"{name} AS volume >= {k * 30}" for k, name in enumerate(names))
        clause = f"""PARTITION BY symbol ORDER BY ts MEASURES FIRST(ts) AS begins, LAST(ts) AS ends
                     PATTERN ({" ".join(names)}) DEFINE {conditions}"""
        found.append(_measured(f"a chain of {length} variables", clause, table, "0.25 s at most"))
    return found


def _conditions(count: int) -> list[Row]:
    """Figure 3: conditions that depend on the match."""
    table = ticks(count)
    clauses = {"running average": AVERAGE, "sum up to a threshold": THRESHOLD}
    return [_measured(name, clause, table, "1.5 s at most") for name, clause in clauses.items()]


def _endless(count: int) -> list[Row]:
    """Figure 4: nested loops that cannot match."""
    table = pa.table({"n": np.arange(100_000), "v": pa.array(["a"] * 100_000)})
    found = []
    ends_of = {"on rows": "v = 'b'", "split": "v = 'b' AND COUNT(A.*) > 1", "on the match": "COUNT(A.*) < 0"}
    for name, ends in ends_of.items():
        clause = f"ORDER BY n MEASURES COUNT(*) AS n1 PATTERN ((A* A*)* B) DEFINE A AS v = 'a', B AS {ends}"
        start, how = time.process_time(), "no match"
        try:
            weft.row_pattern(table, clause)
        except BudgetError:
            how = "max_steps"
        seconds = time.process_time() - start
        found.append(row(f"(A* A*)* B over 100,000 A, condition {name}: {how}", seconds, "CPU s", goal="5 s at most"))
    return found


def _on_spark(count: int) -> list[Row]:
    """Figure 2: against window functions, and against what Flink SQL took for a million events."""
    from weft.runtime.spark.session import spark_session

    session = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, share = ticks(count), -(-count // FILES)
        for number in range(FILES):
            pq.write_table(table.slice(number * share, share), str(Path(folder) / f"{number}.parquet"))
        session.read.parquet(folder).createOrReplaceTempView("ticks")
        for name, (clause, by_hand) in ON_SPARK.items():
            text = f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})"
            seconds = _in_turns(
                lambda text=text: weft.sql(text, spark=session).count(),
                lambda by_hand=by_hand: session.sql(by_hand).count(),
            )
            found.append(row(f"{name}, window functions on Spark", seconds[1], "CPU s"))
            found.append(row(f"{name}, weft.sql", seconds[0], "CPU s", "windows", seconds[1] / seconds[0], "> 1"))
            if name in FLINK:
                each = seconds[0] / count * 1_000_000
                baseline, ratio = "Flink SQL, elsewhere", FLINK[name] / each
                found.append(row(f"{name}, a million rows", each, "CPU s", baseline, ratio, ">= 10"))
    return found


def _in_turns(*works: Callable[[], int]) -> list[float]:
    """The least CPU time of all processes."""
    counts = [work() for work in works]
    if counts[0] != counts[1]:
        raise RuntimeError(f"the numbers of rows differ: {counts}")
    best = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for number, work in enumerate(works):
            gc.collect()
            before = tree_cpu()
            work()
            best[number] = min(best[number], tree_cpu() - before)
    return best
