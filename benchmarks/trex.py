"""T-Rex's own workloads: a thousand rules at once, with full windows (TREX sections 5.1 and 5.2).

Microseconds of CPU time per event; each firing leaves as columns of Arrow arrays, with its positions and fields. The
first stretch of a stream fills the windows and is not measured. The definition is checked on a few events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import pyarrow as pa
from benchmarks import trex_workloads as workloads
from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.threads import gains

import weft
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import read_events

PER_EVENT, PER_FIRING = 1.0, 0.03  # microseconds: what is allowed
SAMPLE, PART = 100, 20  # events on which engines are compared, and a rule in so many


def run(scale: float = 1.0, threads: int | None = None) -> list[Row]:
    """All cases; `scale` multiplies the number of events. With `threads`, what they gain where rules share them."""
    if threads is not None:
        return _threads(scale, threads)
    return [
        *_default(scale),
        *_fires(scale),
        *_averages(scale),
        *_negation(scale),
        *_consumption(scale),
        *_filters(scale),
        *_deployment(),
    ]


@dataclass(frozen=True)
class Cost:
    """What events cost, and how many firings there were."""

    micros: float  # per event
    firings: float  # per event

    @property
    def name(self) -> str:
        """The number of firings in words."""
        return f"{self.firings:,.1f} firings per event"

    def against(self, per_event: float = PER_EVENT) -> float:
        """The share of what is allowed that was used."""
        return self.micros / (per_event + PER_FIRING * self.firings)


def _cost(program: Program | str, table: pa.Table, warm: int, *, repeats: int = 4) -> Cost:
    """Cost of the events after the first `warm` ones, which fill the windows: the least of several runs."""
    chosen = plan(weft.compile(program, language="tesla") if isinstance(program, str) else program)
    first = list(read_events(table.slice(0, warm), columns=chosen.columns))
    rest = list(read_events(table.slice(warm), columns=chosen.columns))
    count = len(table) - warm
    best, firings = float("inf"), 0
    for _ in range(repeats):
        matcher = Matcher(chosen)
        _push(matcher, first)
        start = time.process_time()
        firings = _push(matcher, rest)
        best = min(best, time.process_time() - start)
    return Cost(best / count * 1e6, firings / count)


def _push(matcher: Matcher, batches: Sequence[EventBatch]) -> int:
    return sum(len(found) for batch in batches for found in matcher.push(batch))


def _measured(case: str, text: str, table: pa.Table, warm: int, per_event: float = PER_EVENT) -> Row:
    cost = _cost(text, table, warm)
    allowed = f"{per_event:g} us + {PER_FIRING:g} per firing"
    return row(f"{case}, {cost.name}", cost.micros, "us per event", allowed, cost.against(per_event), "<= 1")


def _checked(case: str, text: str, table: pa.Table) -> Row:
    """The cost of the definition for some of the rules on a few events, where it must say the same."""
    program = weft.compile("\n".join(text.splitlines()[::PART]), language="tesla")
    few = table.slice(0, SAMPLE).to_pylist()

    def ids(engine: str) -> list[str]:
        return [match.id for match in weft.detect(few, program, engine=engine)]

    if ids("local") != ids("meaning"):
        raise AssertionError(f"{case}: the engine and the definition differ")
    fast, seconds = cpu_seconds(lambda: ids("local")), cpu_seconds(lambda: ids("meaning"), repeats=1)
    name = f"{case}, by the definition: {len(program.queries)} rules, {SAMPLE} events"
    return row(name, seconds / SAMPLE * 1e6, "us per event", "the engine", seconds / fast)


def _seconds(scale: float, seconds: float) -> float:
    return workloads.WARM_UP + max(1.0, seconds * scale)


def _default(scale: float) -> list[Row]:
    rows = []
    for pick, rate, seconds in (("last", 5000, 10), ("first", 5000, 10), ("each", 500, 4)):
        table = workloads.chain_events(_seconds(scale, seconds), rate)
        case = f"default, {pick}, {rate} events/s"
        rows.append(_measured(case, workloads.chains(pick), table, workloads.WARM_UP * rate))
    rows.append(_checked("default, last", workloads.chains("last"), workloads.chain_events(workloads.WARM_UP, 50)))
    table = workloads.chain_events(_seconds(scale, 10), 5000, states=5)
    text = workloads.chains("last", states=5)
    return [*rows, _measured("5 states, last, 5000 events/s", text, table, workloads.WARM_UP * 5000)]


def _fires(scale: float) -> list[Row]:
    rows = []
    for pick, rate, seconds in (("last", 2000, 10), ("each", 100, 4)):
        for share in (0.1, 0.5, 0.9):
            table = workloads.pair_events("Smoke", "Temp", share, _seconds(scale, seconds), rate)
            case = f"fire, {pick}, {share:.0%} Smoke, {rate} events/s"
            rows.append(_measured(case, workloads.fires(pick), table, workloads.WARM_UP * rate))
    return [*rows, _checked("fire, each, 90% Smoke", workloads.fires("each"), table)]


def _threads(scale: float, threads: int) -> list[Row]:
    """T-Rex 5.2.6: the rows of the table of rules are shared out to threads, as the plan of `query` places them."""
    rows: list[Row] = []
    scenarios = (("fire", workloads.fires), ("default", workloads.chains))
    for (name, text), pick in product(scenarios, ("last", "each")):
        rate, seconds = (2000, 400) if pick == "last" else (100, 400)
        table = workloads.chain_events(_seconds(scale, seconds), rate)
        if name == "fire":
            table = workloads.pair_events("Smoke", "Temp", 0.5, _seconds(scale, seconds), rate)
        chosen = plan(weft.compile(text(pick), language="tesla"), strategy="query", lanes=threads)
        whole = blocks.concat(list(read_events(table, columns=chosen.columns)))
        warm = workloads.WARM_UP * rate
        events = blocks.slice(whole, 0, warm), blocks.slice(whole, warm, len(whole) - warm)
        goal = ">= 1.6" if name == "fire" else ""
        rows += gains(f"{name}, {pick}, {rate} events/s", chosen, threads, events, goal)
    return rows


def _averages(scale: float) -> list[Row]:
    rows = []
    for share in (0.1, 0.5, 0.9):
        table = workloads.pair_events("Smoke", "Temp", share, _seconds(scale, 10), 500)
        case = f"average, {share:.0%} Smoke, 500 events/s"
        rows.append(_measured(case, workloads.averages(), table, workloads.WARM_UP * 500, per_event=2.0))
    return [*rows, _checked("average, 90% Smoke", workloads.averages(), table)]


def _negation(scale: float) -> list[Row]:
    rows = []
    for share in (0.01, 0.1):
        table = workloads.pair_events("Rain", "Temp", share, 2 + max(1.0, 10 * scale), 2000)
        with_it, without = (_cost(workloads.droughts(negated=negated), table, 4000) for negated in (True, False))
        case = f"no rain, {share:.0%} Rain, {with_it.name}"
        rows.append(_compared(case, with_it, f"without the negation, {without.firings:,.1f} firings", without))
    return [*rows, _checked("no rain, 10% Rain", workloads.droughts(), table)]


def _consumption(scale: float) -> list[Row]:
    rows = []
    for pick, rate, seconds in (("last", 5000, 10), ("each", 500, 4)):
        table = workloads.chain_events(_seconds(scale, seconds), rate)
        texts = (workloads.chains(pick, consuming=consuming) for consuming in (True, False))
        with_it, without = (_cost(text, table, workloads.WARM_UP * rate) for text in texts)
        case = f"default, {pick}, consuming, {with_it.name}"
        rows.append(_compared(case, with_it, f"without consuming, {without.firings:,.1f} firings", without))
    return rows


def _compared(case: str, cost: Cost, baseline: str, other: Cost) -> Row:
    return row(case, cost.micros, "us per event", baseline, cost.micros / other.micros, "<= 2")


def _filters(scale: float) -> list[Row]:
    count = max(1 << 14, int((1 << 18) * scale))
    few, many = (
        _cost(workloads.filters(rules), workloads.filter_events(2 * count, rules), count, repeats=2)
        for rules in (1000, 100_000)
    )
    return [
        row(f"1000 filters, {few.name}", few.micros, "us per event"),
        row(f"100000 filters, {many.name}", many.micros, "us per event", "1000", many.micros / few.micros, "< 2"),
    ]


def _deployment() -> list[Row]:
    rows = []
    for case, text in (("default", workloads.chains("last")), ("fire", workloads.fires("each"))):
        first, _, _ = text.partition(";")
        all_rules, one_rule = (cpu_seconds(partial(_deploy, part)) for part in (text, first))
        rows.append(row(f"1000 rules, {case}, compiled and deployed", all_rules, "s", goal="< 1"))
        rows.append(row(f"1 rule, {case}, compiled and deployed", 1e3 * one_rule, "ms"))
    return rows


def _deploy(text: str) -> Program:
    program = weft.compile(text, language="tesla")
    Matcher(plan(program))
    return program
