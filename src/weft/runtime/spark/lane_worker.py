"""What one lane does: runs in, put into stream order, matched; matches and rejects out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch, to_record_batches
from weft.runtime.spark.job import Job
from weft.runtime.spark.runs import run_rows_of
from weft.runtime.spark.schema import (
    counters_as_output,
    counts_as_output,
    record_batch_of,
    rejects_as_output,
    with_reason,
)
from weft.runtime.spark.sequencer import Sequencer

PUSHED = 65536  # events given to the kernels at a time


class Lane:
    """A lane of a whole input, whose runs come ordered by their first event."""

    def __init__(self, batches: Iterator[pa.RecordBatch], job: Job) -> None:
        self.job = job
        self.matcher: Matcher | None = None
        self.rejects: list[pa.RecordBatch] = []
        self._sequencer = Sequencer()
        self._first = False
        self._batches = batches

    def events(self) -> Iterator[EventBatch]:
        """The lane's events in stream order, some at a time; none in a task that was given no run."""
        for row in chain.from_iterable(map(run_rows_of, self._batches)):
            if self.matcher is None:
                self.matcher = Matcher(self.job.plan, self.job.lane_named(row.lane).queries)
                self._first = row.lane == self.job.lanes[0].id
            if row.rejects is not None:
                self.rejects.append(rejects_as_output(record_batch_of(row.rejects)))
            if row.first is not None:
                yield from pieces(self._sequencer.release(row.first))
                self._sequencer.add(row.run())
        yield from pieces(self._sequencer.release(None))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What comes after all events: rejects and counters."""
        yield from self.rejects
        if self.matcher is not None:
            yield counters_as_output(counters_of(self.matcher, self._sequencer.released if self._first else 0))


def match_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: the matches of one lane, its rejects and its counters."""
    lane = Lane(batches, job)
    for events in lane.events():
        if lane.matcher is not None and not job.empty:
            yield from match_rows(lane.matcher.push(events), job)
    if lane.matcher is not None:
        yield from match_rows(lane.matcher.finish(), job)
    yield from lane.rest()


def count_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: the numbers of matches of one lane, its rejects and its counters."""
    lane = Lane(batches, job)
    totals: Counter[str] = Counter()
    for events in lane.events():
        if lane.matcher is not None:
            totals.update(lane.matcher.count(events))
    if lane.matcher is not None:
        totals.update({rest.query: len(rest) for rest in lane.matcher.finish()})
    yield counts_as_output(totals)
    yield from lane.rest()


def pieces(events: EventBatch) -> Iterator[EventBatch]:
    """A batch cut to the size that kernels like."""
    for first in range(0, len(events), PUSHED):
        yield blocks.slice(events, first, PUSHED)


def match_rows(matches: Iterable[MatchBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Matches as rows of the output, piece by piece: there may be more than fit into memory."""
    for piece in matches:
        for rows in to_record_batches([piece], job.query_names):
            yield with_reason(rows)


def counters_of(matcher: Matcher, events: int) -> dict[str, int]:
    """A matcher's counters; `events` are those of the whole input, to be counted by one lane only."""
    return {**matcher.counters, "events": events}
