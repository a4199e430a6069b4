"""Rows of topics and tables as runs for the lanes: each partition of a topic is a part of its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import and_
from typing import cast
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField, StructType, _parse_datatype_string

from weft.errors import UsageError
from weft.runtime.reading.chunks import Chunk, arrow_chunk
from weft.runtime.reading.kinds import NANOSECONDS
from weft.runtime.reading.order import EventSource
from weft.runtime.reading.payloads import NO_PAYLOAD, SHOWN, payload_chunk
from weft.runtime.reading.sources import with_defaults
from weft.runtime.spark.columns import RUN_COLUMNS, quoted
from weft.runtime.spark.connections.packages import needing
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import gather, pack_chunk
from weft.runtime.spark.packing.frames import check_columns, needed_columns
from weft.runtime.spark.packing.runs import Place
from weft.runtime.spark.shipping import mapped

RECORDS = 1 << 16  # that are read at once
CHUNKS = 1 << 14  # of a task, at most
# Columns beside those of events: where a record comes from, the trigger's clock, what is wrong with a payload, itself.
TOPIC, PARTITION, OFFSET, NOW, WRONG, PAYLOAD = _BESIDE = tuple(
    f"_weft_{name}" for name in ("topic", "partition", "offset", "now", "wrong", "payload")
)
FORMS = {"json": "JSON", "avro": "Avro"}  # as messages call them
KAFKA_COLUMNS = {"value", "topic", "partition", "offset", "timestamp"}


@dataclass(frozen=True)
class Records:
    """How rows become runs of one source; sent to tasks.

    `source` None: of a frame that may have several topics, each of which is a source. `topic`: the one there is.
    `ahead`: seconds by which events may be ahead of the clock.
    """

    source: int | None
    topic: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    ahead: float | None = None


def is_kafka(schema: StructType, type: str) -> bool:
    """Whether these are the columns of Spark's Kafka source, and not those of events."""
    kinds = {one.name: one.dataType for one in schema}
    return kinds.keys() >= KAFKA_COLUMNS and isinstance(kinds["value"], BinaryType) and type not in kinds


def has_records(frame: object, schema: StructType | None, type: str) -> bool:
    """Whether this is a frame of Kafka's records, unless its schema is said, since it must not be asked then."""
    return schema is None and hasattr(frame, "schema") and is_kafka(frame.schema, type)


def payload_runs(frame: DataFrame, job: Job, how: Records) -> DataFrame:
    """The runs of a topic whose payloads are JSON with the types of their values."""
    columns = {"value": F.col("value"), **_placing()}
    read = frame.select(*(column.alias(name) for name, column in columns.items()))
    return mapped(read, partial(pack_payloads, job=job, how=how), RUN_COLUMNS)


def column_runs(frame: DataFrame, schema: StructType, job: Job, how: Records) -> DataFrame:
    """The runs of rows whose columns are those of events; of a topic they have more (see `decoded`)."""
    if PARTITION not in frame.columns:
        frame = frame.withColumn(NOW, F.unix_micros(F.current_timestamp()))
    beside = tuple(name for name in _BESIDE if name in frame.columns)
    check_columns([*schema.names, *how.defaults], job.reading)
    known = StructType(
        [*schema, *(StructField(name, StringType()) for name in how.defaults if name not in schema.names)]
    )
    for name, text in how.defaults.items():  # before columns are emptied for events of other types
        if name not in schema.names:
            frame = frame.withColumn(name, F.lit(text))
        elif isinstance(schema[name].dataType, StringType):
            frame = frame.withColumn(name, F.coalesce(F.col(quoted(name)), F.lit(text)))
    read, names = needed_columns(frame, known, job, beside)
    return mapped(read, partial(pack_columns, job=job, how=how, names=(*names, *beside)), RUN_COLUMNS)


def decoded(frame: DataFrame, form: str, text: str | StructType) -> tuple[DataFrame, StructType]:
    """The records of a topic with the columns of their payloads, by a schema; and those columns.

    Beside them stand those of `_BESIDE`.
    """
    session = frame.sparkSession
    value = F.col("value")
    if form == "avro":
        with needing(session, "avro"):
            from pyspark.sql.avro.functions import from_avro

            rows = frame.select("*", from_avro(value, str(text), {"mode": "PERMISSIVE"}).alias("_weft_event"))
        columns = rows.schema["_weft_event"].dataType
    else:
        columns = text if isinstance(text, StructType) else schema_of(text)
        within = StructType([*columns, StructField(PAYLOAD, StringType())])
        read = F.from_json(value.cast("string"), within, {"columnNameOfCorruptRecord": PAYLOAD})
        rows = frame.select("*", read.alias("_weft_event"))
    events = [F.col(f"_weft_event.{quoted(name)}") for name in columns.names]
    bad = F.col(f"_weft_event.{PAYLOAD}").isNotNull() if form == "json" else reduce(and_, (e.isNull() for e in events))
    return rows.select(*(e.alias(n) for e, n in zip(events, columns.names, strict=True)), *_beside(form, bad)), columns


def _placing() -> dict[str, Column]:
    """Where a record comes from, and the clock of the trigger, which a trigger that is tried again keeps."""
    clock = F.unix_micros(F.current_timestamp())
    return {TOPIC: F.col("topic"), PARTITION: F.col("partition"), OFFSET: F.col("offset"), NOW: clock}


def _beside(form: str, bad: Column) -> list[Column]:
    why = F.when(F.col("value").isNull(), NO_PAYLOAD).when(
        bad, f"the payload is not {FORMS[form]} that fits the schema"
    )
    shown = F.when(bad, F.expr(f"substring(value, 1, {SHOWN})"))
    return [value.alias(name) for name, value in {**_placing(), WRONG: why, PAYLOAD: shown}.items()]


def schema_of(text: str) -> StructType:
    """The columns of payloads: `ts TIMESTAMP, type STRING, …`, or the JSON of a StructType."""
    try:
        if text.lstrip().startswith("{"):
            import json

            return StructType.fromJson(json.loads(text))
        return cast(StructType, _parse_datatype_string(text))
    except (PySparkException, ValueError, KeyError, TypeError) as problem:
        first = str(problem).strip().splitlines()[0]
        raise UsageError(f"the schema {text.strip()[:80]!r} cannot be read: {first}") from None


def pack_payloads(batches: Iterator[pa.RecordBatch], job: Job, how: Records) -> Iterator[pa.RecordBatch]:
    """In a task: records of a topic as runs."""
    texts: set[str] = set()
    for rows, place in _placed(batches, how):
        payloads = rows.column("value").to_pylist()
        chunk = payload_chunk(payloads, partial(_place, rows), job.reading.time_unit, texts)
        yield _packed(chunk, rows.column(NOW), place, job, how)


def pack_columns(
    batches: Iterator[pa.RecordBatch], job: Job, how: Records, names: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """In a task: rows with these columns as runs."""
    renamed = (batch.rename_columns(names) for batch in batches)
    for rows, place in _placed(renamed, how):
        own = [name for name in names if name not in _BESIDE]
        chunk = arrow_chunk(rows.select(own), job.reading.time_unit)
        if WRONG in names:
            chunk = _told_apart(chunk, rows)
        yield _packed(chunk, rows.column(NOW), place, job, how)


def _placed(batches: Iterator[pa.RecordBatch], how: Records) -> Iterator[tuple[pa.RecordBatch, Place]]:
    """Rows of one partition at a time, with their place; rows of a table are parts by their tasks.

    Several tasks may have a partition's records, in their order.
    """
    context = TaskContext.get()
    task = context.partitionId() if context is not None else 0
    for number, rows in enumerate(gather(batches, RECORDS)):
        chunk = task * CHUNKS + number
        if PARTITION not in rows.schema.names:
            yield rows, Place(how.source or 0, task, number)
            continue
        for own in _by_partition(rows):
            topic, part = own.column(TOPIC)[0].as_py(), own.column(PARTITION)[0].as_py()
            yield own, Place(crc32(topic.encode()) >> 1 if how.source is None else how.source, part, chunk)


def _by_partition(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    keys = pc.binary_join_element_wise(rows.column(TOPIC), rows.column(PARTITION).cast(pa.string()), "/")
    coded = keys.dictionary_encode()
    if len(coded.dictionary) <= 1:
        return [rows] if len(rows) else []
    codes = np.asarray(coded.indices)
    return [rows.take(pa.array(np.flatnonzero(codes == code))) for code in range(len(coded.dictionary))]


def _packed(chunk: Chunk, now: pa.Array, place: Place, job: Job, how: Records) -> pa.RecordBatch:
    reading = job.reading
    if how.ahead is not None and chunk.length:
        latest = (now[0].as_py() * 1000 + int(how.ahead * 1e9)) // NANOSECONDS[reading.time_unit]
        reading = replace(reading, until=latest)
    return pack_chunk(EventSource(partial(list, (with_defaults(chunk, how.defaults),)), reading), place, job)


def _told_apart(chunk: Chunk, rows: pa.RecordBatch) -> Chunk:
    """The same events, with what is wrong with their payloads, and where they come from."""
    reasons = rows.column(WRONG)
    problems = {int(row): reasons[row].as_py() for row in np.flatnonzero(np.asarray(reasons.is_valid()))}
    payloads = rows.column(PAYLOAD)

    def row(number: int) -> Mapping[str, object] | None:
        if number not in problems:
            return chunk.row(number)
        payload = payloads[number].as_py()
        return None if payload is None else {"payload": payload.decode(errors="replace")}

    return Chunk(
        chunk.length,
        chunk.names,
        chunk.column,
        row,
        problems=problems,
        place=partial(_place, rows),
        original=chunk.array,
    )


def _place(rows: pa.RecordBatch, row: int) -> tuple[str, int]:
    topic, partition, offset = (rows.column(name)[row].as_py() for name in (TOPIC, PARTITION, OFFSET))
    return place_of(topic, partition), int(offset)


def place_of(topic: str, partition: int | None) -> str:
    """A topic, or a partition of it, as rejects name them; an offset follows, after a colon."""
    return f"kafka:{topic}" if partition is None else f"kafka:{topic}/{partition}"
