"""T-Rex's figures 5 to 15: processing time of an event, mean and 99th percentile, and throughput against input rate.

Events are pushed a few at a time after the windows have filled. Throughput is that of a queue of 100 events in front of
the engine, which serves them in the measured times: no clock of the wall decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from benchmarks import trex_workloads as workloads
from benchmarks.figures.figure import Curves, Figure, Point, flat, gain, rises
from benchmarks.figures.service import Service, measured
from benchmarks.trex_workloads import WARM_UP

RATE = 500  # events in a second of event time, where no other is said
MEAN, P99 = "mean", "99th percentile"
MICROS, FIRINGS = "processing time, us", "composite events per second"
Cases = Mapping[float | str, Callable[[float], Service]]


def default(pick: str, scale: float, *, events: int = 2_000, **given: int) -> Service:
    """The default scenario, with some of its numbers changed."""
    states, definitions = given.get("states", 2), given.get("definitions", workloads.DEFINITIONS)
    table = workloads.chain_events(WARM_UP + max(200, events * scale) / RATE, RATE, states, definitions)
    rules = given.get("rules", 1000)
    text = workloads.chains(pick, rules, states, definitions=definitions, consuming=bool(given.get("consuming")))
    return measured(text, table, WARM_UP * RATE)


def times(scale: float, cases: Mapping[str, Cases]) -> Iterator[Point]:
    """Mean and 99th percentile of the processing time of an event."""
    for policy, own in cases.items():
        for x, case in own.items():
            service = case(scale)
            yield Point(f"{policy}, {MEAN}", x, service.mean * 1e6)
            yield Point(f"{policy}, {P99}", x, service.percentile(99) * 1e6)


def rates(scale: float, cases: Mapping[str, Callable[[float], Service]]) -> Iterator[Point]:
    """Composite events in a second, by the rate of the input."""
    for series, case in cases.items():
        service = case(scale)
        for share in (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
            rate = share / service.mean
            yield Point(series, rate, service.queued(rate).firings)


def _policies(
    make: Callable[..., Callable[[float], Service]], values: tuple[float, ...], *picks: str
) -> dict[str, Cases]:
    return {f"{pick}-within": {value: make(pick, value) for value in values} for pick in picks or ("each", "last")}


def _states(pick: str, states: float) -> Callable[[float], Service]:
    return partial(default, pick, states=int(states))


def _triggered(pick: str, rules: float) -> Callable[[float], Service]:
    return partial(default, pick, definitions=max(1, int(1000 / rules)))


def _deployed(pick: str, rules: float) -> Callable[[float], Service]:
    """So many rules, ten of which are triggered by an event."""
    return partial(default, pick, rules=int(rules), definitions=int(rules) // 10)


def _sequences(pick: str, sequences: float) -> Callable[[float], Service]:
    def case(scale: float) -> Service:
        text = workloads.joined_chains(pick, int(sequences))
        table = workloads.joined_events(int(sequences), WARM_UP + max(200, 1_000 * scale) / 200, 200)
        return measured(text, table, WARM_UP * 200)

    return case


def _windows(pick: str, seconds: float) -> Callable[[float], Service]:
    def case(scale: float) -> Service:
        warm = int(seconds) + 1
        table = workloads.chain_events(warm + max(200, 2_000 * scale) / RATE, RATE)
        return measured(workloads.chains(pick, window=int(seconds)), table, warm * RATE)

    return case


def _pairs(text: str, first: str, share: float, scale: float, rate: int = 100, warm: int = WARM_UP) -> Service:
    table = workloads.pair_events(first, "Temp", share, warm + max(200, 1_000 * scale) / rate, rate)
    return measured(text, table, warm * rate)


def _filters(scale: float) -> Service:
    count = max(500, int(4_000 * scale))
    return measured(workloads.filters(1000), workloads.filter_events(2 * count, 1000), count)


def _shares(text: str, first: str, **given: int) -> dict[str, Callable[[float], Service]]:
    shares = (0.1, 0.5, 0.9)
    return {f"{share:.0%} {first}": partial(_pairs, text, first, share, **given) for share in shares}


def _negation(scale: float) -> Iterator[Point]:
    """Figure 14: the processing time, and what fires, by the share of rain."""
    for share in (0.01, 0.05, 0.1, 0.2):
        service = _pairs(workloads.droughts(), "Rain", share, scale, 500, 2)
        yield Point(f"{MEAN}, us", share * 100, service.mean * 1e6)
        yield Point(f"{P99}, us", share * 100, service.percentile(99) * 1e6)
        yield Point("composite events per event", share * 100, service.firings_per_event)


def _consuming(scale: float) -> Iterator[Point]:
    """Figure 15: with and without consuming the first event of the sequence."""
    for pick in ("each", "last"):
        for name, consuming in (("reuse", 0), ("consuming", 1)):
            service = default(pick, scale, consuming=consuming)
            yield Point(f"{pick}-within, {MEAN}", name, service.mean * 1e6)
            yield Point(f"{pick}-within, {P99}", name, service.percentile(99) * 1e6)


def _cores(scale: float) -> Iterator[Point]:
    """Figure 13: rules shared out to lanes that are measured one after the other; the slowest counts."""
    table: pa.Table = workloads.chain_events(WARM_UP + max(200, 2_000 * scale) / RATE, RATE, 2, 10)
    text = workloads.chains("each", definitions=10)
    for cores in range(1, 6):
        service = measured(text, table, WARM_UP * RATE, lanes=cores)
        yield Point(MEAN, cores, service.mean * 1e6)


def grows(curves: Curves) -> bool:
    """Processing time grows under each-within."""
    return gain(curves[f"each-within, {MEAN}"]) > 1.2


def steeper(curves: Curves) -> bool:
    """It grows more under each-within than under last-within."""
    return grows(curves) and gain(curves[f"each-within, {MEAN}"]) > gain(curves[f"last-within, {MEAN}"])


def linear_then_flat(curves: Curves) -> bool:
    """Throughput rises with the input rate until events are dropped, and then not any more."""
    return all(rises(curve[:4], 0.2) and flat(curve[-2:], 1.6) for curve in curves.values())


def _figure(
    number: str,
    title: str,
    x: str,
    cases: dict[str, Cases],
    shape: str,
    holds: Callable[[Curves], bool],
    published: Curves | None = None,
    reason: str = "",
) -> Figure:
    run = partial(times, cases=cases)
    return Figure(f"trex-{number}", title, x, MICROS, run, shape, holds, published or {}, log="y", reason=reason)


def _throughput(
    number: str, title: str, cases: dict[str, Callable[[float], Service]], published: Curves | None = None
) -> Figure:
    shape = "throughput grows with the input rate until the queue drops events, then it is flat"
    run = partial(rates, cases=cases)
    return Figure(
        f"trex-{number}",
        title,
        "input rate, events/s",
        FIRINGS,
        run,
        shape,
        linear_then_flat,
        published or {},
        log="xy",
    )


PICKS = ("each", "last", "first")
PUBLISHED_8 = {
    f"each-within, {MEAN}": [(2, 200), (5, 800)],
    f"last-within, {MEAN}": [(2, 70), (5, 90)],
}
FIGURES = (
    _throughput(
        "5",
        "filtering by 1000 rules",
        {"filters": _filters},
        {"T-Rex": [(40_000, 40_000)], "Esper": [(30_000, 30_000)]},
    ),
    _throughput("6-each", "rule R1", _shares(workloads.fires("each"), "Smoke")),
    _throughput("6-last", "rule R2", _shares(workloads.fires("last"), "Smoke")),
    _throughput("7", "rule R5, aggregates", _shares(workloads.averages(), "Smoke")),
    _figure(
        "8",
        "number of states in sequences",
        "states",
        _policies(_states, (2, 3, 4, 5), *PICKS),
        "it grows with the states for each-within, and hardly for last-within",
        steeper,
        PUBLISHED_8,
    ),
    _throughput(
        "8-throughput",
        "number of states in sequences",
        {f"{pick}, {n} states": _states(pick, n) for pick in PICKS for n in (2, 3, 5)},
    ),
    _figure(
        "9",
        "number of sequences in rules",
        "sequences",
        _policies(_sequences, (1, 2, 3)),
        "it grows with the sequences for each-within, and moderately for last-within",
        steeper,
    ),
    _figure(
        "10",
        "number of deployed rules, ten triggered by an event",
        "deployed rules",
        _policies(_deployed, (1_000, 2_000, 5_000)),
        "for each-within it does not grow with the rules",
        lambda curves: gain(curves[f"each-within, {MEAN}"]) < 2,
    ),
    _figure(
        "11",
        "number of triggered rules",
        "rules triggered by an event",
        _policies(_triggered, (10, 20, 50, 100)),
        "it grows with the triggered rules",
        grows,
    ),
    _figure(
        "12",
        "average window size",
        "window, s",
        _policies(_windows, (5, 10, 15, 20)),
        "each-within grows less than linearly, last-within does not",
        lambda curves: gain(curves[f"each-within, {MEAN}"]) < 4 and flat(curves[f"last-within, {MEAN}"], 2),
    ),
    Figure(
        "trex-13",
        "scalability",
        "cores",
        MICROS,
        _cores,
        "from 1 to 5 cores the processing time is halved",
        lambda curves: gain(curves[MEAN]) < 0.75,
        {},
    ),
    Figure(
        "trex-14",
        "use of negation",
        "share of Rain events, %",
        "value",
        _negation,
        "the processing time stays, and fewer composite events are found",
        lambda curves: flat(curves[f"{MEAN}, us"], 2.5) and gain(curves["composite events per event"]) < 1,
        log="y",
        reason="The product is the reason: what an event takes is mostly what it fires, and with a tenth of Rain, "
        "five of each kind in the window of a second, none fires.",
    ),
    Figure(
        "trex-15",
        "use of the consuming clause",
        "rules",
        MICROS,
        _consuming,
        "consuming makes each-within cheaper and last-within dearer",
        lambda curves: gain(curves[f"each-within, {MEAN}"]) < 1 < gain(curves[f"last-within, {MEAN}"]),
        form="bars",
    ),
)
