"""Executions of one program over simulated streams: latency of matching sets, throughput, and work.

Latency is the time from passing in the event that completes sets to receiving them, for single events over existing
state. Throughput is measured for events in batches. Both are CPU time, independent of other load on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.plan.operators import Plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations.operator import SituationOperator
from weft.runtime.reading.order import read_events
from weft.tuning.streams import Seed, Simulated

SAMPLED = 24  # events with sets whose latency is measured in a run, more in long ones
BATCH = 1 << 12


@dataclass(frozen=True)
class Measured:
    """One run; `found` are the positions of its sets."""

    latency: float  # ms; nan when nothing was found
    slowest: float  # ms, of the slowest of a hundred
    throughput: float
    looked: float  # events looked at, for each event of the stream
    looked_late: float  # and at an event with sets
    found: tuple[bytes, int]


class Simulation:
    """A plan that is executed repeatedly over generated streams; the sets of one query are measured.

    Sets of linked patterns become final with a later event: `settled` is the number of events to wait for.
    """

    def __init__(self, chosen: Plan, query: str, stream: Simulated, events: int, settled: int = 1) -> None:
        self._plan = chosen
        self._query = query
        self._settled = settled
        self._stream = stream
        self._events = events

    def run(self, seed: Seed) -> Measured:
        """One run; the same seed gives every program the same events."""
        table = self._stream.table(self._events, seed)
        batches = list(read_events(table, columns=self._plan.columns, batch_size=BATCH))
        matcher = Matcher(self._plan)
        start = time.process_time()
        told = [part for batch in batches for part in matcher.push(batch)]
        seconds = time.process_time() - start
        found = [part for part in told if part.query == self._query]
        looked = looked_at(matcher)
        nothing = np.empty(0, np.int64)
        lasts = np.unique(np.concatenate([nothing, *(part.positions[part.offsets[1:] - 1] for part in found)]))
        latency, slowest, late = self._late(batches, lasts)
        positions = np.concatenate([nothing, *(part.positions for part in found)])
        sets = (positions.tobytes(), sum(map(len, found)))
        return Measured(latency, slowest, self._events / max(seconds, 1e-9), looked / self._events, late, sets)

    def sets_in(self, events: int) -> int:
        """How many sets a stream of so many events has; they are counted, not listed."""
        matcher, table = Matcher(self._plan), self._stream.table(events, (0, events))
        batches = read_events(table, columns=self._plan.columns, batch_size=BATCH)
        return sum(matcher.count(batch).get(self._query, 0) for batch in batches)

    def _late(self, batches: Sequence[EventBatch], lasts: Int64s) -> tuple[float, float, float]:
        """Milliseconds, mean and 99th percentile, and events looked at, of some of the events that complete sets."""
        if not len(lasts):
            return float("nan"), float("nan"), float("nan")
        chosen = set(lasts[:: -(-len(lasts) // max(SAMPLED, self._events >> 8))].tolist())
        matcher = Matcher(self._plan)
        taken: list[float] = []
        looked: list[int] = []
        for batch in batches:
            done = 0
            places = np.flatnonzero(np.isin(batch.positions, list(chosen))).tolist()
            for place in [*places, len(batch)]:
                _push(matcher, blocks.slice(batch, done, max(place - done, 0)))
                done = max(done, place)
                if done <= place < len(batch):
                    before, start = looked_at(matcher), time.process_time()
                    size = min(self._settled, len(batch) - place)
                    _push(matcher, blocks.slice(batch, place, size))
                    taken.append(1000 * (time.process_time() - start))
                    looked.append(looked_at(matcher) - before)
                    done = place + size
        return float(np.mean(taken)), float(np.percentile(taken, 99)), float(np.mean(looked))


def looked_at(matcher: Matcher) -> int:
    """How many events the searches of a matcher have looked at."""
    runs = [run for layer in matcher.layers for run in layer.operators.values()]
    return sum(run.visited for run in runs if isinstance(run, SituationOperator))


def _push(matcher: Matcher, batch: EventBatch) -> None:
    if len(batch):
        for _ in matcher.push(batch):
            pass
