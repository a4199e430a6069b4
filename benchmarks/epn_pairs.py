"""The pattern of the document's experiments, pairs of equal IDs, as it is written and split (EPN §5.2, §5.3).

*Plain* is the search slot by slot over the whole pattern. There, a split is what the document prints: two patterns, the
first of which derives an event for each of its candidates. Such a split finds other sets, and makes so many derived
events that it is run on few events only; its sets are certain when the next event has come, up to which latency counts.
*In blocks* is what weft does, with splits that find the same. Times are CPU time; beside them stands how many events
were looked at, which does not depend on the machine.

What holds: slot by slot with derived events, the whole pattern has the best throughput and 3:1 the worst (Table 6),
easier IDs in the first part cost throughput (Table 10), and a rarer last type makes latency longer (Table 9).
Latency does not fall with the split: where all derived events fit, the window is so small that the whole is cheap.
In blocks, what is looked at when sets are complete falls with each block that is worked out early, but by a tenth to a
third only, since nothing is tried twice: the trade of Table 6 and the dominated whole of sixteen types are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from benchmarks.measure import Row, row

import weft
from weft.algebra.query import Program
from weft.optimizer.splits import quick_split
from weft.plan.operators import Layer, Plan, SituationOp
from weft.plan.planner import plan
from weft.plan.search import search_of
from weft.statistics import Statistics
from weft.tuning.goal import TuningPoint, best_by_alpha, coefficient_of, pareto
from weft.tuning.simulation import Measured, Simulation
from weft.tuning.streams import Domain, Simulated

RATE = 50.0
DOCUMENT = {"0:4": (113, 134), "1:3": (80, 50), "2:2": (104, 30), "3:1": (44, 14)}  # events/s, ms
SENSITIVITY: dict[str, tuple[dict[str, float], dict[str, Domain], str]] = {
    "Table 8, E4 at 25/s": ({"E4": 25.0}, {}, "134 events/s, 26 ms: throughput up, latency the same"),
    "Table 9, E8 at 25/s": ({"E8": 25.0}, {}, "98 events/s, 45 ms: latency up by half"),
    "Table 10, IDs of E1 to E4 in [0,10]": (
        {},
        {f"E{n}.ID": (0, 10) for n in range(1, 5)},
        "67 events/s, 27 ms: throughput down",
    ),
    "Table 11, IDs of E5 to E8 in [0,10]": (
        {},
        {f"E{n}.ID": (0, 10) for n in range(5, 9)},
        "127 events/s, 11 ms: both better",
    ),
}
RUNS = 3
FEW = 4_000  # events


def run(scale: float = 1.0) -> list[Row]:
    """All cases; `scale` multiplies the number of events."""
    few, many = max(400, int(1_500 * scale)), max(2_000, int(20_000 * scale))
    return [
        *_whole(scale),
        *_growth(scale),
        *_table("plain, linked patterns", few, plain=True),
        *_table("in blocks", many, plain=False),
        *_table("16 types, in blocks", many, plain=False, types=16),
        *_sensitivity("plain, linked patterns", few, plain=True),
        *_sensitivity("in blocks", many, plain=False),
    ]


# ---------------------------------------------------------------- patterns


def pairs(types: int = 8, repeated: str = "first", early: int = 0) -> Program:
    """The pattern, with so many pairs worked out early."""
    split = f"split {early}:{types // 2 - early}, " if early else ""
    return weft.compile(
        f"pattern P sequence({_slots(1, types)}) where {_equal(1, types)}\n"
        f"policies {split}repeated {repeated}, consumption consume context fixed 10 minutes",
        language="epn",
        time_unit="us",
    )


def linked(types: int = 8, early: int = 0) -> Program:
    """The split as it is printed in Table 5: a pattern that derives events, and one that reads them."""
    if not early:
        return pairs(types)
    context = "context fixed 10 minutes"
    return weft.compile(
        f"pattern D sequence({_slots(1, 2 * early)}) where {_equal(1, 2 * early)} policies repeated every {context}\n"
        f"pattern P sequence(D d, {_slots(2 * early + 1, types)}) where {_equal(2 * early + 1, types)}\n"
        f"policies repeated first, consumption consume {context}",
        language="epn",
        time_unit="us",
    )


def _slots(first: int, last: int) -> str:
    return ", ".join(f"E{n} e{n}" for n in range(first, last + 1))


def _equal(first: int, last: int) -> str:
    return " and ".join(f"e{n}.ID = e{n + 1}.ID" for n in range(first, last, 2))


def planned(program: Program, *, plain: bool) -> Plan:
    """The plan of a program; `plain`: all its patterns are searched slot by slot."""
    chosen = plan(program)
    return replace(chosen, layers=tuple(map(_slot_by_slot, chosen.layers))) if plain else chosen


def _slot_by_slot(layer: Layer) -> Layer:
    operators = (
        replace(op, way=search_of(op.query.situation, in_blocks=False)) if isinstance(op, SituationOp) else op
        for op in layer.operators
    )
    return replace(layer, operators=tuple(operators))


def simulated(
    types: int = 8, rates: Mapping[str, float] | None = None, domains: Mapping[str, Domain] | None = None
) -> Simulated:
    """Events of so many types, with their rates and the domains of their IDs."""
    own = {f"E{n}": RATE for n in range(1, types + 1)} | dict(rates or {})
    return Simulated(own, ("ID",), {"ID": (0, 100), **(domains or {})}, ticks_per_second=1e6)


# ---------------------------------------------------------------- the whole pattern


def _whole(scale: float) -> Iterator[Row]:
    """A window of ten minutes, filled: 240,000 events of 8 types, 480,000 of 16."""
    for types, count in ((8, 240_000), (16, 480_000)):
        for repeated in ("first", "last"):
            events = max(FEW, int(count * scale))
            chosen = planned(pairs(types, repeated), plain=False)
            Simulation(chosen, "P", simulated(types), FEW).run((1,))  # what is not compiled yet is compiled now
            one = Simulation(chosen, "P", simulated(types), events).run((1,))
            name = f"pairs, {types} types, {repeated}, {events:,} events in a window"
            yield row(name, one.throughput, "events/s", goal=">= 200000")
            yield row(f"{name}: latency, mean", one.latency, "ms")
            yield row(f"{name}: latency, p99", one.slowest, "ms", goal="<= 2")
            yield row(f"{name}: looked at for an event", one.looked, "events")


def _growth(scale: float) -> Iterator[Row]:
    """How both searches grow with the window: slot by slot, what fails is tried again with every choice before it."""
    for count in (1_000, 4_000, 8_000):
        events = max(200, int(count * scale))
        plain, blocks = (
            Simulation(planned(pairs(), plain=plain), "P", simulated(), events).run((1,)) for plain in (True, False)
        )
        assert plain.found == blocks.found
        yield row(f"pairs, {events:,} events in a window, plain", plain.throughput, "events/s")
        ratio = blocks.throughput / plain.throughput
        yield row(f"pairs, {events:,} events in a window, in blocks", blocks.throughput, "events/s", "plain", ratio)
        looked = blocks.looked / plain.looked
        yield row(f"pairs, {events:,} events: looked at, in blocks", blocks.looked, "events", "plain", looked)


# ---------------------------------------------------------------- Tables 6 to 11


def _table(name: str, events: int, *, plain: bool, types: int = 8) -> Iterator[Row]:
    found: dict[str, TuningPoint] = {}
    late: list[float] = []
    for early in range(types // 2):
        split = f"{early}:{types // 2 - early}"
        mean = mean_of(early, events, simulated(types), plain=plain, types=types)
        found[split] = TuningPoint(mean.latency, mean.throughput)
        late.append(mean.looked_late)
        printed = "document: {} events/s, {} ms".format(*DOCUMENT[split]) if types == 8 else ""
        yield from _rows(f"Table 6, {name}, {split}", mean, printed)
    latencies = [point.latency for point in found.values()]
    whole, *_, most = found
    yield _holds(f"{name}: latency falls with each block", bool((np.diff(latencies) < 0).all()))
    yield _holds(f"{name}: the whole pattern looks at most when sets are complete", max(late) == late[0])
    yield row(f"{name}: looked at when sets are complete, most to least", max(late) / min(late), "times")
    best = max(found, key=lambda split: found[split].throughput)
    yield _holds(f"{name}: the whole pattern has the best throughput", best == whole)
    yield _holds(f"{name}: {most} has the worst throughput", min(found, key=lambda one: found[one].throughput) == most)
    front, chosen = pareto(found), best_by_alpha(found, coefficient_of(found.values()))
    yield row(f"{name}: not beaten in both: {', '.join(front)}", len(front), "splits")
    chosen_text = ", ".join(f"{alpha:g}: {split}" for alpha, split in chosen.items())
    yield row(f"{name}: best by alpha {chosen_text}", len(set(chosen.values())), "splits")
    if not plain:
        rates = Statistics(rates={f"E{n}": RATE for n in range(1, types + 1)})
        (query,) = pairs(types).queries
        quick = [*found][quick_split(query.situation, rates).split]  # type: ignore[union-attr]
        worse = found[quick].latency / min(latencies)
        yield row(f"{name}: rates alone choose {quick}: latency", found[quick].latency, "ms", "best", worse)


def _sensitivity(name: str, events: int, *, plain: bool) -> Iterator[Row]:
    """How the split 2:2 changes with rates and IDs."""
    base = mean_of(2, events, simulated(), plain=plain)
    for case, (rates, domains, printed) in SENSITIVITY.items():
        mean = mean_of(2, events, simulated(8, rates, domains), plain=plain)
        yield from _rows(f"{case}, {name}", mean, f"document: {printed}", base)


def mean_of(early: int, events: int, stream: Simulated, *, plain: bool, types: int = 8) -> Measured:
    """What a rewriting reaches, the mean of some runs."""
    program = linked(types, early) if plain else pairs(types, early=early)
    simulation = Simulation(planned(program, plain=plain), "P", stream, events, settled=2 if plain else 1)
    simulation.run((0,))
    runs = [simulation.run((number,)) for number in range(1, 1 + RUNS)]

    def mean(values: Sequence[float]) -> float:
        known = [value for value in values if not np.isnan(value)]  # nothing was found: no latency
        return float(np.mean(known)) if known else float("nan")

    return Measured(
        mean([one.latency for one in runs]),
        mean([one.slowest for one in runs]),
        mean([one.throughput for one in runs]),
        mean([one.looked for one in runs]),
        mean([one.looked_late for one in runs]),
        runs[0].found,
    )


def _rows(name: str, mean: Measured, printed: str, base: Measured | None = None) -> Iterator[Row]:
    baseline = "2:2" if base else ""
    yield row(
        f"{name}: throughput",
        mean.throughput,
        "events/s",
        baseline,
        base and mean.throughput / base.throughput,
        printed,
    )
    yield row(f"{name}: latency", mean.latency, "ms", baseline, base and mean.latency / base.latency)
    yield row(f"{name}: looked at for an event", mean.looked, "events", baseline, base and mean.looked / base.looked)
    late = base and mean.looked_late / max(base.looked_late, 1e-9)
    yield row(f"{name}: looked at when sets are complete", mean.looked_late, "events", baseline, late)


def _holds(name: str, holds: bool) -> Row:
    return row(f"shape: {name}", float(holds), "1: holds")
