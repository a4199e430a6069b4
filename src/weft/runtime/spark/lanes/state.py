"""One lane of a stream between triggers: what it holds, and the pages that this is kept as."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.fronts import Cluster, reach
from weft.runtime.results.results import Results
from weft.runtime.spark.jobs.job import Job, Seed
from weft.runtime.spark.lanes.changing import Changing, gone_layers, restored
from weft.runtime.spark.lanes.emission import EmissionFilter
from weft.runtime.spark.lanes.head import (
    NO_ATTEMPT,
    Attempt,
    Head,
    count_positions,
    head_of,
    refuse_interrupted,
    refuse_others,
)
from weft.runtime.spark.lanes.idle import idle_names, silent_sources
from weft.runtime.spark.lanes.late import late_rows, reads_again
from weft.runtime.spark.lanes.sequencer import Sequencer
from weft.runtime.spark.packing.runs import END_OF_STREAM, Origin, RunRow, cut_run, pack_run, unpack_run
from weft.runtime.spark.packing.streams import Summary
from weft.runtime.spark.schema import as_output, counters_as_output, rejects_as_output
from weft.runtime.spark.watermark import END_OF_TIME, Lateness
from weft.runtime.watching.tallies import together
from weft.runtime.watching.triggers import OperatorStats
from weft.stored import Plain

HEAD, RECORD, RUN, MATCHER = "head", "record", "run/", "matcher/"
_REMEMBERED = 16


class Pages(Protocol):
    """A store of named pages: one lane's part of Spark's state store."""

    def get(self, name: str) -> bytes | None:
        """The page of that name, None when there is none."""

    def items(self) -> Iterable[tuple[str, bytes]]:
        """All pages."""

    def put(self, name: str, page: bytes) -> None:
        """Write a page."""

    def remove(self, name: str) -> None:
        """Forget a page."""


# States by stamp. A worker that is given a lane it has just had need not read it again; if the trigger it
# remembers was never committed, the stamp in the store is another one and the memory is not used.
_remembered: OrderedDict[str, LaneState] = OrderedDict()


class LaneState:
    """A lane's sequencer and matcher."""

    def __init__(
        self,
        job: Job,
        head: Head,
        sequencer: Sequencer,
        matcher: Matcher,
        changing: Changing | None = None,
        lane: Lane | None = None,
    ) -> None:
        self.job = job
        self.head = head
        self.sequencer = sequencer
        self.matcher = matcher
        self.attempt = NO_ATTEMPT
        self._reported: dict[str, OperatorStats] = {}  # as they stood after the last trigger
        self.guard = None if job.limits.is_none else job.limits.shared(len(job.lanes)).guard(job.plan.queries)
        own = None if lane is None else job.generation_of(lane)
        self._telling = None if own is None or own.is_first else EmissionFilter(own, head.points)
        told = self._telling, job.counted
        matcher.identify_by(job.reading.key)
        self.results = Results(matcher, job.query_names, job.shape, self.guard, *told)
        self._changing = changing
        self._counted: list[Plain] = []  # statistics of the events of this trigger
        self._reports = lane is not None and job.reports_late(lane)
        self._stored: dict[Origin, int] = dict.fromkeys(sequencer.held, 0)  # what each run had used when written
        self._sizes: dict[str, int] = {}  # of the pages in the store
        self._record: str | None = None  # the job's, as it is stored

    @classmethod
    def load(cls, pages: Pages, job: Job, lane_id: int, attempt: Attempt = NO_ATTEMPT) -> LaneState:
        """The lane as the pages have it; a new one if there are none. `attempt`: the task that asks."""
        state = cls._loaded(pages, job, lane_id, attempt)
        state.attempt = attempt
        return state

    @classmethod
    def _loaded(cls, pages: Pages, job: Job, lane_id: int, attempt: Attempt) -> LaneState:
        lane = job.lane_named(lane_id)
        count, shared = job.beginnings(lane)
        own = job.generation_of(lane)
        chosen = job.plan if own is None else own.plan
        stored = pages.get(HEAD)
        if stored is None:
            return cls._begun(job, lane, Matcher(chosen, lane))
        head = head_of(stored)
        refuse_interrupted(head, attempt)
        refuse_others(head, count, shared)
        count_positions(head, job)
        remembered = _remembered.pop(head.stamp, None)
        if remembered is not None and remembered.job.finds == job.finds:
            remembered.job = job
            return remembered
        everything = dict(pages.items())
        kept = {name.removeprefix(MATCHER): page for name, page in everything.items() if name.startswith(MATCHER)}
        # Before all else: it knows pages of another layout.
        if own is None:
            matcher, watching = restored(job, lane, kept, head.form, head.watched)
        else:
            matcher, watching = Matcher.restore(chosen, kept, lane, head.gone), None
            leaving = sorted(own.gone.intersection(lane.queries).difference(head.gone))
            matcher.remove(leaving)
            head.gone += leaving
        runs = (unpack_run(page) for name, page in everything.items() if name.startswith(RUN))
        held = [cut_run(run, head.used.get(_name(run.origin), 0)) for run in runs]
        state = cls(job, head, Sequencer(head.released, held), matcher, watching, lane)
        state.results.load(kept)
        state._sizes = {name: len(page) for name, page in everything.items()}
        state._record = everything[RECORD].decode() if RECORD in everything else None
        return state

    @classmethod
    def _begun(cls, job: Job, lane: Lane, matcher: Matcher) -> LaneState:
        """Return a new lane, with the pending events in the seed of its generation."""
        count, shared = job.beginnings(lane)
        head = Head() if job.seed is None else head_of(job.seed.head)
        head = replace(head, lanes=count, shared=shared, gone=[], points={}, form=None, timer=None, used={}, taken=0)
        count_positions(head, job)
        waiting = map(unpack_run, job.seed.runs) if job.seed is not None and head.counting else ()
        watching = Changing(job, lane, matcher) if job.adapts else None
        state = cls(job, head, Sequencer(head.released, waiting), matcher, watching, lane)
        state._stored.clear()  # what waits is not in this lane's pages yet
        return state

    def take(self, rows: Sequence[RunRow], lateness: Lateness) -> Iterator[pa.RecordBatch]:
        """Hold the runs of one trigger; give what is late or could not be read as rejects, and counters.

        With a delay the watermark follows the slowest source; without one it is set from outside.
        """
        head, count = self.head, 0
        clusters: dict[str, list[Cluster]] = {}
        for row in sorted(rows, key=lambda row: (row.source, row.part, row.chunk)):
            if row.rejects is not None:
                yield self._output(rejects_as_output(blocks.unpacked_rows(row.rejects)))
            if row.chunk >= 0 and row.first is not None:
                summary = Summary.of(row.others)
                clusters.setdefault(lateness.name_of(row.source, row.part), []).extend(summary.clusters)
                if len(summary.counted):
                    self._counted.append(json.loads(bytes(summary.counted)))
                own, rejects = self._hold(row, summary)
                count += self._told_of(row, summary, own)
                if rejects is not None:
                    yield self._output(rejects_as_output(rejects))
        for name, found in clusters.items():
            reach(head.reached, head.doubted, name, found, lateness.jump)
        peak = max((own.last for found in clusters.values() for own in found), default=None)
        if peak is not None and (not head.peaks or peak > head.peaks[-1][1]):
            head.peaks.append([head.trigger, peak])
        head.trigger += 1
        self._follow(rows, lateness)
        if any(row.chunk == END_OF_STREAM for row in rows):
            head.watermark = END_OF_TIME
        if count:
            yield self._output(counters_as_output({"events": count}))

    def _told_of(self, row: RunRow, summary: Summary, own: int) -> int:
        """How many events of a chunk it falls to this lane to count, of which `own` are its own: all in one lane."""
        self.head.taken += own
        apart = summary.apart - summary.late(self.head.watermark)
        return apart + (own if self._reports and not reads_again(row.source, self.job) else 0)

    def _follow(self, rows: Sequence[RunRow], lateness: Lateness) -> None:
        """Let the watermark follow the slowest of those who are not idle; it never goes back."""
        head = self.head
        if lateness.delay is None or head.watermark == END_OF_TIME:
            return
        head.silent = silent_sources(head.silent, rows)
        idle = idle_names(head.reached, head.heard, rows, lateness).union(head.silent)
        active = [time for name, time in head.reached.items() if name not in idle]
        if lateness.awaited - idle <= head.reached.keys() and head.reached:
            # When all are silent nothing waits; but time goes no further than events have come.
            now = min(active, default=max(head.reached.values()) + 1) - lateness.delay
            head.watermark = now if head.watermark is None else max(now, head.watermark)

    def _hold(self, row: RunRow, summary: Summary) -> tuple[int, pa.RecordBatch | None]:
        """Hold the lane's events that are not late; how many these are, and the rejects for those that are."""
        watermark = self.head.watermark
        run, rejects = row.run(self.head.trigger), None
        if watermark is not None and row.first is not None and row.first < watermark:
            late = int(np.searchsorted(run.ends, watermark, side="left"))
            count = int(np.searchsorted(run.events.positions, late, side="left"))
            rejects = late_rows(row, blocks.slice(run.events, 0, count), summary, watermark, self.job)
            run = cut_run(run, late)
        self.sequencer.add(run)
        return len(run.events), rejects

    def go_on(self) -> Iterator[pa.RecordBatch]:
        """Match the events that the watermark has passed, and advance time.

        Every lane is given the watermark of the whole stream, so no key waits for its own events.
        """
        watermark = self.head.watermark
        if watermark is None:
            return
        ended = watermark == END_OF_TIME
        released = self.sequencer.release(None if ended else watermark)
        self.head.peaks = [peak for peak in self.head.peaks if peak[1] >= watermark]
        if self._telling is not None:
            self._telling.note(self.head.peaks, watermark, self.sequencer.released)
        kept = released if self.guard is None else self.guard.events(released, self.matcher)
        for number, events in enumerate(blocks.pieces(kept)):
            if self._changing is not None:
                self._changing.look(events, first=number == 0)
            if not self.job.empty:
                yield from map(self._output, self.results.push(events))
        if self.guard is not None:
            self.guard.done(self.matcher)
        if not ended:
            yield from map(self._output, self.results.advance(watermark))
        elif not self.head.finished:
            self.head.finished = True
            yield from map(self._output, self.results.finish())
        yield from self._left_out()
        self._hand_over(watermark)

    def _hand_over(self, watermark: int) -> None:
        """Leave queries to other lanes, once all their matches that belong here are emitted."""
        if self._telling is None:
            return
        safe = self.matcher.watermark
        done = self._telling.handed_over(watermark if safe is None else min(safe, watermark), self.sequencer.released)
        leaving = [number for number in done if number not in self.head.gone]
        if leaving:
            self.matcher.remove(leaving)
            self.head.gone += leaving

    def _left_out(self) -> Iterator[pa.RecordBatch]:
        """What the limits left out in the trigger, as a row of the output; what waited for time or the end, too."""
        counted = {} if self.guard is None else self.guard.newly_counted()
        if counted:
            yield self._output(counters_as_output(counted))

    def _output(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return as_output(rows, self.job.shape)

    @property
    def due(self) -> int | None:
        """The time that must pass for something to happen here: any, when matches may wait for it."""
        if self.head.watermark is not None and self.matcher.watermark is not None:
            return self.head.watermark
        return self.sequencer.first_held

    def store(self, pages: Pages) -> None:
        """Write the pages that changed. A run is written once; how much of it has been used is in the head."""
        head, held = self.head, self.sequencer.held
        for origin in [origin for origin in self._stored if origin not in held]:
            self._remove(pages, _name(origin))
            del self._stored[origin]
        for origin, run in held.items():
            if origin not in self._stored:
                self._put(pages, _name(origin), pack_run(run))
                self._stored[origin] = run.used
        head.used = {_name(origin): held[origin].used - base for origin, base in self._stored.items()}
        for name, page in self.results.snapshot().items():
            if page is None:
                self._remove(pages, MATCHER + name)
            else:
                self._put(pages, MATCHER + name, page)
        if self._changing is not None:
            head.watched = self._changing.watched()
        if self._changing is not None and self._changing.changes:
            head.form = self._changing.saved()
        if head.form is not None or head.gone:
            for name in gone_layers(self.matcher, list(self._sizes), MATCHER):
                self._remove(pages, name)
        if self.job.record not in (None, self._record):
            self._record = self.job.record
            self._put(pages, RECORD, self._record.encode())
        head.released = self.sequencer.released
        head.stamp = uuid.uuid4().hex
        head.attempt = self.attempt
        self._put(pages, HEAD, json.dumps(asdict(head)).encode())
        _remembered[head.stamp] = self
        while len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)

    def _put(self, pages: Pages, name: str, page: bytes) -> None:
        pages.put(name, page)
        self._sizes[name] = len(page)

    def _remove(self, pages: Pages, name: str) -> None:
        pages.remove(name)
        self._sizes.pop(name, None)

    def report(self, lane_id: int) -> pa.RecordBatch:
        """Return the statistics of the lane after a trigger, as a row of the output.

        `held` events wait for the watermark; `behind` is how many events ago the oldest came that a later match may
        contain (0: none is pending), and `lag` the ticks from the watermark to the latest event.
        """
        head = self.head
        latest = max(head.reached.values(), default=None)
        oldest = self.matcher.oldest()
        operators = {operator.name: operator for operator in self.matcher.operator_stats()}
        did = [list(one.since(self._reported.get(name))) for name, one in operators.items()]
        self._reported = operators
        standing = {
            "lane": lane_id,
            "taken": head.taken,
            "held": self.sequencer.waiting,
            "behind": 0 if oldest is None else max(0, self.sequencer.released - oldest),
            "state_bytes": sum(self._sizes.values()),
            "lag": None
            if latest is None or head.watermark is None or head.watermark == END_OF_TIME
            else max(0, latest - head.watermark),
            "watermark": head.watermark,
            "reached": head.reached,
            "operators": did,
            "changes": 0 if self._changing is None else self._changing.changes,
            "changes_refused": 0 if self._changing is None else self._changing.refused,
            "counted": together(self._counted),
        }
        self._counted = []
        return self._output(counters_as_output({"standing": standing, "steps": self.results.newly_counted()}))


def seed_of(head: bytes, runs: Iterable[bytes]) -> Seed:
    """Return the seed of a new lane, from the pages of one that has seen the whole stream, without its events."""
    used = head_of(head).used
    waiting = [cut_run(run, used.get(_name(run.origin), 0)) for run in map(unpack_run, runs)]
    return Seed(head, tuple(pack_run(replace(run, events=blocks.slice(run.events, 0, 0))) for run in waiting))


def _name(origin: Origin) -> str:
    return RUN + "/".join(map(str, origin))
