"""T-Rex's figures 16 and 17: events that a bounded input queue drops, at constant rates and in spikes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
from benchmarks.figures.figure import Curves, Figure, Point, above, rises
from benchmarks.figures.service import Service
from benchmarks.figures.trex import default

ROOMS = (10, 100, 1_000, 10_000)
SPIKES = (10, 100, 1_000, 10_000)
BETWEEN, WITHIN = 1.0, 10e-6  # seconds between spikes, and between the events of one
PICKS = ("each", "last")


@cache
def service(pick: str, scale: float) -> Service:
    """The default scenario with sequences of three, as in both figures."""
    return default(pick, scale, states=3)


def rates(scale: float) -> Iterator[Point]:
    """Figure 16: the share that is dropped, by the rate of the input."""
    for pick in PICKS:
        own = service(pick, scale)
        for room in ROOMS:
            for share in (0.5, 0.8, 0.95, 1.1, 1.5, 2.0):
                rate = share / own.mean
                yield Point(f"{pick}-within, queue {room}", rate, 100 * own.queued(rate, room, rounds=10).dropped)


def spikes(scale: float) -> Iterator[Point]:
    """Figure 17: spikes of k events every second."""
    for pick in PICKS:
        own = service(pick, scale)
        for room in ROOMS:
            for size in SPIKES:
                times = (np.arange(5)[:, None] * BETWEEN + np.arange(size) * WITHIN).ravel()
                yield Point(f"{pick}-within, queue {room}", size, 100 * own.served(times, room).dropped)


def larger_drops_less(curves: Curves) -> bool:
    """A larger queue never drops more, and a higher rate never less."""
    pairs = [
        (f"{pick}-within, queue {one}", f"{pick}-within, queue {other}")
        for pick in PICKS
        for one, other in pairwise(ROOMS)
    ]
    return all(above(curves[small], curves[large], 0.01) for small, large in pairs)


def decides(curves: Curves) -> bool:
    """The size of the queue decides what is dropped in spikes."""
    small = curves["each-within, queue 10"]
    return larger_drops_less(curves) and rises(small, 0.01) and curves["each-within, queue 10000"][-1][1] < small[-1][1]


FIGURES = (
    Figure(
        "trex-16",
        "size of the input queue",
        "input rate, events/s",
        "events dropped, %",
        rates,
        "a larger queue drops less, and at low rates none drops any",
        larger_drops_less,
        log="x",
    ),
    Figure(
        "trex-17",
        "tolerance to spikes",
        "events of a spike",
        "events dropped, %",
        spikes,
        "the size of the queue decides what is dropped",
        decides,
        log="x",
    ),
)
