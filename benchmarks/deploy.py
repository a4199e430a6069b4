"""Deploying: a thousand queries, and the first match of a new process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.trades import sequence, trades

import weft

FIRST_MATCH = """
import time
start = time.perf_counter()
import weft
program = weft.compile("SELECT * WHERE A AS a ; B AS b FILTER a[x > 1] WITHIN 10 EVENTS")
next(iter(weft.detect([{"type": "A", "ts": 1, "x": 2}, {"type": "B", "ts": 2, "x": 2}], program)))
print(time.perf_counter() - start)
"""


def run(scale: float = 1.0) -> list[Row]:
    """Compile and deploy a thousand queries, run them, and start new processes with an empty and a filled cache."""
    count = max(10, int(1000 * scale))
    text = "\n".join(f"QUERY q{n} AS {sequence(3 + n % 10, window=100 + n, never=True)}" for n in range(count))
    one_event = trades(1)
    seconds = cpu_seconds(lambda: weft.count(one_event, weft.compile(text)))
    rows = [row(f"{count} queries, compiled and deployed", seconds, "s", goal="< 5 for 1000")]
    program, table = weft.compile(text), trades(65536)
    seconds = cpu_seconds(lambda: weft.count(table, program), repeats=1)
    rows.append(row(f"{count} queries at once", seconds / 65536 / count * 1e9, "ns per event and query"))
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (_first_match(folder) for _ in range(2))
    rows.append(row("first match of a new process, kernels compiled", cold, "s (wall)"))
    rows.append(row("first match of a second process", warm, "s (wall)", "first process", warm / cold, "< 2 s"))
    return rows


def _first_match(cache: str) -> float:
    """Wall time from start of the interpreter to the first match, with compiled kernels kept in a folder."""
    start = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", FIRST_MATCH], check=True, capture_output=True, env=environment)
    return time.perf_counter() - start
