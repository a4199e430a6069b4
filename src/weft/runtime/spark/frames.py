"""`weft.match`: a Spark DataFrame of events (batch or streaming) or files in, a Spark DataFrame of matches out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.optimizer.pipeline import Choices
from weft.plan.operators import Plan
from weft.plan.partitioning.choice import AUTO, MANY_LANES
from weft.plan.planner import plan
from weft.runtime.data.shape import MATCH_SCHEMA, Shape
from weft.runtime.limits.guarding import NO_LIMITS, Limits
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import narrowed, shape_of
from weft.runtime.spark.batch import match_lanes
from weft.runtime.spark.columns import arrow_schema
from weft.runtime.spark.compat import require_stream_of
from weft.runtime.spark.connections.frames import kafka_frame
from weft.runtime.spark.counting import count_quickly
from weft.runtime.spark.files.batches import Files, file_runs, suited_to_files
from weft.runtime.spark.files.direct import AUTO as AUTO_SCAN
from weft.runtime.spark.files.direct import DIRECT, SCANS, frame_runs
from weft.runtime.spark.files.schema import schema_of_files
from weft.runtime.spark.jobs.generations import planning_parts
from weft.runtime.spark.jobs.job import Job, job_of, limited
from weft.runtime.spark.lanes.ranges import ranged_by_files, ranged_by_frame
from weft.runtime.spark.lanes.sampling import suited_to_frame
from weft.runtime.spark.noticing import Counts, noticed
from weft.runtime.spark.packing.filters import first_types, useful_rows
from weft.runtime.spark.packing.frames import check_columns, run_frame
from weft.runtime.spark.rows import Origin, match_rows, origin_of, variables_in
from weft.runtime.spark.runs.frame_programs import Sharing, recorded, succeeding
from weft.runtime.spark.session import cores, spark_session
from weft.runtime.spark.streams.file_state import AUTO as AUTO_STATE
from weft.runtime.spark.streams.file_state import SPARK as SPARK_STATE
from weft.runtime.spark.streams.streaming import match_stream
from weft.statistics import Statistics

TYPE = "type"  # the column of types unless another is named
KAFKA = "Spark's scan: of Kafka"
POSITIONS = ("positions", "bindings")  # columns that are given on request
MATCHED = frozenset(MATCH_SCHEMA.names).difference(POSITIONS)  # columns that matches always have
USUAL_LANES = 2  # where a session must not be asked how many tasks run at a time


def match_frame(
    frame: DataFrame,
    program: Program,
    *,
    time: str = "ts",
    type: str = TYPE,
    order: tuple[str, ...] = (),
    key: tuple[str, ...] = (),
    strategy: str | None = None,
    lanes: int | None = None,
    adapts: tuple[Program, Choices] | None = None,
    delay: int | None = None,
    rejects: bool = False,
    rows: bool = False,
    schema: StructType | None = None,
    payload: StructType | str | None = None,
    streaming: bool = False,
    checkpoint: str | None = None,
    written: Program | None = None,
    limits: Limits = NO_LIMITS,
    statistics: Statistics | None = None,
    heavy_keys: bool = False,
    scan: str = AUTO_SCAN,
    state: str = AUTO_STATE,
    positions: bool = False,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The matches of a program in a DataFrame, as rows of its shape.

    `strategy`: how the work is shared out (see docs/distribution.md). `lanes`: to how many tasks; as many as cores
    unless it is said. `heavy_keys`: look at the first rows now, by a job, and give frequent keys lanes of their own.
    `adapts`: see `Job`; for streams only.
    `delay`: how many ticks an event of a stream may come after later ones, if the frame has no watermark.
    `rejects`: also give the events that took no part, as rows with the `reason` and the event in two more columns.
    They are counted in any case: in a stream's progress, and for a batch in the result's `counts.get` after its first
    action. `rows`: a row for each event of each match instead of one for each match.
    `schema`: the frame's columns, for a function of a declarative pipeline, which may ask no frame and no session; then
    `streaming` says whether it is a stream, and there are two lanes unless it is said.
    `payload`: the columns of the payloads of a frame of Kafka's records; without it their types are those of the JSON.
    `checkpoint`: that of the stream's query, so that queries which it has seen keep their state in another program;
    they are known as they were `written`, before they were optimised. `limits`: what each batch or trigger may take.
    `statistics`: what it is planned by. `scan`: "auto" lets tasks read the files of a plain scan of Parquet
    themselves; "spark" leaves that to Spark. The result's `scan` says what is done, and why.
    `state`: where lanes of a stream keep theirs: "files" beside the checkpoint, whose folder all tasks must see, or
    "spark", Spark's state store; "auto" takes files on one machine, unless the frame has a watermark of Spark's.
    `positions`: also give the columns `positions` and `bindings`. `columns`: build only these columns of matches.
    """
    check_scan(scan)
    about = _About.of(frame) if schema is None else _About(schema, streaming, lanes or USUAL_LANES)
    kafka = kafka_frame(frame, about.schema if schema is None else None, payload, type)
    names = about.schema.names
    chosen = plan(program, strategy=strategy or AUTO, lanes=lanes or MANY_LANES, statistics=statistics)
    if type == TYPE and type not in names and set(names) >= MATCHED:
        type = "query"  # matches are events of the type that their query defines
    reading = Reading(time, type, time_unit=program.time_unit, order=order, key=key)
    check_lanes(lanes)
    if kafka is None:
        check_columns(names, reading)
    known = arrow_schema(about.schema) if kafka is None else kafka.columns(program, type)
    shape = shape_of(program.queries, known, reading, whole=rows)
    origin = Origin(program, time, type, order, key)
    if heavy_keys and (about.streaming or schema is not None or kafka is not None):
        raise UsageError("`heavy_keys` is for a frame with an end that may be asked: a stream's keys keep their lanes")
    if about.streaming:
        require_stream_of(frame)
        if columns is not None:
            raise UsageError("`columns` is for a whole input: select columns of a stream's matches")
        job = job_of(chosen, reading, lanes or about.cores, streaming=True, shape=shape, adapts=adapts)
        if adapts is None:
            job = _lasting(job, written or program, frame, checkpoint, (strategy, lanes), about.cores, statistics)
        elif checkpoint is not None:
            raise UsageError("`adapt` does not go together with a program that changes: leave out `checkpoint`")
        job = limited(job, limits)
        state = state if schema is None else SPARK_STATE  # a pipeline starts its queries itself
        warns = schema is None and not rejects
        output = match_stream(frame, job, about.schema, delay, warns=warns, kafka=kafka, state=state)
        return _shown(output, shape, origin, rejects=rejects, rows=rows, positions=positions)
    _refuse_for_streams(checkpoint, adapts, delay)
    shape = _built(shape, columns, rows=rows, positions=positions)
    given: Any = {"rejects": rejects, "rows": rows, "positions": positions, "columns": columns}
    job = limited(job_of(chosen, reading, lanes or about.cores, shape=shape, positions=positions), limits)
    if heavy_keys:
        job = suited_to_frame(job, frame)
    if schema is not None:  # nothing may be asked; who counts asks first whether it is a stream
        runs = run_frame(frame, job, about.schema) if kafka is None else kafka.runs(job)
        return _shown(match_lanes(runs, job, tasks=len(job.lanes)), shape, origin, **given)

    job = ranged_by_frame(job, frame) if kafka is None else job

    def scanned(own: Job) -> tuple[DataFrame, str]:
        return frame_runs(frame, own, about.schema, scan) if kafka is None else (kafka.runs(own), KAFKA)

    runs, how = scanned(job)
    filtered = how != DIRECT and kafka is None and useful_rows(job, about.schema) is not None
    counted, counts = noticed(
        match_lanes(runs, job),
        program,
        rejects=rejects,
        of_frame=how != DIRECT,
        left_out=job.left_out,
        types=partial(first_types, frame, type) if filtered else None,
    )
    shown = _with_counts(_shown(counted, shape, origin, **given), counts)
    shown.scan = how
    if rejects or rows or not limits.is_none:
        return shown
    return count_quickly(shown, job, lambda own: scanned(own)[0], counts)


def _refuse_for_streams(checkpoint: object, adapts: object, delay: object) -> None:
    """Refuse what a whole input has no use for."""
    if checkpoint is not None:
        raise UsageError("`checkpoint` is for streams: a whole input has none")
    if adapts is not None:
        raise UsageError("`adapt` is for streams: a whole input runs in one form")
    if delay is not None:
        raise UsageError("`delay` is for streams: a whole input is sorted, whatever its order")


def _lasting(
    job: Job,
    written: Program,
    frame: DataFrame,
    checkpoint: str | None,
    sharing: Sharing,
    cores: int,
    statistics: Statistics | None,
) -> Job:
    """The job of a stream whose program may be another one when it is started again."""
    strategy, lanes = sharing
    if checkpoint is not None:

        def planned(part: Program, first: int) -> Plan:
            return plan(part, first=first, strategy=strategy or AUTO, lanes=MANY_LANES, statistics=statistics)

        make = planning_parts(written, job.plan.queries, planned)
        after = succeeding(frame.sparkSession, checkpoint, job, written, make, sharing)
        if after is not None:
            return after
    return recorded(job, written, strategy, lanes or cores)


class _About(NamedTuple):
    """What must be known of a frame."""

    schema: StructType
    streaming: bool
    cores: int

    @classmethod
    def of(cls, frame: DataFrame) -> _About:
        """What the frame and its session say."""
        return cls(frame.schema, frame.isStreaming, cores(frame.sparkSession))


def rows_of(matches: DataFrame, frame: DataFrame) -> DataFrame:
    """A row for each event of each of these matches, which were found in the frame, with all its columns."""
    shown = variables_in(matches)
    wanted = set(arrow_schema(frame.schema).names)
    has_all = all(wanted <= set(names) for names in shown.values())
    if has_all and set(POSITIONS) <= set(matches.columns):
        return match_rows(matches)
    lack = "have no positions" if has_all else "show selected attributes only"
    if matches.isStreaming:
        raise UsageError(f"these matches {lack}: for a stream use weft.match(…, rows=True)")
    origin = origin_of(matches)
    if origin is None:
        raise UsageError(f"these matches {lack}: use weft.match(frame, program, rows=True)")
    everything = match_frame(
        frame, origin.program, time=origin.time, type=origin.type, order=origin.order, key=origin.key, rows=True
    )
    beside = next(name for name in everything.columns if name.endswith("match_id"))
    ids = matches.select(F.col("id").alias("chosen_match_id")).distinct()
    return everything.join(ids, everything[beside] == ids["chosen_match_id"], "left_semi")


def match_files(
    files: Files,
    program: Program,
    *,
    time: str = "ts",
    type: str = TYPE,
    order: tuple[str, ...] = (),
    key: tuple[str, ...] = (),
    strategy: str | None = None,
    lanes: int | None = None,
    rejects: bool = False,
    rows: bool = False,
    limits: Limits = NO_LIMITS,
    statistics: Statistics | None = None,
    positions: bool = False,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The matches of a program in files, which the tasks read themselves; see `match_frame`."""
    check_lanes(lanes)
    session = spark_session()
    reading = Reading(time, type, time_unit=program.time_unit, order=order, key=key)
    shape = shape_of(program.queries, schema_of_files(session, files), reading, whole=rows)
    shape = _built(shape, columns, rows=rows, positions=positions)
    job = job_of(
        plan(program, strategy=strategy or AUTO, lanes=lanes or MANY_LANES, statistics=statistics),
        reading,
        lanes or cores(session),
        shape=shape,
        positions=positions,
    )
    job = limited(ranged_by_files(suited_to_files(job, files), files, cores(session)), limits)
    output = match_lanes(file_runs(session, files, job), job)
    counted, counts = noticed(output, program, rejects=rejects, of_frame=False, left_out=job.left_out)
    shown = _with_counts(
        _shown(counted, shape, None, rejects=rejects, rows=rows, positions=positions, columns=columns), counts
    )
    if rejects or rows or not limits.is_none:
        return shown
    return count_quickly(shown, job, partial(file_runs, session, files), counts)


def check_scan(scan: str) -> None:
    """Refuse a way to scan that there is not."""
    if scan not in SCANS:
        raise UsageError(f"scan must be one of {', '.join(map(repr, SCANS))}, not {scan!r}")


def check_lanes(lanes: int | None) -> None:
    """Refuse a number of lanes that cannot be."""
    if lanes is not None and lanes < 1:
        raise UsageError(f"there must be at least one lane, not {lanes}")


def _built(shape: Shape, columns: Sequence[str] | None, *, rows: bool, positions: bool) -> Shape:
    """The shape with the columns that are asked for: what nobody asks for is not built in tasks."""
    if rows and columns is not None:
        raise UsageError("`rows` gives the events of matches: leave out `columns`, and select from the rows")
    if rows or (positions and columns is None):
        return shape
    if not positions and not set(POSITIONS).isdisjoint(columns or ()):
        raise UsageError("positions are counted on request only: add positions=True")
    usual = [name for name in shape.schema.names if name not in POSITIONS]
    return narrowed(shape, usual if columns is None else columns)


def _with_counts(shown: DataFrame, counts: Counts) -> DataFrame:
    """A batch carries the counts of matches and of events that could not be read."""
    shown.counts = counts
    return shown


def _shown(
    output: DataFrame,
    shape: Shape,
    origin: Origin | None,
    *,
    rejects: bool,
    rows: bool,
    positions: bool,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Matches, and rejects if they are asked for, without what lanes say of themselves."""
    if rows and rejects:
        raise UsageError("`rows` gives the events of matches: leave out `rejects`, or match once for each")
    usual = [name for name in shape.schema.names if positions or rows or name not in POSITIONS]
    wanted = usual if columns is None else columns
    names = [_marked(name, origin) for name in wanted]
    if rejects:
        return output.where(F.col("query").isNotNull() | F.col("reason").isNotNull()).select(
            *names, "reason", "rejected"
        )
    matches = output.where(F.col("query").isNotNull()).select(*names)
    return match_rows(matches) if rows else matches


def _marked(name: str, origin: Origin | None) -> Column | str:
    """A column of results; the id says how the matches were found, if that may be asked."""
    return name if name != "id" or origin is None else F.col(name).alias(name, metadata=origin.as_metadata())
