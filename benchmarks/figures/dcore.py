"""DCORE's figures (chapter 6): one query whose matches explode, on one unit, dealt to units, and shared out by rank."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.dcore import DEALINGS, PATTERNS, UNITS, by_configurations, core, dealt, lanes_work, stream
from benchmarks.figures.figure import Curves, Figure, Point, above, falls, flat, gain, rises, values

from weft.plan.partitioning.dealing import variation

SHORT = {"round robin": "DCERE RR", "two choices": "DCERE PoTC", "exact search": "DCERE ES"}
LEAST = 128  # matches


def sizes(scale: float) -> list[int]:
    """Numbers of matches, a million at scale 1."""
    return sorted({max(LEAST, int(size * scale)) for size in (1_000, 10_000, 100_000, 1_000_000)})


def queries(scale: float) -> Iterator[Point]:
    """Figure 6.1: the queries, and what the filter leaves of their matches."""
    for name in PATTERNS:
        types = stream(name, max(LEAST, int(10_000 * scale)))
        times = core(name, types)
        yield Point("before the filter", name, times.listing.matches)
        yield Point("A[id] = B[id]", name, times.kept)


def streams(scale: float) -> Iterator[Point]:
    """Figure 6.2: how long a stream must be for so many complex events."""
    for name in PATTERNS:
        for size in (100, *sizes(scale)):
            yield Point(name, size, len(stream(name, size)))


def growing(scale: float) -> Iterator[Point]:
    """Figure 6.3: eight units, more and more complex events."""
    for name in ("Q2", "Q3"):
        for size in sizes(scale):
            types = stream(name, size)
            times = core(name, types)
            matches = times.listing.matches
            yield Point(f"{name} CORE", matches, times.whole * 1e3)
            for dealing in DEALINGS:
                yield Point(f"{name} {SHORT[dealing]}", matches, times.dcere(dealt(matches, 8, dealing)) * 1e3)
            yield Point(f"{name} DCORE", matches, times.dcore(lanes_work(name, "", "rank", types, 8)) * 1e3)


def balance(scale: float) -> Iterator[Point]:
    """Figure 6.4: the coefficient of variation of the load of eight units."""
    for name in ("Q2", "Q3"):
        types = stream(name, 1_000_000)  # at any scale: with fewer, some configurations have a large part of all
        lanes = lanes_work(name, "", "rank", types, 8)
        matches = sum(lane.matches for lane in lanes)
        for dealing in DEALINGS:
            yield Point(name, SHORT[dealing].removeprefix("DCERE "), variation(dealt(matches, 8, dealing)))
        yield Point(name, "MCEE", variation(by_configurations(name, types, 8)))
        yield Point(name, "DCORE", variation([float(lane.matches) for lane in lanes]))


def few(scale: float) -> Iterator[Point]:
    """Figure 6.5: few complex events of Q2 on 1 to 10 units, in steps: visits and matches of the slowest unit."""
    for size in (1024, 2048):
        types = stream("Q2", size)
        (alone,) = lanes_work("Q2", "", "rank", types, 1)
        for units in range(1, 11):
            lanes = lanes_work("Q2", "", "rank", types, units)
            yield Point(f"DCORE, {size}", units, max(lane.visits + lane.matches for lane in lanes))
            tested = max(dealt(alone.matches, units, "round robin"))
            yield Point(f"DCERE, {size}", units, alone.visits + alone.matches + tested)


def heavy(scale: float) -> Iterator[Point]:
    """Figure 6.6: 1 to 10 units, more and more complex events."""
    for name in PATTERNS:
        types = stream(name, max(LEAST, int(1_000_000 * scale)))
        times = core(name, types)
        for units in UNITS:
            yield Point(name, units, times.dcore(lanes_work(name, "", "rank", types, units)) * 1e3)


def each_unit(scale: float) -> Iterator[Point]:
    """Figure 6.7: the work of each of eight units."""
    for name in PATTERNS:
        types = stream(name, max(1024, int(1_000_000 * scale)))
        for number, lane in enumerate(lanes_work(name, "", "rank", types, 8), start=1):
            yield Point(name, str(number), lane.visits + lane.matches)


def optimal(scale: float) -> Iterator[Point]:
    """Figure 6.8: against CORE divided by the number of units."""
    name = "Q1"
    types = stream(name, max(LEAST, int(2_000_000 * scale)))
    times = core(name, types)
    for units in (2, 4, 6, 8):
        yield Point("DCORE", str(units), times.dcore(lanes_work(name, "", "rank", types, units)) * 1e3)
        yield Point("CORE / units", str(units), times.whole / units * 1e3)


def best_of_all(curves: Curves) -> bool:
    """All grow, and DCORE is best at the largest size."""
    grow = all(gain(curve) > 1 for curve in curves.values())
    return grow and all(
        curves[f"{name} DCORE"][-1][1] <= min(curve[-1][1] for series, curve in curves.items() if name in series)
        for name in ("Q2", "Q3")
    )


def even(curves: Curves) -> bool:
    """All below 0.3, DCORE close to 0."""
    return all(y < 0.3 for curve in curves.values() for _, y in curve) and all(
        dict(curve)["DCORE"] < 0.02 for curve in curves.values()
    )


def gap_grows(curves: Curves) -> bool:
    """Above CORE / units, by a factor that grows."""
    pairs = zip(values(curves["DCORE"]), values(curves["CORE / units"]), strict=True)
    ratios = [(number, one / other) for number, (one, other) in enumerate(pairs)]
    return above(curves["DCORE"], curves["CORE / units"], 0.2) and rises(ratios, 0.3)


def scales(curves: Curves) -> bool:
    """DCORE falls almost as 1/units, DCERE does not."""
    return all(
        falls(curves[f"DCORE, {size}"], 0.3) and gain(curves[f"DCORE, {size}"]) < gain(curves[f"DCERE, {size}"])
        for size in (1024, 2048)
    )


FIGURES = (
    Figure(
        "dcore-6.1",
        "the queries",
        "query",
        "complex events",
        queries,
        "the filter leaves a part of each",
        lambda curves: above(curves["before the filter"], curves["A[id] = B[id]"], 0),
        form="bars",
        log="y",
    ),
    Figure(
        "dcore-6.2",
        "the streams",
        "complex events",
        "events of the stream",
        streams,
        "ten A and ten B for 100 complex events of Q1, seven B for Q2",
        lambda curves: dict(curves["Q1"])[100] == 21 and dict(curves["Q2"])[100] == 9,
        published={"Q1": [(100, 21)], "Q2": [(100, 9)]},
        log="xy",
    ),
    Figure(
        "dcore-6.3",
        "complex predicates, eight units",
        "complex events",
        "execution time, ms",
        growing,
        "all grow, the strategies of DCERE are alike, and DCORE is best",
        best_of_all,
        log="xy",
    ),
    Figure(
        "dcore-6.4",
        "balance of eight units",
        "distribution strategy",
        "coefficient of variation",
        balance,
        "all below 0.3, DCORE close to 0",
        even,
        published={"at most": [("RR", 0.3), ("DCORE", 0.3)]},
        form="bars",
    ),
    Figure(
        "dcore-6.5",
        "few complex events of Q2",
        "processing units",
        "steps of the slowest unit",
        few,
        "DCORE scales almost linearly, DCERE does not",
        scales,
    ),
    Figure(
        "dcore-6.6",
        "many complex events",
        "processing units",
        "execution time, ms",
        heavy,
        "distribution pays for a million complex events",
        lambda curves: all(gain(curve) < 1 for curve in curves.values()),
    ),
    Figure(
        "dcore-6.7",
        "work of each of eight units",
        "processing unit",
        "steps",
        each_unit,
        "no difference between the units",
        lambda curves: all(flat(curve, 1.1) for curve in curves.values()),
        form="bars",
    ),
    Figure(
        "dcore-6.8",
        "against CORE divided by the units, Q1",
        "processing units",
        "execution time, ms",
        optimal,
        "close to CORE / units at two units, and the gap grows",
        gap_grows,
        form="bars",
    ),
)
