"""Step's parallel curves (7.3 to 7.4): each operator by replication, the work of each lane measured by itself.

Effective throughput counts an event once, however many lanes have a copy; total throughput counts every copy. Time is
that of the busiest lane. For two lanes the time of two threads on the wall stands beside it. A lane takes about half a
millisecond to begin, whatever it is given: there are enough events for each operator that this does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from benchmarks.measure import Row, row
from benchmarks.scale import work_per_lane
from benchmarks.threads import on_the_wall

import weft
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.reading.order import read_events

LANES = (1, 2, 4, 8, 16)
HEAD = 'topology "t" external A(x: int) < "A" [{0}] external B(x: int) < "B" [{1}] '
CASES = (  # a name, the pattern, the share of A among the events, and the shape that the curve has there
    ("greedy next, window 100", "A/a ;[dur < 100 && a.x > b.x + 900] B/b", 0.5, "log-like"),
    ("greedy next, window 1000", "A/a ;[dur < 1000 && a.x > b.x + 990] B/b", 0.5, "log-like, slower"),
    ("any next, window 50", "A/a ;?[dur < 50 && a.x > b.x + 900] B/b", 0.5, "log-like"),
    ("any next, window 100", "A/a ;?[dur < 100 && a.x > b.x + 900] B/b", 0.5, "slower than window 50"),
    ("exception, no unwanted event", "!B/b ; A/a", 1.0, "linear"),
    ("conjunction, window 250", "A/a ,[dur < 250] B/b", 0.5, "log-like, then falling"),
    ("any iteration, length < 5", "A/a +?[prev(a.x) != a.x && len < 5]", 0.5, "linear to 7 lanes"),
    ("replication 1:1", "A/a ;?[dur < 100 && a.x > b.x + 950] B/b", 0.5, "total linear, effective log-like"),
    ("replication 1:4", "A/a ;?[dur < 100 && a.x > b.x + 950] B/b", 0.8, "both nearly linear"),
)


WITHOUT_BOUND = 25  # every event meets all before it there: so many times fewer events
MEETS_NONE = 40  # an event takes a tenth of a microsecond there: so many times more


def parallel(count: int) -> Iterator[Row]:
    """A row for each operator and number of lanes."""
    for name, pattern, share, shape in CASES:
        events = count // WITHOUT_BOUND if "+?" in pattern else count * MEETS_NONE if "!" in pattern else count
        yield from _curve(name, pattern, share, shape, events)


def _curve(name: str, pattern: str, share: float, shape: str, count: int) -> Iterator[Row]:
    head = HEAD.format(share, round(1 - share, 3))
    chosen = plan(weft.compile(f"{head}Q(*): {pattern}", language="step"), strategy="replicate")
    table = step_events(count, share, together=2 if "," in pattern else 1)
    for lanes in (1, 2):  # compiles what either way needs
        work_per_lane(chosen, table.slice(0, 2_000), lanes)
    alone = 0.0
    for lanes in LANES:
        found = work_per_lane(chosen, table, lanes)
        busiest = max(max(lane.seconds for lane in found), 1e-6)
        effective, copies = count / busiest, sum(lane.events for lane in found) / busiest
        alone = alone or effective
        case = f"{name}, {lanes} lanes, total {copies / 1e6:.3g} M/s"
        expected = shape if lanes == LANES[-1] else ""
        yield row(case, effective / 1e6, "M events/s, effective", "one lane", effective / alone, expected)
    batch = blocks.concat(list(read_events(table, columns=chosen.columns)))
    few = min(2_000, count // 2)
    first, rest = blocks.slice(batch, 0, few), blocks.slice(batch, few, count - few)
    one, two = (min(on_the_wall(chosen, threads, first, rest) for _ in range(2)) for threads in (1, 2))
    yield row(f"{name}, two threads", count / two / 1e6, "M events/s on the wall", "one thread", one / two)


def step_events(count: int, share: float, together: int) -> pa.Table:
    """Events of which so many at a time end together; such a share of them is A, the others are B."""
    dice = np.random.default_rng(11)
    kinds = np.where(dice.random(count) < share, "A", "B")
    return pa.table({"type": kinds, "ts": np.arange(count) // together, "x": dice.integers(0, 1000, count)})
