"""Runs: events that arrived together, sorted, as one lane sees them: its own and, to count positions, times of all."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.reading.order import stream_order
from weft.runtime.reading.ties import as_ranks
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
_TOLD = struct.Struct("<qq")  # events, ties


@dataclass(frozen=True)
class Place:
    """Where a chunk is in the input: the number of its source, of its part (task or file) and its own in that."""

    source: int
    part: int
    chunk: int


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
    others: Bytes | None  # of a stream a packed `Summary`; of a whole input see `told`

    @property
    def told(self) -> tuple[int, int]:
        """The number of events of a finite input that one lane has, and how many of them are in arbitrary order."""
        return (0, 0) if self.others is None else _TOLD.unpack_from(self.others)

    @property
    def positions(self) -> Int64s:
        """Of a whole input: the positions of its events, where they were counted before."""
        assert self.others is not None
        return decode_times(pa.py_buffer(self.others)[_TOLD.size :])[0]

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


def pack_told(count: int, tied: int = 0, positions: Int64s | None = None) -> bytes:
    """What a row of a whole input tells besides its events."""
    return _TOLD.pack(count, tied) + (b"" if positions is None else encode_times(positions, positions))


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
    return slice_run(run, begin, len(run)) if begin else run


def slice_run(run: SortedRun, begin: int, stop: int) -> SortedRun:
    """Some events of a run that follow each other."""
    first, last = np.searchsorted(run.events.positions, (begin, stop)).tolist()
    events = blocks.slice(run.events, first, last - first)
    ends = run.ends[begin:stop]
    starts = ends if run.starts is run.ends else run.starts[begin:stop]
    ranks = run.ranks if isinstance(run.ranks, int) else run.ranks[begin:stop]
    return SortedRun(run.origin, ends, starts, move(events, events.positions - begin), ranks, run.used + begin)


def join_runs(runs: Sequence[SortedRun]) -> SortedRun:
    """Join several sorted runs, which arrived in this order."""
    if len(runs) == 1:
        return runs[0]
    places, (ends, starts, ranks) = merged(runs)
    moved = [move(run.events, own[run.events.positions]) for run, own in zip(runs, places, strict=True)]
    return SortedRun(runs[0].origin, ends, starts, in_position_order(moved), ranks)


def merged(runs: Sequence[SortedRun]) -> tuple[list[Int64s], tuple[Int64s, Int64s, Ranks]]:
    """For each run the places of its events in the order of them all; and the times and ranks in this order."""
    ends = np.concatenate([run.ends for run in runs])
    instant = all(run.starts is run.ends for run in runs)
    starts = ends if instant else np.concatenate([run.starts for run in runs])
    ranks: Ranks = runs[0].ranks if isinstance(runs[0].ranks, int) else 0
    if any(not isinstance(run.ranks, int) or run.ranks != ranks for run in runs):
        ranks = np.concatenate([np.broadcast_to(run.ranks, len(run)) for run in runs])
    bounds = np.cumsum([len(run) for run in runs])[:-1]
    filled = [run for run in runs if len(run)]
    if all(one.ends[-1] < other.ends[0] for one, other in pairwise(filled)):
        return np.split(np.arange(len(ends)), bounds), (ends, starts, ranks)
    order = stream_order(starts, ends, None if isinstance(ranks, int) else as_ranks(ranks))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    ordered = ends[order]
    starts = ordered if instant else starts[order]
    return np.split(places, bounds), (ordered, starts, ranks if isinstance(ranks, int) else ranks[order])


def in_position_order(batches: list[EventBatch]) -> EventBatch:
    """The events of all batches by their positions."""
    batches = sorted((batch for batch in batches if len(batch)), key=lambda batch: int(batch.positions[0]))
    together = blocks.concat(batches)
    steps = np.diff(together.positions)
    if len(steps) and int(steps.min()) < 0:
        return blocks.take(together, np.argsort(together.positions, kind="stable"))
    return together


def move(events: EventBatch, positions: Int64s) -> EventBatch:
    """The same events at other positions."""
    return replace(events, positions=positions)
