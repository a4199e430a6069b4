"""Runs: events that arrived together, sorted, as one lane sees them: its own and, to count positions, times of all."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.spark.packing.times import Ranks, decode_times, encode_times
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events

Bytes: TypeAlias = bytes | pa.Buffer
# What decides between equal times and ranks: source, trigger (0 in batch), input partition, chunk of it.
Origin = tuple[int, int, int, int]
# Chunks of rows without events: the stream is complete; a source is idle; the time is `first`,
# in nanoseconds since 1970.
END_OF_STREAM: Final = -1
SILENCE: Final = -2
CLOCK: Final = -3
_HEAD = struct.Struct("<qqqqq")  # origin, length of the times
_COUNT = struct.Struct("<q")


@dataclass(frozen=True)
class SortedRun:
    """`ends`, `starts`, `ranks`: those of all events of the chunk, sorted; `events.positions` are places in them.

    Where positions do not matter, these are the lane's own events only.
    """

    origin: Origin
    ends: Int64s
    starts: Int64s
    events: EventBatch
    ranks: Ranks = 0
    used: int = 0  # events that were in front of these

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True)
class RunRow:
    """A row of RUN_SCHEMA; `first` is None in a run without events."""

    lane: int
    first: int | None
    source: int
    part: int
    chunk: int
    times: Bytes
    events: Bytes
    rejects: Bytes | None
    others: Bytes | None  # events of no lane, for the lane that reports them if they are late; or see `count`

    @property
    def count(self) -> int:
        """How many events the chunk has in all lanes, and in none: told to one lane, where times are not."""
        return 0 if self.others is None else int(_COUNT.unpack(bytes(self.others))[0])

    @property
    def longest(self) -> int:
        """The length of its longest event, of any lane."""
        ends, starts, _ = decode_times(self.times)
        return 0 if starts is ends else int((ends - starts).max())

    def run(self, trigger: int = 0) -> SortedRun:
        """The run in it."""
        ends, starts, ranks = decode_times(self.times)
        origin = (self.source, trigger, self.part, self.chunk)
        return SortedRun(origin, ends, starts, unpack_events(self.events, ends, starts), ranks)


def run_rows_of(batch: pa.RecordBatch) -> Iterator[RunRow]:
    """The rows of a record batch, their bytes not copied."""
    numbers = ("lane", "first", "source", "part", "chunk")
    lanes, firsts, sources, parts, chunks = (batch.column(name).to_pylist() for name in numbers)
    times, events, rejects, others = (batch.column(name) for name in ("times", "events", "rejects", "others"))
    for at in range(batch.num_rows):
        yield RunRow(
            lanes[at],
            firsts[at],
            sources[at],
            parts[at],
            chunks[at],
            times[at].as_buffer(),
            events[at].as_buffer(),
            rejects[at].as_buffer() if rejects[at].is_valid else None,
            others[at].as_buffer() if others[at].is_valid else None,
        )


def pack_count(count: int) -> bytes:
    """Return a number of events, as sent to one lane."""
    return _COUNT.pack(count)


def pack_run(run: SortedRun) -> bytes:
    """The run as bytes, as it waits in the state of a stream."""
    times = encode_times(run.ends, run.starts, run.ranks)
    return _HEAD.pack(*run.origin, len(times)) + times + pack_events(narrow(run.events))


def unpack_run(data: bytes) -> SortedRun:
    """The run that `pack_run` made into these bytes."""
    *origin, length = _HEAD.unpack_from(data)
    split = _HEAD.size + length
    ends, starts, ranks = decode_times(data[_HEAD.size : split])
    events = unpack_events(data[split:], ends, starts)
    return SortedRun((origin[0], origin[1], origin[2], origin[3]), ends, starts, events, ranks)


def cut_run(run: SortedRun, begin: int) -> SortedRun:
    """The run without its first `begin` events."""
    if not begin:
        return run
    events = blocks.slice(run.events, int(np.searchsorted(run.events.positions, begin)))
    ends = run.ends[begin:]
    starts = ends if run.starts is run.ends else run.starts[begin:]
    ranks = run.ranks if isinstance(run.ranks, int) else run.ranks[begin:]
    return SortedRun(run.origin, ends, starts, move(events, events.positions - begin), ranks, run.used + begin)


def move(events: EventBatch, positions: Int64s) -> EventBatch:
    """The same events at other positions."""
    return replace(events, positions=positions)
