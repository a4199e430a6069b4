"""Beyond this machine: lanes one after the other, the work of each measured, and what that says of as many machines.

For each strategy a workload of some language without a key (`key` apart). The time of N machines is that of routing,
which is shared out too, and of the busiest lane; speed-up is against one lane. For one and two lanes the prediction is
put beside measured time of one and two threads, which means little while other programs run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from benchmarks.measure import Row, row

import weft
from weft.algebra.query import Program
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime import blocks
from weft.runtime.lanes.crew import Crew, pieces
from weft.runtime.lanes.routing import shares
from weft.runtime.reading.order import read_events

LANES = (1, 2, 4, 8, 16, 32, 64)
STEP = 'topology "t" external A(x: int) < "A" [1.0] external B(x: int) < "B" [1.0] '


@dataclass(frozen=True)
class Workload:
    """A strategy, a program that it suits, how many events it is measured on, and the least speed-up of two lanes."""

    strategy: str
    language: str
    text: str
    events: int
    goal: float
    types: str = "AB"


WORKLOADS = (
    Workload(
        "key",
        "ceql",
        "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 4000 EVENTS",
        100_000,
        1.8,
    ),
    Workload(
        "slice",
        "ceql",
        "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > b[x] + 990 WITHIN 400 MILLISECONDS",
        100_000,
        1.7,
    ),
    Workload(
        "slice", "tesla", "define X() from A() as a and each B(x > a.x + 990) as b within 300 from a", 100_000, 1.7
    ),
    Workload("slice", "step", STEP + "Q(*): A/a ;?[dur < 200 && a.x > b.x + 950] B/b", 50_000, 1.7),
    Workload("replicate", "step", STEP + "Q(*): A/a ;?[dur < 200 && a.x > b.x + 950] B/b", 50_000, 1.5),
    Workload(
        "query",
        "step",
        STEP + " ".join(f"Q{n}(*): A/a ;?[dur < 60 && a.x > b.x + {900 + n}] B/b" for n in range(16)),
        25_000,
        1.5,
    ),
)


@dataclass(frozen=True)
class LaneWork:
    """What one lane was given, how long it was busy, and what it found."""

    events: int
    seconds: float
    matches: int


def run(scale: float = 1.0) -> list[Row]:
    """All cases; `scale` multiplies the number of events."""
    return [found for workload in WORKLOADS for found in _rows(workload, scale)]


def _rows(workload: Workload, scale: float) -> list[Row]:
    program = weft.compile(workload.text, language=workload.language)
    chosen = plan(program, strategy=workload.strategy)
    table = _table(workload, max(2_000, int(workload.events * scale)))
    name = f"{workload.strategy} ({workload.language})"
    work_per_lane(chosen, table.slice(0, 2_000), 2)
    alone = work_per_lane(chosen, table, 1)
    rows = []
    for lanes in LANES[1:]:
        found = work_per_lane(chosen, table, lanes)
        assert sum(lane.matches for lane in found) == sum(lane.matches for lane in alone), name
        busiest = max(lane.seconds for lane in found)
        copied = sum(lane.events for lane in found) / max(sum(lane.events for lane in alone), 1)
        goal = f">= {workload.goal}" if lanes == 2 else ""
        case = f"{name}, {lanes} lanes: events given out {copied:.2f} times"
        rows.append(row(case, busiest, "s, busiest lane", "one lane", alone[0].seconds / busiest, goal))
    return [*rows, _measured(name, program, table, workload)]


def work_per_lane(chosen: Plan, table: pa.Table, lanes: int) -> list[LaneWork]:
    """Each lane by itself, one after the other."""
    crew = Crew(chosen, chosen.lanes_for(lanes), 1)
    batch = blocks.concat(list(read_events(table, columns=chosen.columns)))
    crew.gather(batch)
    found = []
    for member, own in zip(crew.members, shares(batch, crew.lanes), strict=True):
        start = time.process_time()
        matches = sum(len(match) for piece in pieces(own) for match in member.push(piece))
        matches += sum(map(len, member.finish()))
        found.append(LaneWork(member.counters["events"], time.process_time() - start, matches))
    return found


def _measured(name: str, program: Program, table: pa.Table, workload: Workload) -> Row:
    def timed(threads: int) -> float:
        start = time.perf_counter()
        for _ in weft.detect(table, program, strategy=workload.strategy, lanes=threads, threads=threads)._run.rows():
            pass
        return time.perf_counter() - start

    one, two = min(timed(1), timed(1)), min(timed(2), timed(2))
    return row(f"{name}, measured with two threads", two, "s of wall time", "one thread", one / two)


def _table(workload: Workload, count: int) -> pa.Table:
    dice = np.random.default_rng(7)
    return pa.table(
        {
            "type": pa.array(np.array(list(workload.types))[dice.integers(0, len(workload.types), count)]),
            "ts": np.arange(count),
            "x": dice.integers(0, 1000, count),
            "k": dice.integers(0, 1000, count),
        }
    )
