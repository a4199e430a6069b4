"""T-Rex's figures 16 and 17: events that the bounded queue of a live program refuses, at constant rates and in spikes.

The program is fed by this thread as its clock says, and matches in another: what is shown depends on what else the
machine does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks import trex_workloads as workloads
from benchmarks.figures.figure import Curves, Figure, Point
from benchmarks.trex_workloads import WARM_UP

import weft

ROOMS = (10, 100, 1_000, 10_000)
SHARES = (0.1, 0.5, 0.8, 1.1, 1.5, 2.0)  # of what the program takes when it is given events as fast as it takes them
SPIKES = (10, 100, 1_000, 10_000)
BETWEEN, WITHIN = 1.0, 10e-6  # seconds between spikes, and between the events of one
PICKS = ("each", "last")
RATE, STATES = 500, 3  # events in a second of event time, and in a sequence
PAUSE = 1e-4  # seconds for the other thread between two looks at the clock
NOISE = 10  # points by which two measurements may differ
PIECE = 4096


class Fed:
    """A live program whose windows are full, and events that follow each other however many are asked for."""

    def __init__(self, rules: weft.Program, room: int) -> None:
        table = workloads.chain_events(WARM_UP + PIECE / RATE, RATE, STATES)
        self._events, self._span = table.slice(WARM_UP * RATE), int(pc.max(table["ts"]).as_py())
        self._given = 0  # times that the events were given
        self._live = weft.live(rules, queue=room, when_full="refuse")
        for batch in table.slice(0, WARM_UP * RATE).to_batches(max_chunksize=max(1, room // 2)):
            self._live.push(batch)
            self._live.join()

    def _next(self) -> pa.RecordBatch:
        """The events once more, later."""
        self._given += 1
        at = self._events.schema.get_field_index("ts")
        later = pc.add(self._events["ts"], self._given * self._span)
        return self._events.set_column(at, "ts", later).combine_chunks().to_batches()[0]

    @property
    def refused(self) -> int:
        """Of all events so far."""
        return self._live.counters["refused"]

    def capacity(self) -> float:
        """Events in a second that are taken one queue after the other."""
        batch = self._next()
        start = time.perf_counter()
        for at in range(0, len(batch), 50):
            self._live.push(batch.slice(at, 50))
            self._live.join()
        return len(batch) / (time.perf_counter() - start)

    def dropped(self, count: int, due: Callable[[float], float]) -> float:
        """The share, in percent, that is refused of so many events; `due` are there after so many seconds."""
        before, sent, start = self.refused, 0, time.perf_counter()
        batch, used = self._next(), 0
        while sent < count:
            wanted = min(int(due(time.perf_counter() - start)), count) - sent
            if wanted <= 0:
                time.sleep(PAUSE)
                continue
            if used == len(batch):
                batch, used = self._next(), 0
            piece = batch.slice(used, wanted)
            self._live.push(piece)
            sent, used = sent + len(piece), used + len(piece)
        self._rest(start + BETWEEN)
        return 100 * (self.refused - before) / count

    def _rest(self, until: float) -> None:
        """Wait until a time for the queue to be empty."""
        while self._live.queued and time.perf_counter() < until:
            time.sleep(PAUSE)

    def close(self) -> None:
        """Work off what waits."""
        self._live.finish()


def rules_of(pick: str) -> weft.Program:
    """The default scenario, with sequences of three as in both figures."""
    return weft.compile(workloads.chains(pick, 1000, STATES), language="tesla")


def rates(scale: float) -> Iterator[Point]:
    """Figure 16: the share that is refused, by the rate of the input."""
    for pick in PICKS:
        capacity, rules = 0.0, rules_of(pick)
        for room in ROOMS[1:2] + ROOMS[:1] + ROOMS[2:]:
            fed = Fed(rules, room)
            capacity = capacity or fed.capacity()
            for share in SHARES:
                rate = share * capacity
                count = max(200, int(rate * max(0.3, 2 * scale)))
                found = fed.dropped(count, lambda seconds, rate=rate: 1 + seconds * rate)
                yield Point(f"{pick}-within, queue {room}", rate, found)
            fed.close()


def spikes(scale: float) -> Iterator[Point]:
    """Figure 17: spikes of k events every second."""
    for pick in PICKS:
        rules = rules_of(pick)
        for room in ROOMS:
            fed = Fed(rules, room)
            for size in SPIKES:
                times = max(1, int(5 * scale))
                found = [fed.dropped(size, lambda seconds: 1 + seconds / WITHIN) for _ in range(times)]
                yield Point(f"{pick}-within, queue {room}", size, sum(found) / times)
            fed.close()


def larger_drops_less(curves: Curves) -> bool:
    """A larger queue does not refuse more, apart from noise."""
    pairs = (
        (curves[f"{pick}-within, queue {one}"], curves[f"{pick}-within, queue {other}"])
        for pick in PICKS
        for one, other in pairwise(ROOMS)
    )
    return all(y <= above + NOISE for small, large in pairs for (_, above), (_, y) in zip(small, large, strict=True))


def late_and_less(curves: Curves) -> bool:
    """Hardly any is refused at a tenth of the capacity, much at twice the capacity by short queues; larger refuse less.

    A queue of ten events is full after a few milliseconds in which the machine does something else: of that one nothing
    is asked at low rates.
    """
    low = all(curves[f"{pick}-within, queue {room}"][0][1] <= NOISE for pick in PICKS for room in ROOMS[1:])
    high = all(curves[f"{pick}-within, queue {room}"][-1][1] > 2 * NOISE for pick in PICKS for room in ROOMS[:2])
    return low and high and larger_drops_less(curves)


def decides(curves: Curves) -> bool:
    """A spike that fits into the queue is taken; of one that is ten times as large, much is refused."""
    for pick in PICKS:
        for room in ROOMS:
            refused = dict(curves[f"{pick}-within, queue {room}"])
            if refused[room] > NOISE or (10 * room in refused and refused[10 * room] < 3 * NOISE):
                return False
    return larger_drops_less(curves)


CLOCK = "The machine may be the reason: the queue is fed and worked off by the clock, and others work there too."
FIGURES = (
    Figure(
        "trex-16",
        "size of the input queue",
        "input rate, events/s",
        "events dropped, %",
        rates,
        "at low rates queues of a hundred events and more drop none, above what is sustained larger ones drop less",
        late_and_less,
        log="x",
        reason=CLOCK,
    ),
    Figure(
        "trex-17",
        "tolerance to spikes",
        "events of a spike",
        "events dropped, %",
        spikes,
        "the size of the queue decides what is dropped: spikes that fit into it are taken",
        decides,
        log="x",
        reason=CLOCK,
    ),
)
