"""Patterns with policies: a sequence of types with equal IDs that consumes its members (EPN §5.2).

Events of each type come 50 times a second, independently; windows are fixed, every matching set is selected at once
and consumed. The baseline is the same pattern with 101 ids and windows of ten minutes. Sets made means that every set
leaves the matcher as columns; counted, that only their number does. Latency is measured in the matcher's process, of
events given one by one: from the event that completes sets to the last of them. By the clock it includes what else the
machine does.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from benchmarks import epn_pairs
from benchmarks.measure import Row, cpu_seconds, row

import weft
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import read_events

RATE = 50  # events of each type in a second


WINDOWS = (1, 5, 10, 20)  # minutes
DOMAINS = (10, 100, 1_000)  # ids


def run(scale: float = 1.0) -> list[Row]:
    """All cases; `scale` multiplies the number of events."""
    count = max(1 << 14, int(240_000 * scale))
    table, program = poisson(count), sequence()
    batches = list(read_events(table, columns=plan(program).columns))
    made = count / cpu_seconds(lambda: _push(program, batches))  # it writes 100 MB in each 0.05 s: one run tells little
    rows = [row("8 types, sets made", made, "events/s", goal=">= 200000"), *_latency(program, batches)]
    rows += _linked(count // 4)
    # Ten times as many events, so that the longest window is filled at the usual size.
    count *= 10
    base = _counted(poisson(count), program)
    rows.append(row("8 types, counted", base, "events/s"))
    wide = _counted(poisson(count, types=16), sequence(types=16))
    rows.append(row("16 types, counted", wide, "events/s", "8 types", wide / base))
    return [*epn_pairs.run(scale), *rows, *_growth(count, base)]


def _growth(count: int, base: float) -> list[Row]:
    """How speed and latency change with the window and the number of ids; latency for as many events as a window has.

    Sets made and their latency are of the last minute of a window, where most of them are.
    """
    rows = []
    for minutes in WINDOWS:
        program = sequence(minutes=minutes)
        for domain in DOMAINS:
            table = poisson(count, domain=domain)
            speed = _counted(table, program)
            name = f"{minutes} min, {domain} ids"
            rows.append(row(f"{name}, counted", speed, "events/s", "10 min, 101 ids", speed / base))
            filled = min(count, minutes * 60 * RATE * 8)
            whole = list(read_events(table.slice(0, filled), columns=plan(program).columns, batch_size=1 << 14))
            rows += _latency(program, whole, events=8_000, name=f"{name}, ")[1:2]
    return rows


def _linked(count: int) -> list[Row]:
    """Two linked patterns with a condition that is not an equality, on the kernel of all situations."""
    text = """
    pattern Rise all(E1 a, E2 b) where a.ID = b.ID and a.v < b.v policies consumption consume context fixed 1 minute
      derive ID = a.ID, v = b.v
    pattern Fall sequence(Rise r, E3 c) where r.ID = c.ID and c.v < r.v policies repeated last, consumption consume"""
    program = weft.compile(text, language="epn")
    table = poisson(count, types=3)
    values = np.random.default_rng(2).normal(size=count)
    batches = list(read_events(table.append_column("v", pa.array(values)), columns=plan(program).columns))
    made = count / cpu_seconds(lambda: _push(program, batches), repeats=1)
    return [row("linked patterns, sets made", made, "events/s", goal=">= 200000")]


def poisson(count: int, types: int = 8, domain: int = 101, seed: int = 1) -> pa.Table:
    """Events of several types in independent Poisson processes, each with one of so many ids; times in ms."""
    random = np.random.default_rng(seed)
    names = pa.array([f"E{number}" for number in range(1, types + 1)])
    codes = random.integers(0, types, count).astype(np.int32)
    times = np.cumsum(random.exponential(1000 / (RATE * types), count)).astype(np.int64)
    kinds = pa.DictionaryArray.from_arrays(pa.array(codes), names)
    return pa.table({"type": kinds, "ts": times, "ID": random.integers(0, domain, count)})


def sequence(types: int = 8, minutes: int = 10) -> Program:
    """The pattern of the experiment."""
    slots = ", ".join(f"E{number} e{number}" for number in range(1, types + 1))
    where = " and ".join(f"e{number}.ID = e{number + 1}.ID" for number in range(1, types))
    policies = "evaluation immediate, cardinality unrestricted, repeated every, consumption consume"
    text = f"pattern P sequence({slots})\nwhere {where}\npolicies {policies}\ncontext fixed {minutes} minutes"
    return weft.compile(text, language="epn")


def _push(program: Program, batches: list[EventBatch]) -> int:
    matcher = Matcher(plan(program))
    return sum(len(found) for batch in batches for found in matcher.push(batch))


def _counted(table: pa.Table, program: Program) -> float:
    return len(table) / cpu_seconds(lambda: weft.count(table, program))


def _latency(program: Program, batches: list[EventBatch], events: int = 20_000, name: str = "") -> list[Row]:
    """Percentiles over those of the last events that complete at least one set; what came before is in state."""
    matcher = Matcher(plan(program))
    *earlier, last = batches
    first = max(0, len(last) - events)
    for batch in [*earlier, blocks.slice(last, 0, first)]:
        for _ in matcher.push(batch):
            pass
    busy, passed = [], []
    for place in range(first, len(last)):
        one = blocks.slice(last, place, 1)
        start, clock = time.process_time(), time.perf_counter()
        if sum(len(found) for found in matcher.push(one)):
            busy.append(1000 * (time.process_time() - start))
            passed.append(1000 * (time.perf_counter() - clock))
    if not busy:
        return [row(f"{name}latency: no set was completed", 0.0, "ms")] * 3
    half, most = np.percentile(busy, [50, 99]).tolist()
    slow = float(np.percentile(passed, 99))
    return [
        row(f"{name}latency of {len(busy)} events with sets, median, CPU", half, "ms"),
        row(f"{name}latency of {len(busy)} events with sets, p99, CPU", most, "ms", goal="<= 2"),
        row(f"{name}latency of {len(busy)} events with sets, p99, clock", slow, "ms", goal="<= 2"),
    ]
