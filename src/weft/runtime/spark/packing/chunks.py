"""From chunks of the input to runs for the lanes: read, sort, drop what does not matter, split by key, pack."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.lanes.routing import relevant, shares
from weft.runtime.lanes.sieve import Sieve
from weft.runtime.reading.kinds import NANOSECONDS
from weft.runtime.reading.order import EventSource
from weft.runtime.reading.ties import Keys, tie_keys, without_fine
from weft.runtime.spark.batching import MOST_ROW_BYTES
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.lean_rows import alike, lean
from weft.runtime.spark.packing.runs import Bytes, Place, SortedRun, join_runs, pack_told, slice_run
from weft.runtime.spark.packing.streams import pack_shares
from weft.runtime.spark.packing.times import Ranks, encode_times
from weft.runtime.spark.packing.wire import narrow, pack_events
from weft.runtime.spark.schema import REJECT_SCHEMA, RUN_SCHEMA

CHUNK_ROWS = 1 << 18  # large enough to make blocks that are worth a shuffle, small enough to hold several
WORTH_A_ROW = 1 << 14  # events: a row has a fixed cost
MOST_PENDING = 1 << 21  # events: several chunks are held until each lane gets enough of them
Row = tuple[object, ...]


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


def sieve_of(job: Job) -> Sieve | None:
    """What leaves out events of a whole input that no query can use; None where all of them are counted."""
    return None if job.streaming or job.reading.key or not job.limits.is_none else Sieve(job.plan)


def pack_chunk(
    events: EventSource, place: Place, job: Job, file: bytes | None = None, sieve: Sieve | None = None
) -> pa.RecordBatch:
    """The rows (of RUN_SCHEMA) that tell the lanes of a stream, or of a whole input, of the events of one chunk.

    `file`: where the chunk can be read again, so that late events of a stream need not be sent along.
    """
    if not job.streaming:
        packer = Packer(job, place, sieve)
        return pa.concat_batches([lane_rows([]), *packer.add(events), *packer.finish()])
    everything, ties = _read(events, job)
    rejects = pack_rejects(events.rejected) if events.rejected else None
    return pack_shares(everything, 0 if ties is None else ties, place, job, rejects, file)


def pack_part(chunks: Iterable[EventSource], job: Job, part: int) -> Iterator[pa.RecordBatch]:
    """In a task: the rows that tell lanes of the chunks of one part of the input."""
    if job.streaming:
        yield from (pack_chunk(events, Place(0, part, at), job) for at, events in enumerate(chunks))
        return
    packer = Packer(job, Place(0, part, 0), sieve_of(job))
    for events in chunks:
        yield from packer.add(events)
    yield from packer.finish()


def _read(events: EventSource, job: Job) -> tuple[EventBatch, Keys | None]:
    """The events of a chunk in stream order, and what decides between equal times."""
    events.keep_fine = True
    events.reading = replace(events.reading, batch_size=MOST_PENDING)  # not cut to be joined again
    everything = blocks.concat(list(events))
    sources = job.reading.sources if len(job.reading.sources) > 1 else ()
    ties = tie_keys(everything, sources, job.reading.order, NANOSECONDS[job.reading.time_unit])
    return without_fine(everything), ties


class Packer:
    """Packs chunks of one part of a finite input into rows for lanes, or for time ranges if these come first.

    Chunks are joined until a row is large enough to send. Where positions are counted, a sorted run has the times of
    all events, and each range gets the number of events before it.
    """

    def __init__(self, job: Job, place: Place, sieve: Sieve | None) -> None:
        self._job, self._place, self._sieve = job, place, sieve
        self._enough = enough_for(len(job.bounds) + 1 if job.counts_by_range else len(job.lanes))
        self._pending: list[SortedRun] = []
        self._waiting = 0  # events that are pending
        self._rejected: list[Rejected] = []
        self._unpacked = 0  # events that no row tells of yet
        self._in_ranges = np.zeros(len(job.bounds) + 1, np.int64)
        self._event_bytes = 0.0  # of an event in the row before

    def add(self, events: EventSource) -> Iterator[pa.RecordBatch]:
        """Take a chunk; the rows of those that are enough together."""
        everything, ties = _read(events, self._job)
        everything = lean(everything)
        self._rejected += events.rejected
        self._unpacked += len(everything)
        types = self._job.plan.relevant_types
        known = relevant(everything, types) if self._sieve is None else self._sieve(everything)
        ranks: Ranks = 0 if ties is None else ties
        seen = everything
        if not self._job.counts_positions:
            ranks = ranks if isinstance(ranks, int) else ranks[known.positions]
            known = seen = replace(known, positions=np.arange(len(known)))
        origin = (self._place.source, 0, self._place.part, len(self._pending))
        self._pending.append(SortedRun(origin, seen.ends, seen.starts, known, ranks))
        self._waiting += len(seen)
        if self._waiting >= self._enough:
            yield self._rows()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows of the rest."""
        if self._pending:
            yield self._rows()
        if self._job.counts_by_range:
            before = np.cumsum(self._in_ranges) - self._in_ranges
            yield lane_rows([told_row(self._place, int(n), at=at) for at, n in enumerate(before) if n])

    def _rows(self) -> pa.RecordBatch:
        """The rows of what is pending."""
        joinable = alike([pending.events for pending in self._pending])
        run = join_runs([replace(run, events=own) for run, own in zip(self._pending, joinable, strict=True)])
        rejects = pack_rejects(self._rejected) if self._rejected else None
        job, place = self._job, self._place
        if job.counts_by_range:
            cuts = [0, *np.searchsorted(run.ends, job.bounds).tolist(), len(run)]
            self._in_ranges += np.diff(cuts)
            pieces = {at: slice_run(run, *ends) for at, ends in enumerate(pairwise(cuts)) if ends[0] < ends[1]}
        elif job.counts_positions:
            pieces = {0: replace(run, events=next(shares(run.events, job.lanes)))}
        else:
            split = enumerate(shares(run.events, job.lanes))
            pieces = {at: _own(share, run) for at, share in split if len(share)}
        rows = [row for at, piece in pieces.items() for row in self._rows_of(at, piece)]
        if rejects is not None or self._unpacked:
            rows.append(told_row(place, 0 if job.counts_by_range else self._unpacked, rejects))
        self._place = replace(place, chunk=place.chunk + max(Counter(row[0] for row in rows).values(), default=1))
        self._pending, self._waiting, self._rejected, self._unpacked = [], 0, [], 0
        return lane_rows(rows)

    def _rows_of(self, at: int, run: SortedRun) -> Iterator[Row]:
        """Build the rows of a sorted run for a lane (or range); in a job that only counts, rows of bounded size."""
        waiting, number = [run], 0
        while waiting:
            piece = waiting.pop()
            bytes_ahead = len(piece) * self._event_bytes
            if not self._job.is_anonymous or bytes_ahead <= MOST_ROW_BYTES or len(piece) < 2:
                row = lane_row(at, replace(self._place, chunk=self._place.chunk + number), piece)
                bytes_ahead = row_bytes(row)
                self._event_bytes = bytes_ahead / max(1, len(piece))
                if not self._job.is_anonymous or bytes_ahead <= MOST_ROW_BYTES or len(piece) < 2:
                    yield row
                    number += 1
                    continue
            parts = min(len(piece), int(bytes_ahead / (0.8 * MOST_ROW_BYTES)) + 1)
            cuts = np.linspace(0, len(piece), parts + 1).astype(np.int64).tolist()
            waiting += [slice_run(piece, *ends) for ends in pairwise(cuts)][::-1]


def enough_for(rows: int) -> int:
    """Return how many events make `rows` rows large enough to send."""
    return min(MOST_PENDING, WORTH_A_ROW * rows)


def _own(share: EventBatch, run: SortedRun) -> SortedRun:
    """The run of a share of a run's events."""
    ranks = run.ranks if isinstance(run.ranks, int) else run.ranks[share.positions]
    return SortedRun(run.origin, share.ends, share.starts, replace(share, positions=np.arange(len(share))), ranks)


def lane_row(at: int, place: Place, run: SortedRun, told: bytes | None = None) -> Row:
    """Build the row of one lane (or range) for a sorted run, as a row of RUN_SCHEMA."""
    times = encode_times(run.ends, run.starts, run.ranks)
    first = int(run.ends[0]) if len(run) else None
    return (at, first, place.source, place.part, place.chunk, times, pack_events(narrow(run.events)), None, told)


def row_bytes(row: Row) -> int:
    """The size of a row of RUN_SCHEMA, as far as it is not always the same."""
    return sum(len(value) for value in row if isinstance(value, bytes))


def told_row(place: Place, count: int, rejects: Bytes | None = None, *, at: int = 0, tied: int = 0) -> Row:
    """A row without events for a lane (or range): how many there are, and those that cannot be read."""
    unreadable = None if rejects is None else bytes(rejects)
    return (at, None, place.source, place.part, place.chunk, b"", b"", unreadable, pack_told(count, tied))


def lane_rows(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of RUN_SCHEMA."""
    columns = zip(*rows, strict=True) if rows else [[]] * len(RUN_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RUN_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RUN_SCHEMA)


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
