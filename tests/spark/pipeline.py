"""The pieces of the Spark runtime put together in this process, without Spark: runs to lanes, lanes to rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.query import Program
from weft.plan.planner import plan
from weft.runtime.data.matches import Match
from weft.runtime.local import LocalRun
from weft.runtime.reading.chunks import dict_chunk
from weft.runtime.reading.order import EventSource, Reading, read_events
from weft.runtime.spark.files.work import FileWork
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.spark.lanes.ordering import order_runs
from weft.runtime.spark.lanes.stages import first_stage, next_stage
from weft.runtime.spark.lanes.state import LaneState
from weft.runtime.spark.lanes.worker import match_runs
from weft.runtime.spark.packing.chunks import pack_chunk, sieve_of
from weft.runtime.spark.packing.runs import Place, run_rows_of
from weft.runtime.spark.schema import OUTPUT_SCHEMA, RUN_SCHEMA, SENT_SCHEMA
from weft.runtime.spark.watermark import Lateness
from weft.runtime.writing.match_rows import rows_to_matches

Event = dict[str, object]


def job_for(
    program: Program, lanes: int, *, strategy: str | None = None, streaming: bool = False, positions: bool = True
) -> Job:
    chosen = plan(program, strategy=strategy, lanes=lanes)
    reading = Reading(time_unit=program.time_unit)
    return job_of(chosen, reading, lanes, streaming=streaming, positions=positions)


def packed(part: Sequence[Event], number: int, job: Job, source: int = 0) -> pa.RecordBatch:
    chunk = dict_chunk(part, job.reading.time_unit)
    return pack_chunk(EventSource(lambda: [chunk], job.reading), Place(source, number, 0), job, sieve=sieve_of(job))


def in_batch(parts: Iterable[Sequence[Event]], job: Job) -> pa.Table:
    """The output of all lanes for these input partitions; positions are counted in several time ranges."""
    parts = list(parts)
    times = sorted({int(event["ts"]) for part in parts for event in part if isinstance(event.get("ts"), int)})
    job = replace(job, bounds=tuple(times[1::3]))
    runs = sorted_rows(pa.Table.from_batches([packed(part, number, job) for number, part in enumerate(parts)]))
    if job.counts_by_range:
        runs = sorted_rows(pa.Table.from_batches(order_runs(iter(runs.to_batches()), job), RUN_SCHEMA))
    if job.stages > 1:
        return in_stages(runs, job)
    return pa.Table.from_batches(match_runs(iter(runs.to_batches()), job), OUTPUT_SCHEMA)


def in_stages(runs: pa.Table, job: Job, *, counting: bool = False) -> pa.Table:
    """The output of the last stage, where the lanes of each stage are in two tasks."""
    found = pa.Table.from_batches(first_stage(iter(runs.to_batches()), job, counting), SENT_SCHEMA)
    for stage in range(1, job.stages):
        odd = pc.equal(pc.bit_wise_and(found["to"], 1), 1)
        tasks = [found.filter(odd), found.filter(pc.invert(odd))]
        given = [next_stage(iter(task.to_batches()), job, stage, counting) for task in tasks]
        schema = OUTPUT_SCHEMA if stage == job.stages - 1 else SENT_SCHEMA
        found = pa.concat_tables([pa.Table.from_batches(rows, schema) for rows in given])
    return found


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


def without_positions(matches: Iterable[Match]) -> list[Match]:
    """What matches are where nobody asks for positions: ids stand for the events."""
    return sorted((replace(match, positions=(), bindings={}) for match in matches), key=repr)


def counters_in(output: pa.Table) -> list[dict[str, Any]]:
    """What lanes say besides matches and rejects."""
    told = output.filter(pa.compute.and_(output["query"].is_null(), output["reason"].is_null()))
    return [json.loads(text) for text in told["event"].to_pylist()]


def reasons_in(output: pa.Table) -> list[str]:
    return sorted(output["reason"].drop_null().to_pylist())


def local(program: Program, events: Sequence[Event]) -> list[Match]:
    declared, chosen = [source.type for source in program.inputs], plan(program)
    source = read_events(list(events), catalog=program.catalog, sources=declared, columns=chosen.columns)
    return sorted((m for rows in LocalRun(chosen, source).rows() for m in rows_to_matches(rows)), key=repr)


def cut(events: Sequence[Event], places: Iterable[int]) -> list[list[Event]]:
    marks = [0, *sorted(places), len(events)]
    return [list(events[a:b]) for a, b in pairwise(marks)]
