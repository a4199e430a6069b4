"""Step's figures on filtering, sending, batches and stabilisation (5.1, 6.5, 6.6, 6.8, 6.2, 7.3 to 7.5, 7.13, 7.14).

Sending is packing events into the bytes that tasks exchange, receiving is unpacking them.
"""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import pyarrow as pa
from benchmarks.calls import random_quotes
from benchmarks.figures.figure import Curves, Figure, Point, above, falls, flat, gain, values
from benchmarks.merging import batches, merge
from benchmarks.step import STOCK

import weft
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.order import read_events
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events

BATCH = 500
SIZES = (1, 10, 50, 100, 300, 500, 1000, 5000)
TASKS = (1, 2, 4, 8)
RATE = "throughput, events/s"


def busy(work: Callable[[], object], repeats: int = 2) -> float:
    """The least CPU seconds of some runs, after one that is not measured."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return max(best, 1e-7)


def payloads(count: int, fields: int = 8) -> EventBatch:
    """Events with so many fields of eight bytes."""
    dice = np.random.default_rng(2)
    columns = {f"f{number}": dice.integers(0, 1 << 40, count) for number in range(fields)}
    table = pa.table({"type": pa.repeat("E", count).dictionary_encode(), "ts": np.arange(count), **columns})
    return narrow(blocks.concat(list(read_events(table, columns=list(columns)))))


def parts(events: EventBatch, size: int) -> list[EventBatch]:
    """The events in batches, each with positions of its own."""
    found = (blocks.slice(events, at, min(size, len(events) - at)) for at in range(0, len(events), size))
    return [replace(batch, positions=np.arange(len(batch))) for batch in found]


def count_of(scale: float, size: int = BATCH, most: int = 200_000) -> int:
    """How many events are measured: fewer in small batches."""
    return max(200, int(min(most, size * 400) * min(1.0, 5 * scale)))


# ---------------------------------------------------------------- serialisation, filtering, sending


def serialisers(scale: float) -> Iterator[Point]:
    """Table 5.1: bytes and time of one event."""
    events = payloads(count_of(scale), 2)
    table = pa.table({name: column.numbers for name, column in events.columns.items()} | {"ts": events.ends})
    rows = table.to_pylist()
    ways: dict[str, Callable[[], bytes]] = {
        "weft": lambda: pack_events(events),
        "Arrow IPC": lambda: _ipc(table),
        "pickle": lambda: b"".join(map(pickle.dumps, rows)),
    }
    for name, way in ways.items():
        yield Point("size, bytes", name, len(way()) / len(events))
        yield Point("time, ms * 10^-4", name, busy(way) / len(events) * 1e7)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def filtering(scale: float) -> Iterator[Point]:
    """Figure 6.5: a condition of so many comparisons, none of which holds."""
    table = random_quotes(max(5_000, int(400_000 * scale)))
    for comparisons in (1, 10, 50, 100, 200):
        condition = " || ".join(f"s.price = {-number - 1}" for number in range(comparisons))
        program = weft.compile(f"{STOCK}Q(*): Stock/s[{condition}]", language="step")
        yield Point("filtering", comparisons, len(table) / busy(lambda program=program: weft.count(table, program)))


def subscribers(scale: float) -> Iterator[Point]:
    """Figure 6.6: sending to shuffled and replicated streams, by the number of subscribers."""
    events = parts(payloads(count_of(scale)), BATCH)
    count = sum(map(len, events))
    for number in (1, 2, 4, 6, 8, 10):
        shuffled = busy(lambda number=number: [_shuffled(batch, number) for batch in events])
        replicated = busy(lambda number=number: [pack_events(batch) for batch in events for _ in range(number)])
        yield Point("shuffled", number, count / shuffled)
        yield Point("replicated", number, count / replicated)
        yield Point("replicated, total", number, number * count / replicated)


def _shuffled(batch: EventBatch, tasks: int) -> list[bytes]:
    return [pack_events(blocks.take(batch, np.arange(task, len(batch), tasks))) for task in range(tasks)]


def batch_sizes(scale: float) -> Iterator[Point]:
    """Figure 6.8: sending by the size of batches."""
    for size in SIZES:
        sent = parts(payloads(count_of(scale, size)), size)
        seconds, count = busy(lambda sent=sent: [pack_events(one) for one in sent]), sum(map(len, sent))
        yield Point(RATE, size, count / seconds)
        yield Point("network, kbit/s", size, sum(len(pack_events(one)) for one in sent) / seconds * 8 / 1e3)


def positions(scale: float) -> Iterator[Point]:
    """Table 6.2: from one task to another of the same thread, of another thread, and through a socket."""
    sent = parts(payloads(count_of(scale)), BATCH)
    count = sum(map(len, sent))

    def directly() -> None:
        for batch in sent:
            unpack_events(pack_events(batch), batch.ends, batch.starts)

    def to_socket() -> None:
        one, other = socket.socketpair()
        reader = threading.Thread(target=_received, args=(other, sent))
        reader.start()
        for batch in sent:
            data = pack_events(batch)
            one.sendall(len(data).to_bytes(8, "little") + data)
        reader.join()
        one.close()
        other.close()

    yield Point(RATE, "same task", count / busy(directly))
    yield Point(RATE, "other task, socket", count / busy(to_socket))


def _received(connection: socket.socket, sent: list[EventBatch]) -> None:
    with connection.makefile("rb") as stream:
        for batch in sent:
            unpack_events(stream.read(int.from_bytes(stream.read(8), "little")), batch.ends, batch.starts)


def exchange(scale: float, sizes: dict[str, int], receiving: bool = False) -> Iterator[Point]:
    """Figures 7.3 and 7.4: tasks that send, each by itself: together they send as many times as much."""
    for name, size in sizes.items():
        sent = parts(payloads(count_of(scale, size)), size)
        packed, count = [(pack_events(one), one.ends, one.starts) for one in sent], sum(map(len, sent))
        for tasks in TASKS:
            slowest = max(busy(lambda sent=sent: [pack_events(one) for one in sent], 1) for _ in range(tasks))
            yield Point(f"sending, {name}", tasks, tasks * count / slowest)
            if receiving:
                slowest = max(
                    busy(lambda packed=packed: [unpack_events(*one) for one in packed], 1) for _ in range(tasks)
                )
                yield Point(f"receiving, {name}", tasks, tasks * count / slowest)


def projection(scale: float) -> Iterator[Point]:
    """Figure 7.5: all fields of events, by the number of fields."""
    for fields in (1, 8, 50, 100, 200):
        table = pa.table({"ts": np.arange(n := max(2_000, int(40_000 * scale))), "type": pa.repeat("E", n)})
        for number in range(fields):
            table = table.append_column(f"f{number}", pa.array(np.arange(n) + number))
        declared = ", ".join(f"f{number}: int" for number in range(fields))
        shown = ", ".join(f"E.f{number}" for number in range(fields))
        program = weft.compile(f'topology "T"\nexternal E({declared}) < "e" [1.0]\nQ({shown}): E', language="step")
        yield Point("projection", fields, n / busy(lambda t=table, p=program: weft.detect(t, p).to_arrow(), 1))


# ---------------------------------------------------------------- stabilisation


def simple_rate(sources: int, ahead: int, events: int) -> float:
    """Events in a second that a queue stabilises one by one: it releases what all sources have passed."""
    passed, waiting, clock = [0] * sources, list[tuple[int, int]](), 0
    start, taken = time.process_time(), 0
    while taken < events:
        for source in range(sources):
            clock += 1
            for _ in range(ahead if source == 0 else 1):
                heappush(waiting, (clock, taken))
                taken += 1
            passed[source] = clock
            while waiting and waiting[0][0] <= min(passed):  # each event is marked by all sources
                heappop(waiting)
    return taken / (time.process_time() - start)


def simple(scale: float) -> Iterator[Point]:
    """Figure 7.13: by the number of streams, and how much faster one is than the others."""
    for ahead in (1, 10, 100):
        for sources in (2, 5, 10, 20, 50):
            yield Point(f"L = {ahead}", sources, simple_rate(sources, ahead, max(2_000, int(100_000 * scale))))


def two_phases(scale: float) -> Iterator[Point]:
    """Figure 7.14: event by event, and weft's merge of batches."""
    for sources in (2, 5, 10, 20, 50):
        sent, times = batches(sources, BATCH, max(20_000, int(400_000 * scale)))
        yield Point("simple", sources, simple_rate(sources, 1, max(2_000, int(100_000 * scale))))
        yield Point("batches", sources, len(times) / busy(lambda sent=sent, s=sources: merge(sent, s)))


def ten_times(curves: Curves) -> bool:
    """Batches of 500 send at least ten times as much as single events, and twice the tasks half as much again."""
    singly, together = dict(curves["sending, B 1"]), dict(curves["sending, B 500"])
    return all(together[tasks] >= 10 * singly[tasks] for tasks in TASKS) and doubles(curves)


def doubles(curves: Curves) -> bool:
    """Twice as many tasks send and receive at least half as much again."""
    return all(more >= 1.5 * less for curve in curves.values() for less, more in pairwise(values(curve)))


def receiving_is_faster(curves: Curves) -> bool:
    """It is at least as fast to receive single events as to send them, and both grow with the tasks."""
    return doubles(curves) and above(curves["receiving, B 1"], curves["sending, B 1"])


FIGURES = (
    Figure(
        "step-table-5.1",
        "serialising one event",
        "type of serializer",
        "value",
        serialisers,
        "the own format is the fastest",
        lambda curves: min(curves["time, ms * 10^-4"], key=lambda point: point[1])[0] in ("weft", "Arrow IPC"),
        {"time, ms * 10^-4": [("weft", 2.512)], "size, bytes": [("weft", 30)]},
        "bars",
        "y",
    ),
    Figure(
        "step-6.5",
        "filtering by a predicate",
        "comparisons",
        RATE,
        filtering,
        "it falls with the comparisons",
        lambda curves: gain(curves["filtering"]) < 1,
        {"filtering": [(200, 1e7)]},
        log="y",
    ),
    Figure(
        "step-6.6",
        "sending by subscribers",
        "subscribers",
        RATE,
        subscribers,
        "replicated falls with the subscribers, and its total stays",
        lambda curves: falls(curves["replicated"], 0.3) and flat(curves["replicated, total"], 2),
        log="y",
    ),
    Figure(
        "step-6.8",
        "batch size",
        "batch size",
        "value",
        batch_sizes,
        "it rises steeply up to about 100, and is flat above 300",
        lambda curves: dict(curves[RATE])[100] > 5 * dict(curves[RATE])[1],
        {RATE: [(1, 50_000)]},
        log="xy",
    ),
    Figure(
        "step-table-6.2",
        "positioning of tasks",
        "positioning",
        RATE,
        positions,
        "within one task it is at least as fast",
        lambda curves: curves[RATE][0][1] >= 0.9 * curves[RATE][1][1],
        {RATE: [("same task", 368_407), ("other task, socket", 832_706)]},
        "bars",
    ),
    Figure(
        "step-7.3",
        "sending and receiving, single events",
        "tasks",
        RATE,
        partial(exchange, sizes={"B 1": 1}, receiving=True),
        "twice the tasks send and receive two thirds more, and receiving is a little faster",
        receiving_is_faster,
        {"sending, B 1": [(1, 85_330), (4, 184_732), (8, 315_694)]},
        reason="The product is the reason: to unpack a batch of one event takes longer than to pack it.",
    ),
    Figure(
        "step-7.4",
        "sending, in batches",
        "tasks",
        RATE,
        partial(exchange, sizes={"B 1": 1, "B 500": BATCH}),
        "batches of 500 send at least ten times as much, and twice the tasks four fifths more",
        ten_times,
        {"sending, B 1": [(1, 85_330)], "sending, B 500": [(1, 820_821)]},
        reason="Noise is the reason: tasks are measured one after the other, and the slowest of eight counts.",
        log="y",
    ),
    Figure(
        "step-7.5",
        "projection by fields",
        "projected fields",
        RATE,
        projection,
        "it falls with the fields",
        lambda curves: gain(curves["projection"]) < 1,
        {"projection": [(8, 274_000), (200, 241_000)]},
        log="y",
    ),
    Figure(
        "step-7.13",
        "simple stabilisation",
        "input streams",
        RATE,
        simple,
        "it falls with the streams",
        lambda curves: all(gain(curve) < 1 for curve in curves.values()),
        {"L = 1": [(20, 820_000)], "L = 100": [(20, 470_000)]},
        log="y",
    ),
    Figure(
        "step-7.14",
        "stabilisation of batches",
        "input streams",
        RATE,
        two_phases,
        "batches are far faster, the more the more streams there are",
        lambda curves: above(curves["batches"], curves["simple"]),
        log="y",
    ),
)
