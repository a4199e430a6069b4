"""Constants of the rate and parallelism model (Step, chapter 6) for this machine: each kind of component alone.

Lanes run one after the other, and the busiest one says which rate so many tasks take; to these points the forms of the
document are fitted, and the law of replication behind them; the one that is nearest is kept. A model that is near
enough to all points is written to the cache folder, where `--lanes auto` and `weft explain --tasks` find it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.scale import STEP, LaneWork, work_per_lane

import weft
from weft.plan.operators import Plan
from weft.plan.parallel.model import ONE_TASK, USUAL_WINDOW, Model, TaskModel, model_file
from weft.plan.parallel.rates import Kind
from weft.plan.planner import plan
from weft.runtime.lanes.routing import shares
from weft.runtime.reading.order import read_events

LANES = (1, 2, 4, 8, 16)
WINDOWS = (100, 1000, 5000)
ACCURATE = 0.3  # a model that is further from its points, in the mean, is not stored
LEAST, MOST_TIMES = 0.2, 20  # seconds that one lane is busy, if so many times the events are enough for that
KEYED = "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 400 EVENTS"


@dataclass(frozen=True)
class Kinds:
    """A kind of component, a program that is almost nothing else, and the strategy that shares it out."""

    kind: Kind
    strategy: str
    text: str
    language: str = "step"


CASES = (
    Kinds("exception", "replicate", STEP + "Q(*): !B/b[b.x > 2000] ; A/a"),
    Kinds("conjunction", "replicate", STEP + "Q(*): A/a ,[dur < 250] B/b"),
    Kinds("greedy next", "replicate", STEP + f"Q(*): A/a ;[dur < {USUAL_WINDOW} && a.x < b.x] B/b"),
    Kinds("any next", "replicate", STEP + "Q(*): A/a ;?[dur < 100 && a.x > b.x + 950] B/b"),
    Kinds("any iteration", "replicate", STEP + "Q(*): A/a +?[prev(a.x) != a.x && len < 5]"),
    Kinds("automaton", "slice", "SELECT * WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 100 EVENTS", "ceql"),
    Kinds("situation", "slice", "pattern P sequence(A a, B b) where a.x = b.x context fixed 100", "epn"),
    Kinds("rules", "slice", "define X() from A() as a and each B(x > a.x + 990) as b within 100 from a", "tesla"),
)


def run(scale: float = 1.0) -> list[Row]:
    """Measure, fit, write the model, and say what it is; `scale` multiplies the number of events."""
    events = _events(max(4_000, int(100_000 * scale)))
    fitted = {case.kind: _fitted(case, events) for case in CASES}
    forms: dict[Kind, TaskModel] = {kind: form for kind, (form, _) in fitted.items()}
    forms["greedy next"] = _with_windows(forms["greedy next"], events)
    dealt, copied = _sending(events)
    forms["source"] = _straight(1 / dealt)
    forms["projection"] = _straight(_projected(events))
    forms["greedy iteration"] = ONE_TASK
    fits = {kind: error for kind, (_, error) in fitted.items()}
    made = datetime.now(UTC).strftime("%Y-%m-%d")
    model = Model("calibrated", forms, dealt / copied, cores=os.cpu_count() or 1, date=made, fits=fits)
    missed = sorted(str(kind) for kind, error in fits.items() if error >= ACCURATE)
    if not missed:
        model.write(model_file())
    rows = [
        row(f"{kind}, {form.shape}", form.one_task_takes(1.0) / 1e6, "M events/s for one task", *_error(kind, fits))
        for kind, form in forms.items()
        if kind != "greedy iteration"
    ]
    told = "stored" if not missed else f"not stored: {', '.join(missed)} too far off"
    return [
        *rows,
        row("an event dealt, against one copied", model.ratio, "times"),
        row(f"the model is {told}", float(not missed), "1: stored", goal="1"),
    ]


def _error(kind: str, fits: dict[Kind, float]) -> tuple[str, float | None, str]:
    known = {str(name): error for name, error in fits.items()}
    return ("points, off by", known[kind], f"< {ACCURATE:g}") if kind in known else ("", None, "")


def _events(count: int) -> pa.Table:
    dice = np.random.default_rng(5)
    types = np.array(["A", "B"])[dice.integers(0, 2, count)]
    numbers = {"x": dice.integers(0, 1000, count), "k": dice.integers(0, 1000, count)}
    return pa.table({"type": types, "ts": np.arange(count), **numbers})


def _fitted(case: Kinds, events: pa.Table) -> tuple[TaskModel, float]:
    """The form that is nearest to what was measured, and how far it is from the points."""
    chosen = plan(weft.compile(case.text, language=case.language), strategy=case.strategy)
    if case.kind == "any iteration":  # runs are many
        events = events.slice(0, max(2_000, len(events) // 25))
    if case.kind == "conjunction":  # of events that end together, two at a time
        events = events.set_column(1, "ts", pa.array(np.arange(len(events)) // 2))
    work_per_lane(chosen, events.slice(0, 2_000), 2)
    events = _enough(chosen, events)
    seconds = [_busiest(lambda lanes=lanes: work_per_lane(chosen, events, lanes)) for lanes in LANES]
    rates = [len(events) / busy for busy in seconds]
    found = [_linear(rates), _exponential(rates)]
    if case.strategy == "replicate":
        found.append(_replication(seconds, events))
    off = [(_off(form, rates), place) for place, form in enumerate(found)]
    error, place = min(off)
    return replace(found[place], capacity=rates[0]), error


def _enough(chosen: Plan, events: pa.Table) -> pa.Table:
    """So many events that even a share of them takes a while: the same ones, again and again, later and later."""
    times = int(LEAST // max(_busiest(lambda: work_per_lane(chosen, events, 1)), LEAST / MOST_TIMES)) + 1
    extent = events["ts"][-1].as_py() + 1
    later = (events.set_column(1, "ts", pc.add(events["ts"], extent * n)) for n in range(times))
    return pa.concat_tables(later).combine_chunks()


def _busiest(work: Callable[[], list[LaneWork]]) -> float:
    return max(min(max(lane.seconds for lane in work()) for _ in range(2)), 1e-6)


def _linear(rates: Sequence[float]) -> TaskModel:
    a, b = np.polyfit(rates, LANES, 1)
    return TaskModel("linear", max(float(a), 1e-12), float(b))


def _exponential(rates: Sequence[float]) -> TaskModel:
    b, a = np.polyfit(rates, np.log(LANES), 1)
    return TaskModel("exponential", math.exp(a), max(float(b), 1e-12))


def _replication(seconds: Sequence[float], events: pa.Table) -> TaskModel:
    """Half of the events go to all lanes, half are shared out."""
    half, span = len(events) / 2, len(events) / 1e3
    known = np.array([[half + half / lanes, half * half / lanes / span] for lanes in LANES])
    a, b = np.linalg.lstsq(known, np.array(seconds), rcond=None)[0]
    return TaskModel("replication", max(float(a), 1e-12), max(float(b), 0.0))


def _off(form: TaskModel, rates: Sequence[float]) -> float:
    """How far the numbers of tasks are from those that were measured: the mean, as a part of them."""
    told = [form.tasks(rate, 1.0, replicated=rate / 2 if form.shape == "replication" else 0.0) for rate in rates]
    return float(np.mean([min(abs(one - lanes) / lanes, 9.0) for one, lanes in zip(told, LANES, strict=True)]))


def _with_windows(form: TaskModel, events: pa.Table) -> TaskModel:
    """What a larger window costs: a straight line through seconds per event."""
    costs = []
    for window in WINDOWS:
        program = weft.compile(STEP + f"Q(*): A/a ;[dur < {window} && a.x < b.x] B/b", language="step")
        costs.append(cpu_seconds(lambda program=program: weft.count(events, program), repeats=2) / len(events))
    wa, wb = np.polyfit(WINDOWS, costs, 1)
    return replace(form, wa=max(float(wa), 0.0), wb=max(float(wb), 1e-12))


def _sending(events: pa.Table) -> tuple[float, float]:
    """Seconds to deal an event to one of eight lanes, and to give a copy to each of them, by lane."""
    found = []
    for strategy, text, language in (("key", KEYED, "ceql"), ("replicate", CASES[2].text, "step")):
        chosen = plan(weft.compile(text, language=language), strategy=strategy)
        (batch, *_) = read_events(events, columns=chosen.columns)
        lanes = chosen.lanes_for(8)
        found.append(cpu_seconds(lambda b=batch, own=lanes: list(shares(b, own))) / len(batch))
    return found[0], max(found[1] / 8, 1e-12)


def _projected(events: pa.Table) -> float:
    """How many matches a second become rows."""
    program = weft.compile(STEP + "Q(*): A/a | B/b", language="step")

    def listed() -> int:
        return sum(len(rows) for rows in weft.detect(events, program)._run.rows())

    return listed() / max(cpu_seconds(listed, repeats=2), 1e-6)


def _straight(rate: float) -> TaskModel:
    """So many a second for each task."""
    return TaskModel("linear", 1 / rate, 0.0, rate)
