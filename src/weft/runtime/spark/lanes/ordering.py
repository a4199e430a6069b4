"""Positions by counting: each time range orders its own events, and gives them to the lanes with their positions.

Tasks that read the input cut their events by the bounds of the ranges, and tell each range how many events they have in
front of it. So a range knows its first position, and a lane is sent its own events only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.lanes.routing import shares_by_position
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.sequencer import Sequencer, in_stream_order
from weft.runtime.spark.packing.chunks import Row, enough_for, lane_row, lane_rows, told_row
from weft.runtime.spark.packing.runs import Place, RunRow, SortedRun, pack_told, run_rows_of

EVENTS_OF_A_RANGE = 1 << 20


def order_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: rows for time ranges in, by range and first event (those without events first); rows for lanes out."""
    rows = chain.from_iterable(map(run_rows_of, batches))
    for number, mine in groupby(rows, lambda row: row.lane):
        yield from _ordered(mine, Place(0, number, 0), job)


def _ordered(rows: Iterable[RunRow], place: Place, job: Job) -> Iterator[pa.RecordBatch]:
    """The rows for lanes of one range."""
    sequencer = Sequencer()
    more: list[Row] = []  # rows without events
    before = 0  # events in front of the range

    def runs() -> Iterator[SortedRun]:
        nonlocal before
        for row in rows:
            if row.first is not None:
                yield row.run()
            else:
                before += row.told[0]
                sequencer.released = before
                if row.rejects is not None:
                    more.append(told_row(place, 0, row.rejects))

    for events in blocks.joined(in_stream_order(runs(), sequencer), enough_for(len(job.lanes))):
        split = enumerate(shares_by_position(events, job.lanes))
        yield lane_rows([_row(at, place, share) for at, share in split if len(share)])
        place = replace(place, chunk=place.chunk + 1)
    yield lane_rows([*more, told_row(place, sequencer.released - before, tied=sequencer.tied)])


def _row(at: int, place: Place, share: EventBatch) -> Row:
    """Build the row that a lane receives of a share of a range."""
    own = replace(share, positions=np.arange(len(share)))
    run = SortedRun((place.source, 0, place.part, place.chunk), share.ends, share.starts, own)
    return lane_row(at, place, run, pack_told(0, 0, share.positions))


def bounds_of(ends: Int64s, events: int, least: int) -> tuple[int, ...]:
    """Return bounds of time ranges with about equally many events, from a sample of their ends.

    `events`: their number. `least`: the number of ranges if each of them has enough events.
    """
    ranges = max(events // EVENTS_OF_A_RANGE, min(least, events // (EVENTS_OF_A_RANGE // 4)))
    if ranges < 2 or not len(ends):
        return ()
    ordered = np.sort(ends)
    chosen: Sequence[int] = ordered[np.arange(1, ranges) * len(ordered) // ranges].tolist()
    return tuple(sorted({bound for bound in chosen if bound > ordered[0]}))
