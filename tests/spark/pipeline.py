"""The pieces of the Spark runtime put together in this process, without Spark: runs to lanes, lanes to rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data.matches import Match
from weft.runtime.local import LocalRun
from weft.runtime.reading.chunks import dict_chunk
from weft.runtime.reading.order import EventSource, Reading, read_events
from weft.runtime.spark.files.work import FileWork
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.spark.lanes.ordering import order_runs
from weft.runtime.spark.lanes.state import LaneState
from weft.runtime.spark.lanes.worker import match_runs
from weft.runtime.spark.packing.chunks import Place, pack_chunk
from weft.runtime.spark.packing.runs import run_rows_of
from weft.runtime.spark.schema import OUTPUT_SCHEMA, RUN_SCHEMA
from weft.runtime.spark.watermark import Lateness
from weft.runtime.writing.match_rows import rows_to_matches

Event = dict[str, object]


def job_for(program: Program, lanes: int, *, strategy: str | None = None, streaming: bool = False) -> Job:
    chosen = plan(program, strategy=strategy)
    return job_of(chosen, Reading(time_unit=program.time_unit), lanes, streaming=streaming)


def packed(part: Sequence[Event], number: int, job: Job, source: int = 0) -> pa.RecordBatch:
    chunk = dict_chunk(part, job.reading.time_unit)
    return pack_chunk(EventSource(lambda: [chunk], job.reading), Place(source, number, 0), job)


def in_batch(parts: Iterable[Sequence[Event]], job: Job) -> pa.Table:
    """The output of all lanes for these input partitions; positions are counted in several time ranges."""
    parts = list(parts)
    times = sorted({int(event["ts"]) for part in parts for event in part if isinstance(event.get("ts"), int)})
    job = replace(job, bounds=tuple(times[1::3]))
    runs = sorted_rows(pa.Table.from_batches([packed(part, number, job) for number, part in enumerate(parts)]))
    if job.counts_by_range:
        runs = sorted_rows(pa.Table.from_batches(order_runs(iter(runs.to_batches()), job), RUN_SCHEMA))
    return pa.Table.from_batches(match_runs(iter(runs.to_batches()), job), OUTPUT_SCHEMA)


def sorted_rows(runs: pa.Table) -> pa.Table:
    keys = runs.select(["lane", "first", "source", "part", "chunk"]).to_pylist()
    places = [(row["lane"], row["first"] is not None, *(number or 0 for number in row.values())) for row in keys]
    return runs.take(pa.array(sorted(range(len(places)), key=places.__getitem__), pa.int64()))


class PageDict(dict[str, bytes]):
    """A store of pages that is a dict."""

    put = dict.__setitem__
    remove = dict.__delitem__


class Stream:
    """All lanes of a stream, with their pages; `forget` makes them read those again."""

    def __init__(self, job: Job, delay: int, sources: int = 1) -> None:
        self.job = job
        self.lateness = Lateness(delay, sources=sources)
        self.pages = {lane.id: PageDict() for lane in job.lanes}
        self.output: list[pa.RecordBatch] = []

    def trigger(self, parts: Iterable[Sequence[Event]], source: int = 0) -> None:
        self.take(pa.Table.from_batches([packed(part, number, self.job, source) for number, part in enumerate(parts)]))

    def end(self) -> None:
        self.take(pa.Table.from_batches([FileWork(self.job, {}).end(0)]))

    def silence(self, source: int = 0) -> None:
        self.take(pa.Table.from_batches([FileWork(self.job, {}).silence(source, 0)]))

    def take(self, runs: pa.Table) -> None:
        for lane in self.job.lanes:
            mine = runs.filter(pa.compute.equal(runs["lane"], lane.id))
            state = LaneState.load(self.pages[lane.id], self.job, lane.id)
            rows = [row for batch in mine.to_batches() for row in run_rows_of(batch)]
            self.output += [*state.take(rows, self.lateness), *state.go_on()]
            state.store(self.pages[lane.id])

    def forget(self) -> None:
        from weft.runtime.spark.lanes import state as lane_state

        lane_state._remembered.clear()

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.output, OUTPUT_SCHEMA)


def matches_in(output: pa.Table) -> list[Match]:
    found = output.filter(pa.compute.is_valid(output["query"]))
    return sorted(rows_to_matches(found), key=repr)


def reasons_in(output: pa.Table) -> list[str]:
    return sorted(output["reason"].drop_null().to_pylist())


def local(program: Program, events: Sequence[Event]) -> list[Match]:
    declared = [source.type for source in program.inputs]
    source = read_events(list(events), catalog=program.catalog, sources=declared)
    return sorted((m for rows in LocalRun(plan(program), source).rows() for m in rows_to_matches(rows)), key=repr)


def cut(events: Sequence[Event], places: Iterable[int]) -> list[list[Event]]:
    marks = [0, *sorted(places), len(events)]
    return [list(events[a:b]) for a, b in pairwise(marks)]
