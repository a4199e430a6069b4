"""From chunks of the input to runs for the lanes: read, sort, drop what does not matter, split by key, pack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa

from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.lanes.routing import relevant, shares
from weft.runtime.lanes.sieve import Sieve
from weft.runtime.reading.kinds import NANOSECONDS
from weft.runtime.reading.order import EventSource
from weft.runtime.reading.ties import Keys, tie_keys, without_fine
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.runs import pack_count
from weft.runtime.spark.packing.times import Ranks, encode_times
from weft.runtime.spark.packing.wire import narrow, pack_events
from weft.runtime.spark.schema import REJECT_SCHEMA, RUN_SCHEMA

CHUNK_ROWS = 1 << 18  # large enough to make blocks that are worth a shuffle, small enough to hold several


def gather(batches: Iterable[pa.RecordBatch], rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
    """Record batches joined to larger ones, of about that many rows."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if pending and count + batch.num_rows > rows:
            yield pa.concat_batches(pending)
            pending, count = [], 0
        pending.append(batch)
        count += batch.num_rows
    if count:
        yield pa.concat_batches(pending)


@dataclass(frozen=True)
class Place:
    """Where a chunk is in the input: the number of its source, of its part (task or file) and its own in that."""

    source: int
    part: int
    chunk: int


def sieve_of(job: Job) -> Sieve | None:
    """What leaves out events of a whole input that no query can use; None where all of them are counted."""
    return None if job.streaming or job.reading.key or not job.limits.is_none else Sieve(job.plan)


def pack_chunk(
    events: EventSource, place: Place, job: Job, file: bytes | None = None, sieve: Sieve | None = None
) -> pa.RecordBatch:
    """The rows (of RUN_SCHEMA) that tell lanes of the events of one chunk.

    Where positions matter, and in streams, every lane is told the times of all events, otherwise those of its own.
    `file`: where the chunk can be read again, so that late events need not be sent along.
    """
    events.keep_fine = True
    everything = blocks.concat(list(events))
    sources = job.reading.sources if len(job.reading.sources) > 1 else ()
    ties = tie_keys(everything, sources, job.reading.order, NANOSECONDS[job.reading.time_unit])
    everything = without_fine(everything)
    rejects = pack_rejects(events.rejected) if events.rejected else None
    known = relevant(everything, job.plan.relevant_types)
    split = list(shares(known if sieve is None else sieve(known), job.lanes))
    if not job.counts_positions:
        return _own_rows(job.lanes, place, split, ties, rejects, len(everything))
    times = encode_times(everything.ends, everything.starts, 0 if ties is None else ties)
    first = int(everything.ends[0]) if len(everything) else None
    others = file
    if file is None and job.streaming:
        others = pack_events(narrow(replace(_others(everything, split, job), rows=None)))
    packed = [pack_events(narrow(share)) for share in split]
    return run_rows(job.lanes, place, first, times, packed, rejects, others)


def _own_rows(
    lanes: Sequence[Lane],
    place: Place,
    split: Sequence[EventBatch],
    ties: Keys | None,
    rejects: bytes | None,
    count: int,
) -> pa.RecordBatch:
    """A row for each lane that has events, with these alone; the first is told how many there are in the chunk."""
    rows: list[tuple[object, ...]] = []
    for number, (lane, share) in enumerate(zip(lanes, split, strict=True)):
        if len(share) or number == 0:
            ranks: Ranks = 0 if ties is None else ties[share.positions]
            times = encode_times(share.ends, share.starts, ranks)
            own = pack_events(narrow(replace(share, positions=np.arange(len(share)))))
            first = int(share.ends[0]) if len(share) else None
            told = (rejects, pack_count(count)) if number == 0 else (None, None)
            rows.append((lane.id, first, place.source, place.part, place.chunk, times, own, *told))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RUN_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RUN_SCHEMA)


def _others(everything: EventBatch, split: Sequence[EventBatch], job: Job) -> EventBatch:
    """The events that no lane of the first group has."""
    missed = np.ones(len(everything), bool)
    for lane, share in zip(job.lanes, split, strict=True):
        if job.reports_late(lane):
            missed[share.positions] = False
    return blocks.take(everything, np.flatnonzero(missed))


def run_rows(
    lanes: Sequence[Lane],
    place: Place,
    first: int | None,
    times: bytes,
    events: Sequence[bytes],
    rejects: bytes | None,
    others: bytes | None = None,
) -> pa.RecordBatch:
    """One row for each lane; rejects and others go with the first."""
    count = len(lanes)
    columns = [
        pa.array([lane.id for lane in lanes], pa.int32()),
        pa.array([first] * count, pa.int64()),
        pa.array([place.source] * count, pa.int32()),
        pa.array([place.part] * count, pa.int32()),
        pa.array([place.chunk] * count, pa.int32()),
        pa.array([times] * count, pa.binary()),
        pa.array(events, pa.binary()),
        pa.array([rejects, *[None] * (count - 1)], pa.binary()),
        pa.array([others, *[None] * (count - 1)], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RUN_SCHEMA)


def pack_rejects(rejected: Sequence[Rejected]) -> bytes:
    """Unreadable events as bytes."""
    rows = [(place_text(item), None, None, event_text(item.event), item.reason) for item in rejected]
    return blocks.packed_rows(reject_rows(rows))


def place_text(item: Rejected) -> str:
    """Where an unreadable event is: FILE:LINE, or its row in the chunk."""
    return str(item.row) if item.file is None else f"{item.file}:{item.line}"


def reject_rows(rows: Sequence[tuple[str | None, int | None, int | None, str | None, str]]) -> pa.RecordBatch:
    """Rows of REJECT_SCHEMA."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REJECT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=REJECT_SCHEMA)


def event_text(event: object) -> str | None:
    """An event as JSON; values that JSON has no word for as text."""
    return None if event is None else json.dumps(event, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, (date, datetime)) else str(value)
