"""What one lane does: runs in, put into stream order, matched; matches and rejects out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

import pyarrow as pa

from weft.plan.partitioning.by_key import ByKey
from weft.runtime.data import blocks
from weft.runtime.data.blocks import PUSHED
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.execution.stage_matcher import StageMatcher
from weft.runtime.results.results import Results
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.sequencer import Sequencer, in_stream_order
from weft.runtime.spark.packing.runs import RunRow, in_position_order, move, run_rows_of
from weft.runtime.spark.schema import (
    as_output,
    counters_as_output,
    counts_as_output,
    rejects_as_output,
)
from weft.runtime.watching.census import Census

SMALL = 1 << 21  # bytes of events: lanes of keys with fewer share a matcher


class WholeLane:
    """A lane of a whole input, whose runs come ordered by their first event."""

    def __init__(self, place: int, rows: Iterable[RunRow], job: Job, *, joined: bool = False) -> None:
        lane = job.lanes[place]
        self.place = place
        self.matcher = StageMatcher(job.plan, lane) if job.plan.placed else Matcher(job.plan, lane)
        self.matcher.identify_by(job.reading.key)
        self._guard = job.limits.shared(len(job.lanes)).guard(job.plan.queries)
        guard = None if self._guard.is_idle else self._guard
        self.results = Results(self.matcher, job.query_names, job.shape, guard)
        self._is_ordered = job.counts_by_range
        self._joined = joined  # rows are of several lanes
        self._tells_ties = self._is_ordered or job.reports_late(lane)
        self._events = 0  # of the whole input, as far as this lane is told
        self._tied = 0
        self._rows = rows
        self._rejects: list[pa.RecordBatch] = []
        self._sequencer = Sequencer()
        self._census = Census(job.plan.program)

    def events(self) -> Iterator[EventBatch]:
        """The lane's events in stream order, some at a time."""
        if self.matcher.looks_back:
            self._rows = list(self._rows)
            self.matcher.expect(max((row.longest for row in self._rows if row.first is not None), default=0))
        batches: Iterable[EventBatch]
        if self._is_ordered and self._joined:
            batches = [in_position_order([move(row.run().events, row.positions) for row in self._with_events()])]
        elif self._is_ordered:
            batches = blocks.joined((move(row.run().events, row.positions) for row in self._with_events()), PUSHED)
        else:
            batches = in_stream_order((row.run() for row in self._with_events()), self._sequencer)
        for batch in batches:
            self._census.look(batch)
            yield from blocks.pieces(batch)

    def _with_events(self) -> Iterator[RunRow]:
        """The rows that have events; what others tell is noted."""
        for row in self._rows:
            if row.first is not None:
                yield row
                continue
            count, tied = row.told
            self._events, self._tied = self._events + count, self._tied + tied
            if row.rejects is not None:
                self._rejects.append(rejects_as_output(blocks.unpacked_rows(row.rejects)))

    def rows(self, *, empty: bool = False) -> Iterator[pa.RecordBatch]:
        """Its matches, and then the rest; `empty`: without matching."""
        for events in self.events():
            if not empty:
                yield from self.results.push(self._guard.events(events, self.matcher))
                self._guard.done(self.matcher)
        yield from self.results.finish()
        yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What comes after all events: rejects and counters."""
        yield from self._rejects
        ties = self._tied + self._sequencer.tied
        tied = {"tied": ties} if self._tells_ties and ties else {}
        yield counters_as_output(
            {**self.matcher.counters, "events": self._events, **tied, **self._census.counts, **self._guard.counters}
        )


def lanes_in(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[WholeLane]:
    """Yield the lanes that a task was given, in sequence; small lanes of keys run as if they were one lane."""
    rows = chain.from_iterable(map(run_rows_of, batches))
    joined: list[RunRow] = []
    join = _may_join(job)
    for place, mine in groupby(rows, lambda row: row.lane):
        rest = iter(mine)
        taken = _first_bytes(rest) if join else []
        if not join or sum(len(row.events) for row in taken) > SMALL:
            yield WholeLane(place, chain(taken, rest), job)
            continue
        joined += taken
        if sum(len(row.events) for row in joined) > SMALL:
            yield _together(joined, job)
            joined = []
    if joined:
        yield _together(joined, job)


def _may_join(job: Job) -> bool:
    """Whether lanes differ in nothing but the keys of their events."""
    first = job.lanes[0]
    alike = all((lane.split, lane.queries) == (first.split, first.queries) for lane in job.lanes)
    return alike and isinstance(first.split, ByKey) and job.limits.is_none


def _first_bytes(rows: Iterable[RunRow]) -> list[RunRow]:
    """The rows of a lane, as far as a small lane has them."""
    taken: list[RunRow] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row.events)
        if size > SMALL:
            break
    return taken


def _together(rows: Sequence[RunRow], job: Job) -> WholeLane:
    """One lane for the rows of several."""
    lanes = len(job.lanes)
    apart = [replace(row, chunk=row.chunk * lanes + row.lane) for row in rows]  # each run has a place of its own
    apart.sort(key=lambda row: (row.first is not None, row.first or 0, row.source, row.part, row.chunk))
    return WholeLane(rows[0].lane, apart, job, joined=len({row.lane for row in rows}) > 1)


def match_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: the matches of its lanes, their rejects and counters."""
    for lane in lanes_in(batches, job):
        for rows in lane.rows(empty=job.empty):
            yield as_output(rows, job.shape)


def match_packed(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: the same rows as bytes, some to a row."""
    for rows in match_runs(batches, job):
        yield pa.record_batch([pa.array([blocks.packed_rows(rows)], pa.binary())], names=["rows"])


def count_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """In a task: the numbers of matches of its lanes, their rejects and counters."""
    for lane in lanes_in(batches, job):
        totals: Counter[str] = Counter()
        for events in lane.events():
            totals.update(lane.matcher.count(events))
        for last in lane.matcher.finish():
            totals.update(last.counts)
        yield counts_as_output(totals)
        yield from lane.rest()
