"""Beyond this machine: lanes one after the other, the work of each measured, and what that says of as many machines.

For each strategy a workload of some language without a key (`key` apart). The time of N machines is that of routing,
which is shared out too, of sending the busiest lane its events, and of its work; speed-up is against one lane. For one
and two lanes the prediction is put beside measured time of one and two threads, which means little while other programs
run. For eight lanes what the busiest has to do stands beside what the cost column of the strategies says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.measure import Row, row

import weft
from weft.algebra.query import Program
from weft.errors import UsageError
from weft.plan.operators import Plan
from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.by_query import ByQuery
from weft.plan.partitioning.by_rank import ByRank
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.replicated import Replicated
from weft.plan.partitioning.work import total_of
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.routing import shares
from weft.runtime.reading.order import read_events
from weft.runtime.spark.packing.wire import narrow, pack_events

LANES = (1, 2, 4, 8, 16, 32, 64)
REPEATS = 5  # of what is measured: the median counts
BANDWIDTH = 1e9  # bytes a second between machines
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
        "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] * 2 > b[x] + 1900 PARTITION BY [k] WITHIN 80000 EVENTS",
        400_000,
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
        "slice", "tesla", "define X() from A() as a and each B(x > a.x + 990) as b within 300 from a", 400_000, 1.7
    ),
    Workload("slice", "step", STEP + "Q(*): A/a ;?[dur < 200 && a.x > b.x + 950] B/b", 300_000, 1.7),
    Workload("replicate", "step", STEP + "Q(*): A/a ;?[dur < 200 && a.x > b.x + 950] B/b", 300_000, 1.5),
    Workload(
        "slice",
        "eql",
        "SELECT a.x FROM A a ; B b WHERE FILTER(a.x > b.x + 950), (a, b) OCCURS WITHIN 200",
        300_000,
        1.7,
    ),
    Workload("slice", "epn", "pattern P all(A a, B b) where a.x > b.x + 990 context fixed 200", 400_000, 1.7),
    Workload("rank", "ceql", "SELECT * FROM S WHERE A AS a ; A AS b ; B AS c WITHIN 100 EVENTS", 30_000, 1.7),
    Workload(
        "match",
        "ceql",
        "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] * 2 > b[x] + 1990 WITHIN 50 EVENTS",
        50_000,
        1.0,
    ),
    Workload(
        "query",
        "step",
        STEP + " ".join(f"Q{n}(*): A/a ;?[dur < 60 && a.x > b.x + {900 + n}] B/b" for n in range(16)),
        50_000,
        1.5,
    ),
)


@dataclass(frozen=True)
class LaneWork:
    """What one lane was given, how long it was busy, and what it found; `bytes` is what it is sent."""

    events: int
    seconds: float
    matches: int
    bytes: int = 0


def run(scale: float = 1.0, strategy: str | None = None, lanes: int | None = None) -> list[Row]:
    """All cases, or those of a strategy and a number of lanes; `scale` multiplies the number of events."""
    chosen = [workload for workload in WORKLOADS if strategy in (None, workload.strategy)]
    if not chosen:
        raise UsageError(f"no workload for the strategy {strategy!r}")
    return [found for workload in chosen for found in _rows(workload, scale, LANES[1:] if lanes is None else (lanes,))]


def _rows(workload: Workload, scale: float, numbers: Sequence[int]) -> list[Row]:
    program = weft.compile(workload.text, language=workload.language)
    chosen = plan(program, strategy=workload.strategy)
    table = _table(workload, max(2_000, int(workload.events * scale)))
    name = f"{workload.strategy} ({workload.language})"
    for few in (1, 2):  # kernels are compiled, and caches filled
        work_per_lane(chosen, table.slice(0, 2_000), few)
    alone = work_per_lane(chosen, table, 1, REPEATS)
    rows = []
    one = _predicted(alone)
    for lanes in numbers:
        found = work_per_lane(chosen, table, lanes, REPEATS)
        assert sum(lane.matches for lane in found) == sum(lane.matches for lane in alone), name
        copied = sum(lane.events for lane in found) / max(sum(lane.events for lane in alone), 1)
        sent = sum(lane.bytes for lane in found) / 1e6
        goal = f">= {workload.goal}" if lanes == 2 else ""
        case = f"{name}, {lanes} lanes: events given out {copied:.2f} times, {sent:.1f} MB"
        seconds = _predicted(found)
        rows.append(row(case, seconds, "s, predicted", "one lane", one / seconds, goal))
        if lanes == 8:
            rows += _beside_costs(name, chosen, table, alone, found)
    return [*rows, *_measured(name, program, table, workload)]


def _predicted(lanes: Sequence[LaneWork]) -> float:
    """The time of as many machines: each is sent its events, and works; the slowest counts."""
    return max(lane.seconds + lane.bytes / BANDWIDTH for lane in lanes)


def _beside_costs(
    name: str, chosen: Plan, table: pa.Table, alone: Sequence[LaneWork], found: Sequence[LaneWork]
) -> list[Row]:
    """What the busiest lane has to do, against what the strategy's cost column says of it: events, matches, seconds."""
    (group,) = chosen.lanes
    count, lanes = len(table), len(found)
    beside: list[tuple[str, float, float]] = []
    match group.split:
        case BySlice() as split:
            values = (0, count - 1)  # events are one tick apart
            sized = split.sized(*values, lanes)
            expected = count * (1 + (split.back + split.ahead) / sized.size) / lanes
        case Replicated() as split:
            own = sum(pc.sum(pc.equal(table["type"], type_)).as_py() for type_ in split.shared)
            expected = count - own + own / lanes
        case ByKey():
            expected = count / lanes
        case _:
            expected = float(count)
    beside.append(("events", max(lane.events for lane in found), expected))
    match group.split:
        case ByRank():
            beside.append(("matches", max(lane.matches for lane in found), alone[0].matches / lanes))
        case ByQuery() as placed:
            load = max(total_of(part.work for part in parts) for parts in placed.placed(lanes))
            share = load / total_of(family.work for family in placed.families)
            beside.append(("seconds", max(lane.seconds for lane in found), alone[0].seconds * share))
    return [
        row(f"{name}, {what} of one of {lanes} lanes", most, what, "cost column", most / told, "0.85..1.15")
        for what, most, told in beside
    ]


def work_per_lane(chosen: Plan, table: pa.Table, lanes: int, repeats: int = 1) -> list[LaneWork]:
    """Each lane by itself, one after the other; of several times the median."""
    batch = blocks.concat(list(read_events(table, columns=chosen.columns)))
    found = [_work(chosen, batch, lanes) for _ in range(repeats)]
    return [replace(own[0], seconds=median(one.seconds for one in own)) for own in zip(*found, strict=True)]


def _work(chosen: Plan, batch: EventBatch, lanes: int) -> list[LaneWork]:
    crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
    crew.gather(batch)
    found = []
    for member, own in zip(crew.members, shares(batch, crew.lanes), strict=True):
        start = time.process_time()
        matches = sum(len(match) for piece in blocks.pieces(own) for match in member.push(piece))
        matches += sum(map(len, member.finish()))
        busy = time.process_time() - start
        found.append(LaneWork(member.counters["events"], busy, matches, len(pack_events(narrow(own)))))
    return found


def _measured(name: str, program: Program, table: pa.Table, workload: Workload) -> list[Row]:
    """One thread and two, from events to rows: on the wall, and by CPU time, which other programs disturb less."""

    def timed(threads: int) -> tuple[float, float]:
        began = time.perf_counter(), time.process_time(), time.thread_time()
        for _ in weft.detect(table, program, strategy=workload.strategy, lanes=threads, threads=threads)._run.rows():
            pass
        wall, whole, alone = (
            clock() - at
            for clock, at in zip((time.perf_counter, time.process_time, time.thread_time), began, strict=True)
        )
        return wall, alone + (whole - alone) / threads

    both = [(*timed(1), *timed(2)) for _ in range(REPEATS)]  # by turns, so that what disturbs one disturbs the other
    wall, busy, two_wall, two_busy = (median(seconds) for seconds in zip(*both, strict=True))
    goal, case = f">= {workload.goal}", f"{name}, measured with two threads"
    return [
        row(case, two_wall, "s of wall time", "one thread", wall / two_wall, goal),
        row(case, two_busy, "s of CPU time of the busiest", "one thread", busy / two_busy, goal),
    ]


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
