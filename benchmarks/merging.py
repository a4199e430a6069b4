"""Stabilisation alone (STEP 7.5): sources that send batches in turn, merged into stream order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.measure import Row, cpu_seconds, row

from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.stabilise import Stabiliser

Sent = list[tuple[str, EventBatch]]
TOGETHER = 25_000  # events after which a reader of live sources looks what may go on


def stabilisation(count: int) -> list[Row]:
    """Events per second and core by number of sources and size of batches."""
    rows: list[Row] = []
    for sources, size in ((50, 500), (50, 50), (50, 5000), (2, 500), (10, 500), (200, 500)):
        sent, times = batches(sources, size, count)
        rate = len(times) / cpu_seconds(lambda sent=sent, sources=sources: merge(sent, sources))  # type: ignore[misc]
        sorted_alone = len(times) / cpu_seconds(lambda times=times: np.argsort(times, kind="stable"))  # type: ignore[misc]
        goal = ">= 10" if (sources, size) == (50, 500) else ""
        case = f"stabilisation, {sources} sources in batches of {size}"
        rows.append(row(case, rate / 1e6, "M events/s", "NumPy's argsort of all times", sorted_alone / rate, goal))
    return rows


def batches(sources: int, size: int, count: int) -> tuple[Sent, npt.NDArray[np.int64]]:
    """Batches with a type and two attributes, the sources in turn, and the times of all events."""
    random = np.random.default_rng(5)
    rounds = max(2, count // (sources * size))
    length = rounds * size
    kinds = pa.array(["A", "B", "C"])
    streams = []
    for source in range(sources):
        times = np.sort(random.integers(0, 4 * sources * length, length))
        types = pa.DictionaryArray.from_arrays(pa.array(np.full(length, source % 3, np.int32)), kinds)
        streams.append((times, types, pa.array(random.random(length)), pa.array(random.integers(0, 99, length))))
    nowhere = np.zeros(size, np.int64)
    sent: Sent = []
    for begin in range(0, length, size):
        for source, (times, types, x, y) in enumerate(streams):
            part = times[begin : begin + size]
            columns = {"x": Column(x.slice(begin, size)), "y": Column(y.slice(begin, size))}
            sent.append((f"s{source}", EventBatch(types.slice(begin, size), part, part, nowhere, columns)))
    return sent, np.concatenate([times for times, *_ in streams])


def merge(sent: Sent, sources: int) -> int:
    """How many events come out."""
    stabiliser = Stabiliser([f"s{number}" for number in range(sources)])
    released, pushed = 0, 0
    for name, events in sent:
        stabiliser.push(name, events)
        pushed += len(events)
        if pushed >= TOGETHER:
            released += len(stabiliser.release())
            pushed = 0
    return released + len(stabiliser.flush())
