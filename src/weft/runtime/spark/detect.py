"""The Spark engine behind `detect`, `count` and `weft match`: matches come back to this process in match order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from weft.errors import UsageError
from weft.plan.operators import Plan
from weft.runtime.data.events import Rejected
from weft.runtime.data.joint_types import joint_schema
from weft.runtime.data.shape import MATCH_SCHEMA, Shape
from weft.runtime.options import EventColumns
from weft.runtime.reading.chunks import Chunk, chunks_of
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.sources import NamedSource
from weft.runtime.results.shaping import shape_of
from weft.runtime.spark.batch import collect_lanes, match_lanes
from weft.runtime.spark.columns import RUN_COLUMNS, arrow_schema, spark_columns
from weft.runtime.spark.compat import from_arrow, is_frame, to_arrow
from weft.runtime.spark.files.batches import Files, file_runs, suited_to, suited_to_files
from weft.runtime.spark.files.direct import DIRECT, frame_runs
from weft.runtime.spark.files.schema import schema_of_files
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.spark.lanes.collected import in_match_order
from weft.runtime.spark.lanes.ranges import ranged_by_files, ranged_by_frame
from weft.runtime.spark.lanes.sampling import is_quick, suited_to_frame
from weft.runtime.spark.noticing import doubts_of_frame
from weft.runtime.spark.packing.chunks import pack_chunk
from weft.runtime.spark.packing.filters import first_types, useful_rows
from weft.runtime.spark.packing.runs import Place
from weft.runtime.spark.runs.failures import JAVA_GONE, MORE_MEMORY, own_error
from weft.runtime.spark.schema import RUN_SCHEMA, output_schema
from weft.runtime.spark.session import cores, spark_session
from weft.runtime.watching.census import is_census, tied_doubt
from weft.runtime.writing.match_rows import ROWS

_PARTS = 4096  # events to a run, when they are sent from this process


class SparkRun:
    """One pass of a plan over events on Spark. Counters and rejected events are complete when it is.

    `events` are Files, a Spark DataFrame, or data in this process.
    """

    def __init__(
        self,
        events: Any,
        chosen: Plan,
        columns: EventColumns,
        lanes: int | None = None,
    ) -> None:
        self.counters: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.rejected: list[Rejected] = []
        self._tied = 0
        self._by_spark = self._filtered = False  # whether Spark reads a frame's files, and leaves rows out
        self._census: dict[str, int] = {}
        self._events = events
        self._reading = Reading(**columns.named, time_unit=chosen.program.time_unit)
        self._plan = chosen
        self._lanes = lanes

    def rows(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, as rows of MATCH_SCHEMA."""
        job, output = self._run(counting=False)
        matches = output.filter(pc.is_valid(output["query"])).select(MATCH_SCHEMA.names).cast(MATCH_SCHEMA)
        self.counters["matches"] = len(matches)
        yield from in_match_order(matches, job.query_names).to_batches(max_chunksize=ROWS)

    def results(self) -> Iterator[pa.RecordBatch]:
        """All matches, in match order, with the events that they show."""
        session = self._session()
        shape = shape_of(self._plan.program.queries, self._schema(session), self._reading)
        job, output = self._run(counting=False, shape=shape)
        matches = output.filter(pc.is_valid(output["query"])).select(shape.schema.names).cast(shape.schema)
        self.counters["matches"] = len(matches)
        ordered = in_match_order(matches, job.query_names, self._reading.time_unit)
        yield from ordered.combine_chunks().to_batches(max_chunksize=ROWS) or [
            pa.RecordBatch.from_pylist([], schema=shape.schema)
        ]

    def _schema(self, session: SparkSession) -> pa.Schema:
        """The columns of the input."""
        if isinstance(self._events, Files):
            return schema_of_files(session, self._events)
        if is_frame(self._events):
            return arrow_schema(self._events.schema)
        chunks = (chunk for _, chunk in self._chunks(self._reading.time_unit))
        return arrow_schema(spark_columns(joint_schema(chunk.rows(None).schema for chunk in chunks)))

    def counts(self) -> dict[str, int]:
        """The number of matches of each query."""
        job, output = self._run(counting=True)
        totals = Counter(dict.fromkeys(job.query_names, 0))
        counted = output.filter(pc.is_valid(output["query"]))
        for name, number in zip(counted["query"].to_pylist(), counted["id"].to_pylist(), strict=True):
            totals[name] += int(number, 16)
        self.counters["matches"] = totals.total()
        return dict(totals)

    def _session(self) -> SparkSession:
        return self._events.sparkSession if is_frame(self._events) else spark_session()

    def _run(self, *, counting: bool, shape: Shape | None = None) -> tuple[Job, pa.Table]:
        session = self._session()
        with failing_in_words():
            lanes = self._lanes or cores(session)
            job = job_of(self._plan, self._reading, lanes, shape=shape, positions=not counting)
            runs, job = self._runs(session, job)
            output = to_arrow(match_lanes(runs, job, counting=True)) if counting else collect_lanes(runs, job)
        output = output.cast(output_schema(shape))
        self._note(output, "event" if shape is None else "rejected")
        return job, output

    def _runs(self, session: SparkSession, job: Job) -> tuple[DataFrame, Job]:
        """The runs of the input; the job has lanes for heavy keys then, as the first events show them.

        A frame is looked at only if its first rows can be had without the others.
        """
        if isinstance(self._events, Files):
            job = ranged_by_files(suited_to_files(job, self._events), self._events, cores(session))
            return file_runs(session, self._events, job), job
        if is_frame(self._events):
            if self._events.isStreaming:
                raise UsageError("a stream has no end to wait for: use weft.match, which gives a streaming DataFrame")
            job = suited_to_frame(job, self._events) if is_quick(self._events) else job
            job = ranged_by_frame(job, self._events)
            runs, how = frame_runs(self._events, job, self._events.schema)
            self._by_spark = how != DIRECT
            self._filtered = self._by_spark and useful_rows(job, self._events.schema) is not None
            return runs, job
        chunks = list(self._chunks(job.reading.time_unit))
        job = suited_to(job, chunks[0][1]) if chunks else job
        places = [Place(source, part, 0) for part, (source, _) in enumerate(chunks)]
        runs = [pack_chunk(_source(chunk, job), at, job) for at, (_, chunk) in zip(places, chunks, strict=True)]
        return from_arrow(session, pa.Table.from_batches(runs, RUN_SCHEMA), RUN_COLUMNS), job

    def _chunks(self, time_unit: str) -> Iterator[tuple[int, Chunk]]:
        """The rows of data in this process, each piece with the number of its source."""
        events = self._events
        if isinstance(events, tuple) and events and all(isinstance(item, NamedSource) for item in events):
            return ((number, chunk) for number, source in enumerate(events) for chunk in source.whole())
        return ((0, chunk) for chunk in chunks_of(events, _PARTS, time_unit))

    def _note(self, output: pa.Table, told: str) -> None:
        """Take counters and rejects out of the output; what they say is in the column `told`."""
        totals: Counter[str] = Counter()
        rest = output.filter(pc.is_null(output["query"])).select(["id", told, "reason"]).to_pylist()
        self.rejected = []
        for row in rest:
            if row["reason"] is None:
                totals.update(json.loads(row[told]))
            else:
                self.rejected.append(_rejected(row["id"], row["reason"], row[told]))
        self.rejected.sort(key=lambda item: (item.file or "", item.line or 0, item.row))
        self._tied = totals.pop("tied", 0) if self._by_spark else 0
        self._census = {name: count for name, count in totals.items() if is_census(name)}
        counted = {name: count for name, count in totals.items() if not is_census(name)}
        self.counters = {**counted, "rejected": len(self.rejected)}

    @property
    def doubts(self) -> list[str]:
        """What the events show that is probably not meant; complete when the pass is."""
        types = partial(first_types, self._events, self._reading.type) if self._by_spark else None
        values = {**self.counters, **self._census}
        doubts = doubts_of_frame(self._plan.program, values, types, filtered=self._filtered)
        return [*doubts, *tied_doubt(self._tied)]


@contextmanager
def failing_in_words() -> Iterator[None]:
    """Say why Spark fails: Ctrl-C (it tells of a job that was cancelled), a user's mistake, or a Java that is gone."""
    try:
        yield
    except Exception as failure:
        cause: BaseException | None = failure
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        if cause is not None:
            raise KeyboardInterrupt from None
        if isinstance(failure, PythonException):
            raise own_error(failure) from None
        if isinstance(failure, Py4JError | ConnectionError) and not isinstance(failure, Py4JJavaError):
            raise UsageError(
                f"{JAVA_GONE}: {MORE_MEMORY}, or ask for less (LIMIT, a count); `weft run` writes matches while they "
                "are found, however many"
            ) from None
        raise


def _source(chunk: Chunk, job: Job) -> EventSource:
    return EventSource(lambda: [chunk], job.reading)


def _rejected(place: str, reason: str, event: str | None) -> Rejected:
    known = None if event is None else json.loads(event)
    file, colon, line = place.rpartition(":")
    return Rejected(int(line) - 1, reason, known, file, int(line)) if colon else Rejected(int(line), reason, known)
