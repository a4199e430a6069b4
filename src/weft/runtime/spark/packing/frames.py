"""Rows of a DataFrame as runs: the columns that are read, and tasks that pack them where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from weft.errors import InputError, did_you_mean
from weft.runtime.data.events import STREAM
from weft.runtime.reading.chunks import arrow_chunk
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.times import END, START
from weft.runtime.spark.columns import RUN_COLUMNS, quoted, told
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import gather, pack_part
from weft.runtime.spark.packing.filters import shown_rows, useful_rows
from weft.runtime.spark.packing.letters import LETTERS, Letters, letters_of
from weft.runtime.spark.shipping import mapped


def run_frame(frame: DataFrame, job: Job, schema: StructType | None = None) -> DataFrame:
    """The runs of a DataFrame, batch or streaming, as rows of RUN_DDL.

    Arrival order, which decides between equal times, is the order of partitions, then of rows. `schema`: the frame's,
    where it must not be asked.
    """
    schema = frame.schema if schema is None else schema
    found = letters_of(job, schema)
    if found is None:
        read, names = needed_columns(frame, schema, job)
        return mapped(read, partial(pack_batches, job=job, names=names), RUN_COLUMNS, "weft_pack")
    letter, letters = found
    read, names = needed_columns(frame, schema, job, [letter], {coding.name for coding in letters.codings})
    work = partial(pack_batches, job=job, names=(*names, LETTERS), letters=letters)
    return mapped(read, work, RUN_COLUMNS, "weft_pack")


def pack_batches(
    batches: Iterator[pa.RecordBatch], job: Job, names: tuple[str, ...], letters: Letters | None = None
) -> Iterator[pa.RecordBatch]:
    """In a task: the rows of one input partition, whose columns have these names, as runs."""
    context = TaskContext.get()
    part = context.partitionId() if context is not None else 0
    gathered = gather(batch.rename_columns(names) for batch in batches)
    if letters is not None:
        gathered = map(letters.decode, gathered)
    chunks = (events_of(rows, job.reading) for rows in gathered)
    return pack_part(chunks, job, part)


def events_of(rows: pa.RecordBatch, reading: Reading) -> EventSource:
    """The events of one chunk of rows."""
    chunk = arrow_chunk(rows, reading.time_unit)
    return EventSource(lambda: [chunk], reading)


def needed_names(names: Sequence[str], job: Job) -> list[str]:
    """Those of a frame's columns that are read, as a whole or a field of theirs."""
    reading = job.reading
    check_columns(names, reading)
    if reading.needed is None:
        return list(names)
    tops = {name.partition(".")[0] for name in reading.needed}
    return [name for name in names if name in reading.needed or name in tops or name in _always(job)]


def _always(job: Job) -> set[str]:
    """The columns that are read of all events."""
    reading = job.reading
    declared = {name for kind in job.plan.program.catalog.all_types() for name, _ in kind.attributes}
    return {reading.time, reading.type, START, END, STREAM, *reading.order, *reading.key} | declared


def needed_columns(
    frame: DataFrame,
    schema: StructType,
    job: Job,
    beside: Sequence[Column | str] = (),
    without: Collection[str] = (),
) -> tuple[DataFrame, tuple[str, ...]]:
    """Only the columns that are read, and their names; in the frame itself they are numbered.

    `beside` follow them as they are. `without`: columns, or fields of theirs, that are left out.

    Spark looks columns up by name on the way to Python, where a dot or a back-quote in one is read as something else.
    Attributes of events that cannot matter are emptied before they leave the JVM, and those that results only show
    where no match can show the event. Those events themselves must come along: they count for the positions of the
    others, or for the time of a stream, or stand between others.
    """
    reading, names = job.reading, schema.names
    check_columns(names, reading)
    needed = frozenset(names) | (reading.columns or frozenset()) if reading.needed is None else reading.needed
    always = _always(job)
    types = job.plan.relevant_types
    matters = F.lit(True) if types is None else F.col(quoted(reading.type)).isin(sorted(types))
    if job.streaming and not job.tallies and not beside:
        found = useful_rows(job, schema)
        matters = matters if found is None else found
    shown = shown_rows(job, schema)
    only_shown = set() if shown is None else set(reading.shown or ()).difference(reading.columns or ())
    read: dict[str, tuple[Column, DataType]] = {}
    for name in names:
        if name in without:
            continue
        if name in always:
            read[name] = F.col(quoted(name)), schema[name].dataType
        elif name in needed:
            mattering = shown if shown is not None and name in only_shown and not _has_fields(name, needed) else matters
            read[name] = F.when(mattering, F.col(quoted(name))), schema[name].dataType
    for name in sorted(needed.difference(names, without)):
        if name.partition(".")[0] in names:  # a field of a struct; its type is told by Arrow
            field = F.col(".".join(map(quoted, name.split("."))))
            read[name] = F.when(matters, field), StringType()
    columns = [column.alias(f"c{number}") for number, (column, _) in enumerate(read.values())]
    kinds = StructType([StructField(f"c{number}", kind) for number, (_, kind) in enumerate(read.values())])
    if beside:
        return frame.select(*columns, *beside), tuple(read)
    return told(frame.select(*columns), kinds), tuple(read)


def _has_fields(name: str, needed: Collection[str]) -> bool:
    """Whether conditions read fields of a struct."""
    return any(other.startswith(f"{name}.") for other in needed)


def check_columns(names: Sequence[str], reading: Reading, where: str = "") -> None:
    """Refuse a table without the columns for time and type before a job is started."""
    lacks_time = reading.time not in names and not (START in names and END in names)
    if reading.type not in names and lacks_time:
        why = f"{where}no column {reading.type!r} for the type of events, and none {reading.time!r} for their time"
        raise InputError(f"{_missing(reading.type, why, names)}; say which they are: time=NAME, type=NAME")
    if reading.type not in names:
        why = f"{where}no column {reading.type!r} for the type of events"
        cure = f"say which it is: type=NAME; or give all one type: frame.withColumn({reading.type!r}, F.lit(NAME))"
        raise InputError(f"{_missing(reading.type, why, names)}; {cure}")
    if lacks_time:
        why = f"{where}no column {reading.time!r} for the time of events, nor {START!r} and {END!r}"
        raise InputError(f"{_missing(reading.time, why, names)}; say which it is: time=NAME")
    for name in reading.order:
        if name not in names:
            raise InputError(_missing(name, f"{where}no column {name!r} to order by", names))
    for name in reading.key:
        if name not in names:
            raise InputError(_missing(name, f"{where}no column {name!r} to make ids of", names))


def _missing(name: str, why: str, names: Sequence[str]) -> str:
    hint = did_you_mean(name, names) or ""
    return f"{why}; the columns are {', '.join(names)}" + (f"; {hint}" if hint.startswith("did") else "")
