"""`weft.match`: a Spark DataFrame of events (batch or streaming) or files in, a Spark DataFrame of matches out."""

from __future__ import annotations

from dataclasses import replace
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
from weft.runtime.options import USUAL, EventColumns, FrameOptions, Options
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import narrowed, shape_of
from weft.runtime.spark.batch import match_lanes
from weft.runtime.spark.columns import arrow_schema
from weft.runtime.spark.compat import require_stream_of
from weft.runtime.spark.connections.frames import KafkaFrame, kafka_frame
from weft.runtime.spark.counting import collect_quickly, count_quickly
from weft.runtime.spark.files.batches import Files, file_runs, suited_to_files
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
from weft.runtime.spark.runs.frame_programs import recorded, succeeding
from weft.runtime.spark.session import cores, spark_session
from weft.runtime.spark.streams.file_state import SPARK as SPARK_STATE
from weft.runtime.spark.streams.streaming import match_stream

PLAIN = FrameOptions()
TYPE = "type"  # the column of types unless another is named
KAFKA = "Spark's scan: of Kafka"
POSITIONS = ("positions", "bindings")  # columns that are given on request
MATCHED = frozenset(MATCH_SCHEMA.names).difference(POSITIONS)  # columns that matches always have
USUAL_LANES = 2  # where a session must not be asked how many tasks run at a time


def match_frame(
    frame: DataFrame,
    program: Program,
    options: Options = USUAL,
    own: FrameOptions = PLAIN,
    *,
    adapts: tuple[Program, Choices] | None = None,
    written: Program | None = None,
) -> DataFrame:
    """The matches of a program in a DataFrame, as rows of its shape.

    There are as many lanes as cores unless `options` say it. `adapts`: see `Job`; for streams only. `written`: the
    program before it was optimised, by which queries of a stream with a checkpoint are known.
    Rejects are counted in any case: in a stream's progress, and for a batch in the result's `counts.get` after its
    first action. `schema` is for a function of a declarative pipeline, which may ask no frame and no session; then
    `streaming` says whether it is a stream, and there are two lanes unless it is said.
    The result's `scan` says who reads the files of a batch, and why. State is in files by default on one machine,
    unless the frame has a watermark of Spark's: all tasks must see the folder of the checkpoint.
    """
    check_scan(own.scan)
    columns, schema, lanes = options.columns, own.schema, options.sharing.number
    about = _About.of(frame) if schema is None else _About(schema, own.streaming, lanes or USUAL_LANES)
    kafka = kafka_frame(frame, about.schema if schema is None else None, own.payload, columns.type)
    names = about.schema.names
    if columns.type == TYPE and TYPE not in names and set(names) >= MATCHED:
        columns = replace(columns, type="query")  # matches are events of the type that their query defines
    reading = Reading(**columns.named, time_unit=program.time_unit)
    if kafka is None:
        check_columns(names, reading)
    if own.heavy_keys and (about.streaming or schema is not None or kafka is not None):
        raise UsageError("`heavy_keys` is for a frame with an end that may be asked: a stream's keys keep their lanes")
    known = arrow_schema(about.schema) if kafka is None else kafka.columns(program, columns.type)
    shape = shape_of(program.queries, known, reading, whole=own.rows)
    asked = _Asked(frame, program, replace(options, columns=columns), own, about, kafka, reading, shape)
    if about.streaming:
        return _match_stream(asked, adapts, written or program)
    _refuse_for_streams(own.checkpoint, adapts, own.delay)
    return _match_batch(asked)


class _Asked(NamedTuple):
    """A frame with what is asked for in it."""

    frame: DataFrame
    program: Program
    options: Options
    own: FrameOptions
    about: _About
    kafka: KafkaFrame | None
    reading: Reading
    shape: Shape

    @property
    def plan(self) -> Plan:
        """The plan of the program."""
        return _planned(self.program, self.options)

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return self.options.sharing.number or self.about.cores

    def shown(self, output: DataFrame, shape: Shape) -> DataFrame:
        """The columns of a result that are asked for."""
        return _shown(output, shape, Origin(self.program, **self.options.columns.named), self.own)


def _planned(program: Program, options: Options, first: int = 0) -> Plan:
    sharing = options.sharing
    strategy, lanes = sharing.strategy or AUTO, sharing.number or MANY_LANES
    return plan(program, first=first, strategy=strategy, lanes=lanes, statistics=options.choices.statistics)


def _match_stream(asked: _Asked, adapts: tuple[Program, Choices] | None, written: Program) -> DataFrame:
    frame, own, about = asked.frame, asked.own, asked.about
    require_stream_of(frame)
    if own.columns is not None:
        raise UsageError("`columns` is for a whole input: select columns of a stream's matches")
    shape = _built(asked.shape, own)
    how: Any = {"shape": shape, "adapts": adapts, "positions": own.positions}
    job = job_of(asked.plan, asked.reading, asked.lanes, streaming=True, **how)
    if adapts is None:
        job = _lasting(job, written, asked)
    elif own.checkpoint is not None:
        raise UsageError("`adapt` does not go together with a program that changes: leave out `checkpoint`")
    job = limited(job, asked.options.limits)
    state = own.state if own.schema is None else SPARK_STATE  # a pipeline starts its queries itself
    warns = own.schema is None and not own.rejects
    output = match_stream(frame, job, about.schema, own.delay, warns=warns, kafka=asked.kafka, state=state)
    return asked.shown(output, shape)


def _match_batch(asked: _Asked) -> DataFrame:
    frame, own, about, kafka = asked.frame, asked.own, asked.about, asked.kafka
    shape = _built(asked.shape, own)
    limits = asked.options.limits
    job = limited(job_of(asked.plan, asked.reading, asked.lanes, shape=shape, positions=own.positions), limits)
    if own.columns is not None and "id" not in own.columns and not own.rejects and limits.is_none:
        job = replace(job, is_anonymous=True)
    if own.heavy_keys:
        job = suited_to_frame(job, frame)
    if own.schema is not None:  # nothing may be asked; who counts asks first whether it is a stream
        runs = run_frame(frame, job, about.schema) if kafka is None else kafka.runs(job)
        return asked.shown(match_lanes(runs, job, tasks=len(job.lanes)), shape)

    job = ranged_by_frame(job, frame) if kafka is None else job

    def scanned(used: Job) -> tuple[DataFrame, str]:
        return frame_runs(frame, used, about.schema, own.scan) if kafka is None else (kafka.runs(used), KAFKA)

    runs, how = scanned(job)
    by_spark = how != DIRECT and kafka is None
    counted, counts = noticed(
        match_lanes(runs, job),
        asked.program,
        rejects=own.rejects,
        of_frame=how != DIRECT,
        left_out=job.left_out,
        types=partial(first_types, frame, asked.options.columns.type) if by_spark else None,
        filtered=by_spark and useful_rows(job, about.schema) is not None,
    )
    shown = _with_counts(asked.shown(counted, shape), counts)
    shown.scan = how
    if own.rejects or own.rows or not limits.is_none:
        return shown
    collect_quickly(shown, job, lambda used: scanned(used)[0], counts)
    return count_quickly(shown, job, lambda used: scanned(used)[0], counts)


def _refuse_for_streams(checkpoint: object, adapts: object, delay: object) -> None:
    """Reject options that a finite input does not support."""
    if checkpoint is not None:
        raise UsageError("`checkpoint` is for streams: a whole input has none")
    if adapts is not None:
        raise UsageError("`adapt` is for streams: a whole input runs in one form")
    if delay is not None:
        raise UsageError("`delay` is for streams: a whole input is sorted, whatever its order")


def _lasting(job: Job, written: Program, asked: _Asked) -> Job:
    """The job of a stream whose program may be another one when it is started again."""
    sharing, checkpoint = asked.options.sharing, asked.own.checkpoint
    if checkpoint is not None:
        many = replace(asked.options, sharing=replace(sharing, lanes=None))

        def planned(part: Program, first: int) -> Plan:
            return _planned(part, many, first)

        make = planning_parts(written, job.plan.queries, planned)
        given = sharing.strategy, sharing.number
        after = succeeding(asked.frame.sparkSession, str(checkpoint), job, written, make, given)
        if after is not None:
            return after
    return recorded(job, written, sharing.strategy, asked.lanes)


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
    columns = EventColumns(origin.time, origin.type, origin.order, origin.key)
    everything = match_frame(frame, origin.program, Options(columns), FrameOptions(rows=True))
    beside = next(name for name in everything.columns if name.endswith("match_id"))
    ids = matches.select(F.col("id").alias("chosen_match_id")).distinct()
    return everything.join(ids, everything[beside] == ids["chosen_match_id"], "left_semi")


def match_files(files: Files, program: Program, options: Options = USUAL, own: FrameOptions = PLAIN) -> DataFrame:
    """The matches of a program in files, which the tasks read themselves; see `match_frame`."""
    session = spark_session()
    reading = Reading(**options.columns.named, time_unit=program.time_unit)
    shape = _built(shape_of(program.queries, schema_of_files(session, files), reading, whole=own.rows), own)
    lanes = options.sharing.number or cores(session)
    job = job_of(_planned(program, options), reading, lanes, shape=shape, positions=own.positions)
    job = limited(ranged_by_files(suited_to_files(job, files), files, cores(session)), options.limits)
    output = match_lanes(file_runs(session, files, job), job)
    counted, counts = noticed(output, program, rejects=own.rejects, of_frame=False, left_out=job.left_out)
    shown = _with_counts(_shown(counted, shape, None, own), counts)
    if own.rejects or own.rows or not options.limits.is_none:
        return shown
    collect_quickly(shown, job, partial(file_runs, session, files), counts)
    return count_quickly(shown, job, partial(file_runs, session, files), counts)


def check_scan(scan: str) -> None:
    """Refuse a way to scan that there is not."""
    if scan not in SCANS:
        raise UsageError(f"scan must be one of {', '.join(map(repr, SCANS))}, not {scan!r}")


def _built(shape: Shape, own: FrameOptions) -> Shape:
    """Return the shape with the requested columns; tasks do not build the others."""
    columns = own.columns
    if own.rows and columns is not None:
        raise UsageError("`rows` gives the events of matches: leave out `columns`, and select from the rows")
    if own.rows or (own.positions and columns is None):
        return shape
    if not own.positions and not set(POSITIONS).isdisjoint(columns or ()):
        raise UsageError("positions are counted on request only: add positions=True")
    usual = [name for name in shape.schema.names if name not in POSITIONS]
    return narrowed(shape, usual if columns is None else columns)


def _with_counts(shown: DataFrame, counts: Counts) -> DataFrame:
    """A batch carries the counts of matches and of events that could not be read."""
    shown.counts = counts
    return shown


def _shown(output: DataFrame, shape: Shape, origin: Origin | None, own: FrameOptions) -> DataFrame:
    """Matches, and rejects if they are asked for, without what lanes say of themselves."""
    if own.rows and own.rejects:
        raise UsageError("`rows` gives the events of matches: leave out `rejects`, or match once for each")
    usual = [name for name in shape.schema.names if own.positions or own.rows or name not in POSITIONS]
    wanted = usual if own.columns is None else own.columns
    names = [_marked(name, origin) for name in wanted]
    if own.rejects:
        return output.where(F.col("query").isNotNull() | F.col("reason").isNotNull()).select(
            *names, "reason", "rejected"
        )
    matches = output.where(F.col("query").isNotNull()).select(*names)
    return match_rows(matches) if own.rows else matches


def _marked(name: str, origin: Origin | None) -> Column | str:
    """A column of results; the id says how the matches were found, if that may be asked."""
    return name if name != "id" or origin is None else F.col(name).alias(name, metadata=origin.as_metadata())
