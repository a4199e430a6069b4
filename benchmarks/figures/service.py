"""What each event costs after the windows have filled, and what a bounded queue in front of that engine would do."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import weft
from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.routing import shares
from weft.runtime.reading.order import read_events

TOGETHER = 20  # events that are pushed at once
QUEUE = 100  # events that may wait, as in T-Rex's experiments


class Queued(NamedTuple):
    """What became of events that came at some times: composite events in a second, and the share that was dropped."""

    firings: float
    dropped: float


@dataclass(frozen=True)
class Service:
    """Seconds that each event takes, and how many composite events it makes."""

    seconds: npt.NDArray[np.float64]
    firings: npt.NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Of one event."""
        return float(self.seconds.mean())

    @property
    def firings_per_event(self) -> float:
        """The mean number of composite events."""
        return float(self.firings.mean())

    def percentile(self, share: float) -> float:
        """What so many of a hundred events take at most."""
        return float(np.percentile(self.seconds, share))

    def queued(self, rate: float, room: int = QUEUE, rounds: int = 3) -> Queued:
        """Events that come one after the other at a rate, all of the measured ones so many times."""
        count = rounds * len(self.seconds)
        return self.served(np.arange(count) / rate, room)

    def served(self, arrivals: npt.NDArray[np.float64], room: int = QUEUE) -> Queued:
        """Events that come at these times to a queue of so many places: one that finds it full is dropped."""
        waiting: deque[float] = deque()  # when those that are here will be done
        done, firings, dropped = 0.0, 0.0, 0
        for number, arrival in enumerate(arrivals.tolist()):
            while waiting and waiting[0] <= arrival:
                waiting.popleft()
            if len(waiting) > room:
                dropped += 1
                continue
            place = number % len(self.seconds)
            done = max(done, arrival) + float(self.seconds[place])
            firings += float(self.firings[place])
            waiting.append(done)
        return Queued(firings / max(done, float(arrivals[-1]), 1e-9), dropped / len(arrivals))


def measured(program: Program | str, table: pa.Table, warm: int, lanes: int = 1) -> Service:
    """The service of the events after the first ones; of several lanes, each pushed by itself, the slowest counts."""
    whole = weft.compile(program, language="tesla") if isinstance(program, str) else program
    chosen = plan(whole, strategy="query", lanes=lanes) if lanes > 1 else plan(whole)
    batch = blocks.concat(list(read_events(table, columns=chosen.columns)))
    first, rest = blocks.slice(batch, 0, warm), blocks.slice(batch, warm, len(batch) - warm)
    crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
    crew.gather(batch)
    for member, own in zip(crew.members, shares(first, crew.lanes), strict=True):
        _push(member, own)
    seconds, firings = [], []
    for begin in range(0, len(rest), TOGETHER):
        few = blocks.slice(rest, begin, min(TOGETHER, len(rest) - begin))
        busy, found = 0.0, 0
        for member, own in zip(crew.members, shares(few, crew.lanes), strict=True):
            start = time.process_time()
            found += _push(member, own)
            busy = max(busy, time.process_time() - start)
        seconds += [busy / len(few)] * len(few)
        firings += [found / len(few)] * len(few)
    return Service(np.array(seconds), np.array(firings))


def _push(member: object, events: blocks.EventBatch) -> int:
    return sum(len(found) for piece in blocks.pieces(events) for found in member.push(piece))  # type: ignore[attr-defined]
