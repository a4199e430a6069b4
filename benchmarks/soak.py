"""A day of events for every language: does what is kept stay as it is, in bytes that are counted and in the process?

Ten events in each second of 24 hours, with keys and texts that do not come again. Each language has a process of its
own; the first hours fill what windows hold. What is held rises and falls between two clean-ups, so the most of four
hours counts: of the third to the sixth, and of the last ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.measure import Row

import weft

HOURS, FULL, SPAN = 24, 6, 4  # of event time; when windows have been full for long; how many hours are looked at
RATE = 10  # events in a second of event time
MINUTES = 5  # of a batch
PROGRAMS = {
    "CEQL": "SELECT a[s], b[x] WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 10 MINUTES",
    "EQL": "SELECT * FROM (A a @ 60000 msec) \\ C c WHERE c.k = a.k",
    "Step": 'topology "t"\n'
    + "\n".join(f'external {name}(k: int, s: string, x: int) < "{name}.jsonl" [1.0]' for name in "ABC")
    + "\nPair(*): A ;[A.k = B.k && dur < 600000] B",
    "TESLA": "define Pair(s: string) from C(k = $k) and last A(k = $k) within 600000 from C "
    "and not B(k = $k) between A and C where s = A.s",
    "EPN": "pattern both all(A a, C c) where a.k = c.k context from A for 10 minutes by k",
}
COLUMNS = {"type": "string", "ts": "timestamp_ntz", "k": "bigint", "s": "string", "x": "bigint"}
CLAUSE = """PARTITION BY x ORDER BY ts MEASURES LAST(B.k) AS k
AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C) WITHIN INTERVAL '10' MINUTE
DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C'"""


def run(scale: float = 1.0) -> Iterator[Row]:
    """One process for each language; `scale` multiplies the hours."""
    hours = max(2, int(HOURS * scale))
    for language in (*PROGRAMS, "SQL"):
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.soak", language, str(hours)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=True)
        seen = json.loads(done.stdout.splitlines()[-1])
        full, last = seen["full"], seen["last"]
        yield {
            "case": f"{language}: {seen['events']:,} events of {hours} hours, {seen['matches']:,} matches: state",
            "value": last["state"] / 1024,
            "unit": f"KiB; the process {last['memory'] >> 20} MiB, {full['memory'] >> 20} when windows were full",
            "baseline": f"when windows were full {full['state'] / 1024:,.0f}",
            "ratio": last["state"] / full["state"],
            "goal": "1",
        }
        yield {
            "case": f"{language}: pace against real time",
            "value": hours * 3600 / seen["seconds"],
            "unit": "times",
            "baseline": "",
            "ratio": None,
            "goal": "≥ 10",
        }


def batches(hours: int) -> Iterator[pa.Table]:
    """Events of so many hours, some minutes at a time."""
    chance, count = np.random.default_rng(5), RATE * 60 * MINUTES
    for number in range(hours * 60 // MINUTES):
        first = number * count
        keys = (first + np.arange(count)) // 4 + chance.integers(0, 2000, count)
        yield pa.table(
            {
                "type": pa.array(np.array(["A", "B", "C"])[chance.integers(0, 3, count)]),
                "ts": (first + np.arange(count)) * (1000 // RATE),
                "k": keys,
                "s": pa.array([f"text {key}" for key in keys.tolist()]),
                "x": chance.integers(0, 200, count),
            }
        )


def soaked(language: str, hours: int) -> dict[str, Any]:
    """Feed one language; how it stood when windows were full, and at the end. The most of some hours counts each."""
    push, state = _sql() if language == "SQL" else _live(language, PROGRAMS[language])
    seen: dict[str, list[dict[str, int]]] = {"full": [], "last": []}
    matches = events = 0
    started = time.perf_counter()
    last, full = hours * 60 // MINUTES, min(FULL, hours // 2) * 60 // MINUTES
    span = min(SPAN, full * MINUTES // 60) * 60 // MINUTES
    for number, batch in enumerate(batches(hours), 1):
        matches += push(batch)
        events += len(batch)
        for name, end in (("full", full), ("last", last)):
            if end - span < number <= end:
                seen[name].append({"state": state(), "memory": _memory()})
    most = {name: {key: max(one[key] for one in own) for key in ("state", "memory")} for name, own in seen.items()}
    return {**most, "matches": matches, "events": events, "seconds": time.perf_counter() - started}


def _live(language: str, program: str) -> tuple[Callable[[pa.Table], int], Callable[[], int]]:
    running = weft.live(weft.compile(program, language.lower()))
    return lambda batch: len(running.push(batch)), lambda: running.state_bytes


def _sql() -> tuple[Callable[[pa.Table], int], Callable[[], int]]:
    from weft.languages.sql.clauses import whole_clause
    from weft.languages.sql.lower import compile_clause
    from weft.runtime.operators.row_patterns.engine import matcher_of
    from weft.runtime.operators.row_patterns.incremental import IncrementalMatcher
    from weft.source import SourceText

    stream: list[IncrementalMatcher] = []

    def push(batch: pa.Table) -> int:
        rows = batch.set_column(1, "ts", batch["ts"].cast(pa.timestamp("ms")).cast(pa.timestamp("us")))
        if not stream:
            source = SourceText(CLAUSE)
            query = compile_clause(source, whole_clause(source), COLUMNS)[0]
            stream.append(IncrementalMatcher.begun(query, matcher_of(query), rows.schema))
        stream[0].add(rows)
        found = stream[0].advance(int(rows["ts"][-1].value))
        return 0 if found is None else len(found)

    return push, lambda: stream[0].rows.nbytes + stream[0].keys.nbytes + stream[0].waiting.nbytes


def _memory() -> int:
    """The bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(soaked(sys.argv[1], int(sys.argv[2]))))
