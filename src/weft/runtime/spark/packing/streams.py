"""Rows for the lanes of a stream, from its chunks: each has the lane's own events, and the progress of time.

Where positions are counted, a lane also gets the times of all events. One lane also gets the events of no lane, since
they are counted, and reported if they are late.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.lanes.routing import relevant, shares
from weft.runtime.reading.fronts import Cluster, clusters_of
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.runs import Bytes, Place
from weft.runtime.spark.packing.times import Ranks, count_of, decode_times, encode_times
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events
from weft.runtime.spark.schema import RUN_SCHEMA

_HEAD = struct.Struct("<qqqq")  # the number of clusters, and the lengths of what follows them
_CLUSTER = struct.Struct("<qqqb3q")


@dataclass(frozen=True)
class Summary:
    """The part of a chunk that a lane gets besides its own events.

    `times` and `events`, for one lane only: of the events of no lane; of a file the times of all its events, and where
    they can be read again. `counted`, for the same lane: statistics of the chunk.
    """

    clusters: tuple[Cluster, ...] = ()
    times: Bytes = b""
    events: Bytes = b""
    counted: Bytes = b""

    def packed(self) -> bytes:
        """The summary as bytes."""
        tails = [(*own.tail, 0, 0)[:3] for own in self.clusters]
        packed = [
            _CLUSTER.pack(own.first, own.last, own.size, len(own.tail), *tail)
            for own, tail in zip(self.clusters, tails, strict=True)
        ]
        more = self.times, self.events, self.counted
        return b"".join([_HEAD.pack(len(packed), *map(len, more)), *packed, *more])

    @classmethod
    def of(cls, data: Bytes | None) -> Summary:
        """What was packed into these bytes; of a row that is of no chunk, nothing."""
        if data is None:
            return cls()
        view = pa.py_buffer(data)
        count, *lengths = _HEAD.unpack_from(view)
        at = _HEAD.size + count * _CLUSTER.size
        found = (_CLUSTER.unpack_from(view, _HEAD.size + number * _CLUSTER.size) for number in range(count))
        clusters = tuple(Cluster(own[0], own[1], own[2], own[4 : 4 + own[3]]) for own in found)
        places = [at + sum(lengths[:number]) for number in range(len(lengths))]
        return cls(clusters, *(view.slice(at, length) for at, length in zip(places, lengths, strict=True)))

    @property
    def apart(self) -> int:
        """The number of events that this lane is informed of besides its own."""
        return count_of(self.times) if len(self.times) else 0

    @cached_property
    def _decoded(self) -> tuple[Int64s, Int64s, Ranks]:
        return decode_times(self.times)

    def late(self, watermark: int | None) -> int:
        """How many of these end before a watermark; times are looked at only if there may be some."""
        if watermark is None or not self.apart or self.clusters[0].first >= watermark:
            return 0
        return int(np.searchsorted(self._decoded[0], watermark, side="left"))

    def late_events(self, watermark: int) -> EventBatch:
        """Those events, which are no file's."""
        ends, starts, _ = self._decoded
        return blocks.slice(unpack_events(self.events, ends, starts), 0, self.late(watermark))


def pack_shares(
    everything: EventBatch, ranks: Ranks, place: Place, job: Job, rejects: bytes | None, file: bytes | None
) -> pa.RecordBatch:
    """The rows (of RUN_SCHEMA) of one chunk, whose events are in stream order, one for each lane.

    `file`: where the chunk can be read again, so that late events need not be sent along.
    """
    known = relevant(everything, job.plan.relevant_types) if job.sieve is None else job.sieve(everything)
    counted = b""
    if job.tallying is not None:
        counted = json.dumps(job.tallying.of_chunk(relevant(everything, job.plan.relevant_types))).encode()
    split = list(shares(known, job.lanes))
    summary = Summary(tuple(clusters_of(everything.ends, job.jump)))
    apart = replace(everything if file else _others(everything, split, job), rows=None)
    first_told = replace(
        summary,
        times=encode_times(apart.ends, apart.starts),
        events=file or pack_events(narrow(replace(apart, positions=np.arange(len(apart))))),
        counted=counted,
    )
    if job.counts_positions:
        times = [encode_times(everything.ends, everything.starts, ranks)] * len(split)
    else:
        own = (ranks if isinstance(ranks, int) else ranks[share.positions] for share in split)
        times = [encode_times(share.ends, share.starts, rank) for share, rank in zip(split, own, strict=True)]
        split = [replace(share, positions=np.arange(len(share))) for share in split]
    first = int(everything.ends[0]) if len(everything) else None
    packed = [pack_events(narrow(share)) for share in split]
    told = [first_told.packed(), *[summary.packed()] * (len(split) - 1)]
    return run_rows(job.lanes, place, first, times, packed, rejects, told)


def _others(everything: EventBatch, split: Sequence[EventBatch], job: Job) -> EventBatch:
    """The events that no lane of the first group has."""
    missed = np.ones(len(everything), bool)
    for lane, share in zip(job.lanes, split, strict=True):
        if job.reports_late(lane):
            missed[share.positions] = False
    return blocks.take(everything, np.flatnonzero(missed))


def rows_without_events(
    lanes: Sequence[Lane], place: Place, first: int | None, rejects: bytes | None
) -> pa.RecordBatch:
    """Return one row for each lane that reports something else than events; rejects go with the first."""
    none = np.empty(0, np.int64)
    times = [encode_times(none, none)] * len(lanes)
    return run_rows(lanes, place, first, times, [b""] * len(lanes), rejects, [None] * len(lanes))


def run_rows(
    lanes: Sequence[Lane],
    place: Place,
    first: int | None,
    times: Sequence[bytes],
    events: Sequence[bytes],
    rejects: bytes | None,
    told: Sequence[bytes | None],
) -> pa.RecordBatch:
    """One row for each lane; rejects go with the first."""
    count = len(lanes)
    columns = [
        pa.array([lane.id for lane in lanes], pa.int32()),
        pa.array([first] * count, pa.int64()),
        pa.array([place.source] * count, pa.int32()),
        pa.array([place.part] * count, pa.int32()),
        pa.array([place.chunk] * count, pa.int32()),
        pa.array(times, pa.binary()),
        pa.array(events, pa.binary()),
        pa.array([rejects, *[None] * (count - 1)], pa.binary()),
        pa.array(told, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RUN_SCHEMA)
