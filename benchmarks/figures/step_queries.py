"""Step's whole queries (Tables 7.2 to 7.5): measured and estimated rates of components, and what they use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from benchmarks.calls import calls, quotes
from benchmarks.figures.figure import Curves, Figure, Point
from benchmarks.step import CALL, FRAUD, SPIKE, STOCK

import weft
from weft.plan.parallel.model import model_of
from weft.plan.parallel.rates import components_of
from weft.plan.parallel.tasks import lanes_for, tasks_of

STOCKS, CALLS = 500_000, 180_000  # events in a second, of the sources
MEASURED, ESTIMATED, TASKS = "measured, events/s", "estimated, events/s", "tasks"
PATTERNS = {
    "S1": "Stock/S1+[prev(S1.price) < S1.price && prev(S1.name) = S1.name && len > 75 && len < 200]",
    "S2": "Stock/S2+[prev(S2.price) > S2.price && prev(S2.name) = S2.name && len > 100 && len < 300]",
    "next": 'Call/Eve[dur = 0 && Eve.userTyp = "secret"] ;[Eve.fromNo = Alice.toNo && dur < 3600] '
    "Call/Alice[Alice.unitPrice > 10]",
}


def _count(table: pa.Table, text: str) -> int:
    return sum(weft.count(table, weft.compile(text, language="step")).values())


def _rate(table: pa.Table, text: str) -> tuple[float, float]:
    """Events in a second of CPU time, and how many matches each event makes."""
    program = weft.compile(text, language="step")
    weft.count(table.slice(0, 1000), program)
    start = time.process_time()
    found = sum(weft.count(table, program).values())
    return len(table) / (time.process_time() - start), found / len(table)


def _estimates(text: str) -> Iterator[Point]:
    program = weft.compile(text, language="step")
    components = components_of(program)
    tasks = tasks_of(components, model_of("step2012"))
    seen: dict[str, int] = {}
    for component, task in zip(components, tasks, strict=True):
        seen[component.kind] = seen.get(component.kind, 0) + 1
        name = f"{component.kind} {seen[component.kind]}"
        yield Point(ESTIMATED, name, component.rate_in)
        yield Point(TASKS, name, task.count)


def spike(scale: float) -> Iterator[Point]:
    """Table 7.2: the stock monitoring query."""
    table = quotes(max(5_000, int(500_000 * scale)))
    rate, found = _rate(table, SPIKE)
    runs = sum(_count(table, f"{STOCK}Q(*): {PATTERNS[name]}") for name in ("S1", "S2")) / len(table)
    yield from _estimates(SPIKE)
    measured = {"source 1": rate, "greedy iteration 1": rate, "greedy iteration 2": rate}
    measured |= {"greedy next 1": rate * runs, "projection 1": rate * found}
    yield from (Point(MEASURED, name, value) for name, value in measured.items())


def fraud(scale: float) -> Iterator[Point]:
    """Table 7.4: the fraud detection query."""
    table = calls(max(5_000, int(200_000 * scale)))
    rate, found = _rate(table, FRAUD)
    pairs = _count(table, f"{CALL}Q(*): {PATTERNS['next']}") / len(table)
    yield from _estimates(FRAUD)
    measured = {
        "source 1": rate,
        "greedy next 1": rate,
        "greedy iteration 1": rate * pairs,
        "projection 1": rate * found,
    }
    yield from (Point(MEASURED, name, value) for name, value in measured.items())


def resources(scale: float, text: str, stock: bool) -> Iterator[Point]:
    """Tables 7.3 and 7.5: workers by the model, what of a CPU each has to do at the rate of the sources, and memory."""
    table = quotes(max(20_000, int(500_000 * scale))) if stock else calls(max(20_000, int(200_000 * scale)))
    program, rate = weft.compile(text, language="step"), STOCKS if stock else CALLS
    weft.count(table.slice(0, 1000), program)
    start = time.process_time()
    weft.count(table, program)
    busy, workers = (time.process_time() - start) / len(table) * rate, lanes_for(program, model_of("step2012"))
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
    yield Point("measured", "worker count", workers)
    yield Point("measured", "CPU of a worker, %", 100 * busy / workers)
    yield Point("measured", "memory, MB", resident)


def conservative(curves: Curves) -> bool:
    """The estimated rates of components behind the sources are above the measured shares."""
    measured, estimated = dict(curves[MEASURED]), dict(curves[ESTIMATED])
    faster = measured["source 1"] / estimated["source 1"]
    return all(measured[name] <= 1.1 * faster * estimated[name] for name in measured if name in estimated)


def enough(curves: Curves, *workers: int) -> bool:
    """As many workers as in the document, and none has more than one CPU to do."""
    found = dict(curves["measured"])
    return found["worker count"] in workers and found["CPU of a worker, %"] <= 100


def _spike_resources(scale: float) -> Iterator[Point]:
    return resources(scale, SPIKE, stock=True)


def _fraud_resources(scale: float) -> Iterator[Point]:
    return resources(scale, FRAUD, stock=False)


SHAPE = "estimates are conservative: measured rates, against the sources', are not above them"
FIGURES = (
    Figure(
        "step-table-7.2",
        "stock monitoring query",
        "component",
        "value",
        spike,
        SHAPE,
        conservative,
        {
            MEASURED: [
                ("greedy iteration 1", 518_788),
                ("greedy iteration 2", 518_856),
                ("greedy next 1", 1_644),
                ("projection 1", 197),
            ]
        },
        "bars",
        "y",
    ),
    Figure(
        "step-table-7.3",
        "resources of the stock monitoring query",
        "resource",
        "value",
        _spike_resources,
        "three workers, or four as the document finds right; none has more to do than a CPU can",
        lambda curves: enough(curves, 3, 4),
        {"measured": [("worker count", 3), ("CPU of a worker, %", 140), ("memory, MB", 4485)]},
        "bars",
        "y",
    ),
    Figure(
        "step-table-7.4",
        "fraud detection query",
        "component",
        "value",
        fraud,
        SHAPE,
        conservative,
        {
            MEASURED: [
                ("source 1", 227_096),
                ("greedy next 1", 211_793),
                ("greedy iteration 1", 54_411),
                ("projection 1", 397),
            ]
        },
        "bars",
        "y",
    ),
    Figure(
        "step-table-7.5",
        "resources of the fraud detection query",
        "resource",
        "value",
        _fraud_resources,
        "seven workers; none has more to do than a CPU can",
        lambda curves: enough(curves, 7),
        {"measured": [("worker count", 7), ("CPU of a worker, %", 128), ("memory, MB", 6635)]},
        "bars",
        "y",
    ),
)
