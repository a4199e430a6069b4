"""Step's operators in tasks (figures 6.7, 7.6 to 7.12, Table 7.1): effective throughput, which counts a copy once.

Tasks are lanes that are measured one after the other; the slowest counts, as if each had a core of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from benchmarks.calls import random_quotes
from benchmarks.figures.figure import Curves, Figure, Point, above, flat, gain
from benchmarks.step import STOCK
from benchmarks.step_lanes import HEAD, step_events

import weft
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.routing import shares
from weft.runtime.reading.order import read_events

TASKS = (1, 2, 4, 6, 8, 10)
TASKS_AXIS, RATE_AXIS = "tasks", "effective throughput, events/s"
SINGLY = 200  # events of a measurement that pushes them one by one
HIGHER = "a.x < b.x"


class Throughput(NamedTuple):
    """Events in a second: those of the input, and all copies."""

    effective: float
    total: float


def throughput(pattern: str, table: pa.Table, share: float, tasks: int, batch: int | None = None) -> Throughput:
    """What so many tasks take, in batches of some size; events that are pushed one by one are few."""
    program = weft.compile(f"{HEAD.format(share, round(1 - share, 3))}Q(*): {pattern}", language="step")
    chosen = plan(program, strategy="replicate")
    whole = blocks.concat(list(read_events(table, columns=chosen.columns)))
    first = len(whole) // 2
    count = min(len(whole) - first, SINGLY if batch == 1 else len(whole))
    crew = ThreadedMatcher(chosen, chosen.lanes_for(tasks))
    crew.gather(whole)
    slowest, copies = 1e-9, 0
    begun = shares(blocks.slice(whole, 0, first), crew.lanes)
    rest = shares(blocks.slice(whole, first, count), crew.lanes)
    for member, before, own in zip(crew.members, begun, rest, strict=True):
        _push(member.push, before, None)
        start = time.process_time()
        _push(member.push, own, batch)
        slowest, copies = max(slowest, time.process_time() - start), copies + len(own)
    return Throughput(count / slowest, copies / slowest)


def _push(push: Callable[..., object], events: blocks.EventBatch, batch: int | None) -> None:
    size = batch or 1 << 14
    for begin in range(0, len(events), size):
        for _ in push(blocks.slice(events, begin, min(size, len(events) - begin))):  # type: ignore[attr-defined]
            pass


def count_of(scale: float, most: int = 60_000, least: int = 20_000) -> int:
    """How many events are measured; of fewer than `least`, what a lane costs that has nothing to do would count."""
    return max(least, int(most * scale))


def by_tasks(
    scale: float,
    cases: dict[str, tuple[str, int | None]],
    share: float = 0.5,
    together: int = 1,
    least: int = 20_000,
) -> Iterator[Point]:
    """Effective throughput by tasks, of patterns in batches of some size."""
    table = step_events(count_of(scale, least=least), share, together)
    for series, (pattern, batch) in cases.items():
        throughput(pattern, table.slice(0, 1_000), share, 2)  # kernels are compiled
        for tasks in TASKS:
            yield Point(series, tasks, throughput(pattern, table, share, tasks, batch).effective)


def conjunctions(scale: float) -> Iterator[Point]:
    """Figure 7.9: conjunction of events that last, each up to half the greatest duration of a pair."""
    for longest in (250, 5000, 25_000):
        table = lasting_events(count_of(scale, least=2_000), longest // 2)
        pattern = f"A/a ,[dur < {longest}] B/b"
        throughput(pattern, table.slice(0, 1_000), 0.5, 2)  # kernels are compiled
        for tasks in TASKS:
            yield Point(f"W {longest}", tasks, throughput(pattern, table, 0.5, tasks, 500).effective)


def lasting_events(count: int, longest: int) -> pa.Table:
    """Events of two types, one every ten ticks, that last up to so long."""
    table, ends = step_events(count, 0.5, 1), np.arange(count) * 10
    starts = ends - np.random.default_rng(12).integers(0, longest, count)
    return table.drop_columns(["ts"]).append_column("start", pa.array(starts)).append_column("end", pa.array(ends))


def iterations(scale: float) -> Iterator[Point]:
    """Figure 7.10: any iteration by tasks, lengths and batches; every event meets all before it."""
    table = step_events(max(200, int(1_000 * scale)), 1.0, 1)
    cases = {"B 500, L 3": (3, None), "B 500, L 4": (4, None), "B 1, L 3": (3, 1)}
    for series, (length, batch) in cases.items():
        pattern = f"A/a +?[prev(a.x) != a.x && len < {length}]"
        for tasks in TASKS:
            yield Point(series, tasks, throughput(pattern, table, 1.0, tasks, batch).effective)


def greedy_iteration(scale: float) -> Iterator[Point]:
    """Table 7.1: greedy iteration by the greatest length of a sequence."""
    table = random_quotes(count_of(scale, 400_000), together=1)
    for length in (10, 25, 50, 75, 100):
        condition = f"prev(S.name) = S.name && prev(S.price) != S.price && len < {length}"
        program = weft.compile(f"{STOCK}Q(*): Stock/S +[{condition}]", language="step")
        weft.count(table.slice(0, 1000), program)
        start = time.process_time()
        weft.count(table, program)
        yield Point("greedy iteration", length, len(table) / (time.process_time() - start))


def replication(scale: float) -> Iterator[Point]:
    """Figure 7.11: all copies against events of the input, for any next."""
    pattern, table = f"A/a ;?[dur < 100 && {HIGHER} && b.x > 990] B/b", step_events(count_of(scale), 0.5, 1)
    for tasks in TASKS:
        found = throughput(pattern, table, 0.5, tasks)
        yield Point("total", tasks, found.total)
        yield Point("effective", tasks, found.effective)


def ratios(scale: float) -> Iterator[Point]:
    """Figure 7.12: a replicated event for each shuffled one, and for four."""
    for series, share in (("1:1", 0.5), ("1:4", 0.8)):
        table = step_events(count_of(scale), share, 1)
        for tasks in TASKS:
            pattern = f"A/a ;[dur < 100 && {HIGHER} && b.x > 900] B/b"
            yield Point(series, tasks, throughput(pattern, table, share, tasks).effective)


def windows_and_batches(curves: Curves) -> bool:
    """More tasks help, and batches help at every number of tasks."""
    singly = [name for name in curves if name.startswith("B 1,")]
    batched = [name for name in curves if name.startswith("B 500")]
    return all(above(curves[batched[0]], curves[name]) for name in singly) and all(
        gain(curves[name]) > 1 for name in batched
    )


def larger_is_slower(curves: Curves) -> bool:
    """The larger the window, the slower; windows are in ascending order."""
    named = list(curves.values())
    return all(above(small, large, 0.3) for small, large in pairwise(named))


def _next(pick: str, window: int) -> str:
    return f"A/a {pick}[{HIGHER} && a.x > 0 && dur < {window}] B/b"


def _figure(
    number: str,
    title: str,
    run: Callable[[float], Iterator[Point]],
    shape: str,
    holds: Callable[[Curves], bool],
    published: Curves | None = None,
) -> Figure:
    return Figure(f"step-{number}", title, TASKS_AXIS, RATE_AXIS, run, shape, holds, published or {}, log="y")


BATCHED = "batches of 500 are faster than single events, and more tasks help"
FIGURES = (
    _figure(
        "6.7",
        "greedy next by window, single events",
        partial(by_tasks, cases={f"W {w}": (_next(";", w), 1) for w in (100, 1000, 5000)}, together=10, least=5_000),
        "larger windows are slower",
        larger_is_slower,
    ),
    _figure(
        "7.6",
        "greedy next",
        partial(
            by_tasks,
            cases={
                "B 1, W 5000": (_next(";", 5000), 1),
                "B 500, W 5000": (_next(";", 5000), 500),
                "B 500, W 100": (_next(";", 100), 500),
            },
            together=10,
        ),
        BATCHED,
        windows_and_batches,
        {
            "B 1, W 5000": [(2, 40_469)],
            "B 500, W 5000": [(2, 111_811)],
            "B 500, W 100": [(4, 605_138)],
        },
    ),
    _figure(
        "7.7",
        "any next",
        partial(
            by_tasks,
            cases={
                "B 1, W 50": (_next(";?", 50), 1),
                "B 500, W 50": (_next(";?", 50), 500),
                "B 500, W 100": (_next(";?", 100), 500),
            },
            together=10,
            least=5_000,
        ),
        BATCHED,
        windows_and_batches,
        {"B 500, W 100": [(4, 323_605)]},
    ),
    _figure(
        "7.8",
        "exception, nothing unwanted",
        partial(by_tasks, cases={"B 1": ("!B/b ; A/a", 1), "B 500": ("!B/b ; A/a", 500)}, share=1.0),
        "batches of 500 are faster than single events, and it grows with the tasks",
        lambda curves: above(curves["B 500"], curves["B 1"]) and gain(curves["B 500"]) > 1,
        {"B 500": [(1, 230_000)]},
    ),
    _figure(
        "7.9",
        "conjunction",
        conjunctions,
        "larger windows are slower, and gain more from tasks",
        lambda curves: larger_is_slower(curves) and gain(curves["W 25000"]) > gain(curves["W 250"]),
        {"W 250": [(1, 18_860)], "W 25000": [(1, 930)]},
    ),
    _figure(
        "7.10",
        "any iteration",
        iterations,
        BATCHED,
        windows_and_batches,
        {"published, L 10": [(7, 470_000), (10, 470_000)]},
    ),
    Figure(
        "step-table-7.1",
        "greedy iteration",
        "max. iteration sequence length",
        "throughput, events/s",
        greedy_iteration,
        "the length matters little",
        lambda curves: flat(curves["greedy iteration"], 2),
        {"greedy iteration": [(10, 439_123), (25, 424_228), (50, 592_129), (75, 526_957), (100, 524_729)]},
    ),
    Figure(
        "step-7.11",
        "events processed in total, and effectively",
        TASKS_AXIS,
        "throughput, events/s",
        replication,
        "total grows faster with the tasks than effective",
        lambda curves: (
            gain(curves["total"]) > gain(curves["effective"]) and above(curves["total"], curves["effective"])
        ),
    ),
    _figure(
        "7.12",
        "replicated to shuffled events 1:1 and 1:4",
        ratios,
        "1:4 gains more from tasks than 1:1",
        lambda curves: gain(curves["1:4"]) > gain(curves["1:1"]),
    ),
)
