"""DCORE's experiments (chapter 6): one query whose matches explode, shared out by rank, and as DCERE deals candidates.

Queries Q1 to Q3 have `a[id] = b[id]`; as in the thesis it is tested on finished candidates, so the number of matches
before it is what grows, and the window grows with the stream. Lanes run one after the other, each is measured alone,
and a time for several units is that of the slowest. Weft's own walk, which tests as it goes, stands beside.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import comb, prod

import numpy as np
import pyarrow as pa
from benchmarks.measure import Row, row

import weft
from weft.plan.operators import Plan
from weft.plan.partitioning.by_match import BLOCK
from weft.plan.partitioning.dealing import Dealer, Dealing, configurations, groups_of, variation
from weft.plan.partitioning.splits import Lane
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import read_events

FILTER = "FILTER a[id] = b[id]"
UNITS = (1, 2, 4, 6, 8, 10)
DEALINGS: tuple[Dealing, ...] = ("round robin", "two choices", "exact search")


@dataclass(frozen=True)
class Work:
    """What one lane does: seconds of CPU, nodes visited, matches before the filter."""

    seconds: float
    visits: int
    matches: int


def stream(name: str, matches: int) -> str:
    """Types of events after which, with a last C, so many matches end."""
    if name == "Q1":
        side = max(1, round(matches**0.5))
        return "A" * side + "B" * side + "C"
    if name == "Q2":
        return "A" + "B" * max(1, round(np.log2(matches + 1))) + "C"
    pairs = next(n for n in range(1, 64) if alternating(n) >= matches)
    return "AB" * pairs + "C"


def alternating(pairs: int) -> int:
    """How many matches of A+ ; B+ ; C the stream A B A B … C has: by the last A, those with it and a B after it."""
    return sum(2**before * (2 ** (pairs - before) - 1) for before in range(pairs))


PATTERNS = {"Q1": "A AS a ; B AS b ; C AS c", "Q2": "A AS a ; B+ AS b ; C AS c", "Q3": "A+ AS a ; B+ AS b ; C AS c"}


@cache
def events(types: str) -> pa.Table:
    """The stream as a table."""
    ids = np.random.default_rng(3).integers(1, 4, len(types))
    return pa.table({"type": list(types), "ts": np.arange(len(types)), "id": ids})


def planned(name: str, condition: str, strategy: str, types: str) -> tuple[Plan, EventBatch]:
    """A query's plan, and the events."""
    program = weft.compile(f"SELECT * WHERE {PATTERNS[name]} {condition} WITHIN 1 DAY")
    found = plan(program, strategy=strategy)
    (batch,) = read_events(events(types), columns=found.columns)
    return found, batch


def work_of(found: Plan, batch: EventBatch, lane: Lane) -> Work:
    """What a lane does: the least time of three. Matches are found and left."""
    visits, matches, best = 0, 0, float("inf")
    for _ in range(3):
        matcher = Matcher(found, lane)
        begin = time.process_time()
        matches = sum(map(len, matcher.push(batch)))
        best = min(best, time.process_time() - begin)
        visits = matcher.counters["visits"]
    return Work(best, visits, matches)


def lanes_work(name: str, condition: str, strategy: str, types: str, units: int) -> list[Work]:
    """What each of several lanes does."""
    found, batch = planned(name, condition, strategy, types)
    return [work_of(found, batch, lane) for lane in found.lanes_for(units)]


@dataclass(frozen=True)
class Times:
    """CORE's time by parts: listing all candidates, and testing them."""

    listing: Work
    testing: float
    kept: int

    @property
    def whole(self) -> float:
        """One process, the filter afterwards."""
        return self.listing.seconds + self.testing

    def dcore(self, lanes: Iterable[Work]) -> float:
        """The slowest lane: it lists its share, and tests it."""
        most = max(self.listing.matches, 1)
        return max(lane.seconds + self.testing * lane.matches / most for lane in lanes)

    def dcere(self, loads: list[float]) -> float:
        """The master lists, the worker with the greatest load tests."""
        return self.listing.seconds + self.testing * max(loads) / max(sum(loads), 1)


def core(name: str, types: str) -> Times:
    """One process."""
    (listing,) = lanes_work(name, "", "rank", types, 1)
    (both,) = lanes_work(name, FILTER, "match", types, 1)
    return Times(listing, max(both.seconds - listing.seconds, 0.0), both.matches)


def dealt(matches: int, units: int, dealing: Dealing) -> list[float]:
    """Loads of workers, when blocks of candidates are dealt."""
    dealer = Dealer(units, dealing, seed=1)
    block = min(BLOCK, max(1, matches // 100))
    for first in range(0, matches, block):
        dealer.deal(min(block, matches - first))
    return dealer.loads


def by_configurations(name: str, types: str, units: int) -> list[float]:
    """Loads of workers under maximal complex events: candidates of a configuration are counted, not listed.

    One that lies under several maximal events is listed for each of them.
    """
    query = f"SELECT MAX * WHERE {PATTERNS[name]} WITHIN 1 DAY"
    listed: Counter[tuple[int, ...]] = (
        Counter()
    )  # by configuration, which is dealt with all maximal events that have it
    for match in weft.detect(events(types), query):
        groups = groups_of(match.positions, [types[position] for position in match.positions])
        for configuration in configurations(groups):
            sizes = zip(groups, configuration, strict=True)
            listed[configuration] += prod(comb(len(group), kept) for group, kept in sizes)
    dealer = Dealer(units, "exact search")
    for count in listed.values():
        dealer.deal(count)
    return dealer.loads


def run(scale: float = 1.0) -> list[Row]:
    """All figures; `scale` multiplies the numbers of matches."""
    sizes = [int(size * scale) for size in (10_000, 100_000, 1_000_000)]
    return [
        *(line for name in PATTERNS for size in sizes for line in _growing(name, size)),
        *(line for name in ("Q2", "Q3") for line in _variations(name, max(1024, sizes[-1]))),
        *_few(),
        *(line for name in PATTERNS for line in _units(name, sizes[-1])),
        *_threads(max(10_000, int(1_500_000 * scale))),
    ]


def _growing(name: str, size: int) -> list[Row]:
    """Figure 6.3: eight units, more and more matches."""
    types = stream(name, size)
    times = core(name, types)
    case = f"6.3 {name}, {times.listing.matches} matches"
    lanes = lanes_work(name, "", "rank", types, 8)
    (own,) = lanes_work(name, FILTER, "one", types, 1)
    rows = [row(f"{case}, CORE", times.whole * 1e3, "ms")]
    for dealing in DEALINGS:
        seconds = times.dcere(dealt(times.listing.matches, 8, dealing))
        rows.append(row(f"{case}, DCERE {dealing}, 8 units", seconds * 1e3, "ms", "CORE", seconds / times.whole))
    seconds = times.dcore(lanes)
    rows.append(row(f"{case}, DCORE, 8 units", seconds * 1e3, "ms", "CORE", seconds / times.whole, "< DCERE"))
    rows.append(row(f"{case}, tested in the walk", own.seconds * 1e3, "ms", "CORE", own.seconds / times.whole))
    return rows


def _variations(name: str, size: int) -> list[Row]:
    """Figure 6.4: how evenly eight units are loaded, in matches before the filter."""
    types = stream(name, size)
    lanes = lanes_work(name, "", "rank", types, 8)
    matches = sum(lane.matches for lane in lanes)
    loads: dict[str, list[float]] = {f"DCERE {d}": dealt(matches, 8, d) for d in DEALINGS}
    loads["DCERE maximal"] = by_configurations(name, types, 8)
    listed = sum(loads["DCERE maximal"]) / matches
    loads["DCORE"] = [float(lane.matches) for lane in lanes]
    goals = {"DCORE": "< 0.02"}
    rows = [
        row(f"6.4 {name}, {w}", variation(own), "variation", goal=goals.get(w, "< 0.3")) for w, own in loads.items()
    ]
    return [*rows, row(f"6.4 {name}, maximal: candidates listed for each match", listed, "times", goal=">= 1")]


def _few() -> list[Row]:
    """Figure 6.5: few matches of Q2, 1 to 10 units: visits and matches of the slowest, so that no clock matters."""
    rows = []
    for size in (1024, 2048):
        alone = 0
        for units in range(1, 11):
            lanes = lanes_work("Q2", "", "rank", stream("Q2", size), units)
            most = max(lane.visits + lane.matches for lane in lanes)
            alone = alone or most
            rows.append(row(f"6.5 Q2, {size} matches, {units} units", most, "steps", "one unit", most / alone))
    return rows


def _units(name: str, size: int) -> list[Row]:
    """Figures 6.6 to 6.8: 1 to 10 units and a million matches; the times of eight units; CORE divided by units."""
    types = stream(name, size)
    times = core(name, types)
    rows = []
    for units in UNITS:
        lanes = lanes_work(name, "", "rank", types, units)
        seconds = times.dcore(lanes)
        gain = times.whole / seconds
        goal = ">= 5" if units == 6 else ""
        rows.append(row(f"6.6 {name}, {units} units", seconds * 1e3, "ms", "CORE, gain", gain, goal))
        rows.append(
            row(f"6.8 {name}, {units} units", seconds * units / times.whole, "times CORE / units", goal="close to 1")
        )
        if units == 8:
            own = [lane.seconds for lane in lanes]
            rows.append(row(f"6.7 {name}, seconds of 8 units", variation(own), "variation", goal="no difference"))
            work = [float(lane.visits + lane.matches) for lane in lanes]
            rows.append(row(f"6.7 {name}, steps of 8 units", variation(work), "variation", goal="< 0.02"))
    return rows


def _threads(size: int) -> list[Row]:
    """From events to a table of matches, in one thread and in two: on the wall, and as it is without other work."""
    table = events(stream("Q1", size))
    query = weft.compile(f"SELECT * WHERE {PATTERNS['Q1']} WITHIN 1 DAY")

    def seconds(threads: int) -> tuple[float, float, float]:
        wall = whole = busiest = float("inf")
        for _ in range(4):
            began = time.perf_counter(), time.process_time(), time.thread_time()
            weft.detect(table, query, strategy="rank", lanes=2, threads=threads).to_arrow()
            wall = min(wall, time.perf_counter() - began[0])
            all_cpu, main = time.process_time() - began[1], time.thread_time() - began[2]
            whole, busiest = min(whole, all_cpu), min(busiest, main + (all_cpu - main) / threads)
        return wall, whole, busiest

    (one, alone, _), (two, _, busiest) = seconds(1), seconds(2)
    case = f"two threads, Q1, {size} matches as a table"
    return [
        row(f"{case}, wall", two * 1e3, "ms", "one thread, gain", one / two, ">= 1.7"),
        row(f"{case}, CPU one after the other", busiest * 1e3, "ms", "one thread, gain", alone / busiest, ">= 1.7"),
    ]
