"""Against SQL: the same questions asked of DuckDB, in the best SQL we know for each, over the same Arrow tables.

DuckDB runs on one thread. Both count the matches, and must find as many; they take turns, and the CPU time of either is
the least of several runs. Questions that a window function answers are asked that way, which leaves out what the
matches are made of; all combinations within a time are joined, as whoever wants to see them must do. Flink SQL is not
run: what it took elsewhere is set beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from benchmarks.measure import Row, cpu_seconds_in_turns, row

import weft

NAMES = 100
# The fewest CPU seconds a million events that we saw Flink SQL 2.3 (local) take for the same questions of similar
# events, on another machine of two cores.
FLINK = {
    "payments, 100,000 accounts": 92.0,
    "rising run of at least 10": 29.0,
    "A, next B, next C": 92.0,
    "A, B, C without a gap": 18.0,
    "all A, B, C within 1 s": 22.0,
    "A, next B, no C between": 19.0,
}
HOURS_12 = 12 * 3_600_000


@dataclass(frozen=True)
class Question:
    """One thing to find: in which events, in weft's language and in SQL over the table `events`."""

    case: str
    events: pa.Table
    language: str
    text: str
    sql: str


def run(scale: float = 1.0) -> list[Row]:
    """All questions; `scale` multiplies the number of events."""
    count = max(1 << 15, int(1_000_000 * scale))
    rows = []
    for question in _questions(count):
        program = weft.compile(question.text, language=question.language)
        ours, theirs = _matches(question, program)
        if ours != theirs:
            raise RuntimeError(f"{question.case}: weft finds {ours} matches, DuckDB {theirs}")
        with _database(question.events) as database:
            seconds, sql_seconds = cpu_seconds_in_turns(
                lambda q=question, p=program: weft.count(q.events, p),
                lambda q=question, d=database: d.execute(q.sql).fetchone(),
                repeats=5,
            )
        per_event = 1e6 / count
        case = f"{question.case}, {ours:,} matches"
        baseline = f"DuckDB: {sql_seconds * per_event:.2f}"
        rows.append(row(case, seconds * per_event, "µs/event", baseline, seconds / sql_seconds, "<= 0.5"))
        if question.case in FLINK:
            other = FLINK[question.case]
            rows.append(
                row(
                    case,
                    seconds * per_event,
                    "µs/event",
                    f"Flink SQL, elsewhere: {other:g}",
                    other / (seconds * per_event),
                )
            )
    return rows


def _database(events: pa.Table) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(config={"threads": 1})
    database.register("events", events)
    return database


def _matches(question: Question, program: weft.Program) -> tuple[int, int]:
    """How many matches either finds."""
    with _database(question.events) as database:
        found = database.execute(question.sql).fetchone()
    assert found is not None
    return sum(weft.count(question.events, program).values()), int(found[0])


def _questions(count: int) -> Iterator[Question]:
    for accounts in (100, 10_000, 100_000):
        yield Question(f"payments, {accounts:,} accounts", payments(count, accounts), "eql", PAYMENTS, PAYMENTS_SQL)
    yield Question("three within 12 h, 100,000 accounts", visits(count, 100_000), "eql", THREE, THREE_SQL)
    yield Question("rising run of at least 10", prices(count), "ceql", RISING, RISING_SQL)
    named = letters(count)
    yield Question("A, next B, next C", named, "eql", NEXT, NEXT_SQL)
    yield Question("A, B, C without a gap", named, "ceql", STRICT, STRICT_SQL)
    yield Question("all A, B, C within 1 s", named, "ceql", COMBINATIONS, COMBINATIONS_SQL)
    yield Question("A, next B, no C between", named, "eql", ABSENT, ABSENT_SQL)


# ---------------------------------------------------------------- events


def payments(count: int, accounts: int) -> pa.Table:
    """Payments of up to 300, ten a second, of accounts chosen evenly."""
    random = np.random.default_rng(7)
    return pa.table(
        {
            "type": pa.array(["t"]).take(pa.array(np.zeros(count, np.int8))),
            "ts": np.arange(count) * 100,
            "acc": random.integers(0, accounts, count),
            "amount": random.uniform(0, 300, count),
        }
    )


def visits(count: int, accounts: int) -> pa.Table:
    """Events of accounts chosen evenly, of which an account has ten in five days."""
    random = np.random.default_rng(7)
    return pa.table(
        {
            "type": pa.array(["t"]).take(pa.array(np.zeros(count, np.int8))),
            "ts": np.arange(count) * 470,
            "acc": random.integers(0, accounts, count),
        }
    )


def prices(count: int) -> pa.Table:
    """Trades whose prices go up and down by chance, for each name by itself."""
    random = np.random.default_rng(7)
    names = random.integers(0, NAMES, count)
    order = np.argsort(names, kind="stable")
    price = np.empty(count)
    price[order] = 1000 + np.cumsum(random.normal(0, 1, count)).round(2)
    return _table(random, names, ["BUY", "SELL"], price=price)


def letters(count: int) -> pa.Table:
    """Events A, B and C of a hundred names, one each millisecond."""
    random = np.random.default_rng(7)
    return _table(random, random.integers(0, NAMES, count), ["A", "B", "C"])


def _table(random: np.random.Generator, names: np.ndarray, types: list[str], **columns: np.ndarray) -> pa.Table:
    count = len(names)
    texts = pa.array([f"N{name:03d}" for name in range(NAMES)])
    return pa.table(
        {
            "type": pa.array(types).take(pa.array(random.integers(0, len(types), count))),
            "ts": np.arange(count),
            "name": texts.take(pa.array(names)),
            **columns,
        }
    )


# ---------------------------------------------------------------- questions

PAYMENTS = """
SELECT S1.acc, L.amount FROM t S1 ; t S2 ; t L
WHERE FILTER(S1.acc = S2.acc), FILTER(S2.acc = L.acc),
      S1.amount < 100 AND S2.amount < 100 AND L.amount > 250 AND (S1, L) OCCURS WITHIN 12 hours
"""
PAYMENTS_SQL = f"""
SELECT count(*) FROM (
  SELECT amount AS first, lead(amount, 1) OVER w AS second, lead(amount, 2) OVER w AS third,
         lead(ts, 2) OVER w - ts AS ticks
  FROM events WINDOW w AS (PARTITION BY acc ORDER BY ts))
WHERE first < 100 AND second < 100 AND third > 250 AND ticks <= {HOURS_12}
"""

THREE = """
SELECT a.acc FROM t a ; t b ; t c
WHERE FILTER(a.acc = b.acc), FILTER(b.acc = c.acc), FILTER((a, c) OCCURS WITHIN 12 hours)
"""
THREE_SQL = f"""
SELECT count(*) FROM (
  SELECT lead(ts, 2) OVER (PARTITION BY acc ORDER BY ts) - ts AS ticks FROM events)
WHERE ticks <= {HOURS_12}
"""

RISING = """
SELECT MAX * FROM Trades WHERE (SELL OR BUY) :+ AS up : (SELL OR BUY) AS down
FILTER INCREASING(up[price]) AND COUNT(up[price]) >= 10 AND LAST(up[price]) >= down[price] PARTITION BY [name]
"""
# A run ends where the next begins, which is where the price does not rise.
RISING_SQL = """
SELECT count(*) FROM (
  SELECT number - lag(number) OVER (PARTITION BY name ORDER BY number) AS length FROM (
    SELECT name, row_number() OVER w AS number, price > lag(price) OVER w AS rises
    FROM events WINDOW w AS (PARTITION BY name ORDER BY ts))
  WHERE rises IS NOT TRUE)
WHERE length >= 10
"""

NEXT = "SELECT a.name FROM A a ; B b ; C c WHERE FILTER(a.name = b.name), FILTER(b.name = c.name)"
NEXT_SQL = """
WITH b AS (SELECT name, ts FROM events WHERE type = 'B'), c AS (SELECT name, ts FROM events WHERE type = 'C'),
     ab AS (SELECT a.name, b.ts FROM events AS a ASOF JOIN b ON a.name = b.name AND b.ts > a.ts WHERE a.type = 'A')
SELECT count(*) FROM ab ASOF JOIN c ON ab.name = c.name AND c.ts > ab.ts
"""

STRICT = "SELECT * FROM S WHERE A AS a : B AS b : C AS c PARTITION BY [name] WITHIN 1 HOUR"
STRICT_SQL = """
SELECT count(*) FROM (
  SELECT type AS a, lead(type, 1) OVER w AS b, lead(type, 2) OVER w AS c, lead(ts, 2) OVER w - ts AS ticks
  FROM events WINDOW w AS (PARTITION BY name ORDER BY ts))
WHERE a = 'A' AND b = 'B' AND c = 'C' AND ticks <= 3600000
"""

COMBINATIONS = "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c PARTITION BY [name] WITHIN 1 SECOND"
# An equality on seconds, or the second after, so that each is joined with few.
COMBINATIONS_SQL = """
WITH a AS (SELECT name, ts, unnest([ts // 1000, ts // 1000 + 1]) AS second FROM events WHERE type = 'A'),
     b AS (SELECT name, ts, ts // 1000 AS second FROM events WHERE type = 'B'),
     c AS (SELECT name, ts, ts // 1000 AS second FROM events WHERE type = 'C'),
     ab AS (SELECT name, a.ts AS start, b.ts, unnest([b.second, b.second + 1]) AS second
            FROM a JOIN b USING (name, second) WHERE a.ts < b.ts AND b.ts <= a.ts + 1000)
SELECT count(*) FROM ab JOIN c USING (name, second) WHERE ab.ts < c.ts AND c.ts <= ab.start + 1000
"""

ABSENT = "SELECT a.name FROM (A a ; B b) \\ C c WHERE FILTER(a.name = b.name), FILTER(a.name = c.name)"
# Of B and C, which comes next?
ABSENT_SQL = """
SELECT count(*) FROM (
  SELECT type, lead(CASE WHEN type <> 'A' THEN type END IGNORE NULLS) OVER w AS following
  FROM events WINDOW w AS (PARTITION BY name ORDER BY ts))
WHERE type = 'A' AND following = 'B'
"""
