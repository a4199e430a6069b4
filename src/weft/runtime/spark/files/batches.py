"""Matching files on Spark: the tasks read them with Arrow, so that no event becomes a row of the JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from weft.errors import InputError
from weft.runtime.data import blocks
from weft.runtime.data.events import STREAM
from weft.runtime.lanes.heavy import suited
from weft.runtime.reading.chunks import Chunk, arrow_chunk
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.sources import with_defaults
from weft.runtime.spark.files.parts import WHOLE, FilePart
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import CHUNK_ROWS, pack_part
from weft.runtime.spark.packing.frames import check_columns
from weft.runtime.spark.schema import RUN_DDL
from weft.runtime.spark.session import cores
from weft.runtime.spark.shipping import mapped

TASK_ROWS = 4_000_000  # a task reads about this many rows, if that gives every core something to do
SMALL_DICTIONARY = 1 << 14  # bytes
LENGTH_BYTES = 4  # in front of each text that Parquet tells as it is
Reader = Callable[..., Iterator[Chunk]]  # of a path, a Reading, and (of lines) where some of them are


@dataclass(frozen=True)
class Files:
    """Files of events, in their order: path, format, and defaults of its events; and how each format is read."""

    paths: tuple[tuple[str, str, Mapping[str, str]], ...]
    readers: Mapping[str, Reader]


@dataclass(frozen=True)
class Piece:
    """A file, or some row groups of a Parquet file."""

    path: str
    format: str
    rows: int = 0  # as far as it is known
    groups: range = range(0)
    before: int = 0  # rows of the file in front of them
    columns: tuple[str, ...] = ()  # those that are needed
    defaults: Mapping[str, str] = field(default_factory=dict)  # what the events do not say themselves
    repeated: frozenset[str] = frozenset()  # columns of texts that occur often


def file_runs(session: SparkSession, files: Files, job: Job) -> DataFrame:
    """The runs of files, as rows of RUN_DDL; arrival order is that of the files, then of rows."""
    pieces = [piece for path, form, defaults in files.paths for piece in pieces_of(path, form, job.reading, defaults)]
    tasks = plan_tasks(pieces, cores(session))
    count = max(1, len(tasks))
    work = partial(pack_pieces, tasks=tasks, readers=files.readers, job=job)
    return mapped(session.range(0, count, 1, count), work, RUN_DDL, "weft_read_files")


def suited_to_files(job: Job, files: Files) -> Job:
    """The job with lanes for heavy keys, as the first events of the first file show them."""
    for path, form, defaults in files.paths if job.has_keys else ():
        for piece in pieces_of(path, form, job.reading, defaults):
            for chunk in read(piece, files.readers, job.reading):
                return suited_to(job, chunk)
    return job


def suited_to(job: Job, chunk: Chunk) -> Job:
    """The job with lanes for heavy keys, as a chunk of the input shows them."""
    if not job.has_keys:
        return job
    events = EventSource(partial(_only, chunk), job.reading)
    return replace(job, lanes=suited(job.lanes, blocks.concat(list(events))))


def pieces_of(path: str, form: str, reading: Reading, defaults: Mapping[str, str]) -> list[Piece]:
    """What can be read by itself of a file: row groups, or the whole."""
    if form != "parquet":
        return [Piece(path, form, defaults=defaults)]
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            sizes = [group.num_rows for group in groups]
            repeated = [repeated_texts(file.schema_arrow, group) for group in groups]
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"{path} is not a Parquet file: {error}") from None
    check_columns([*names, *defaults], reading, f"{path}: ")
    wanted = (
        None if reading.needed is None else {top for name in reading.needed for top in (name, name.partition(".")[0])}
    )
    columns = tuple(name for name in names if wanted is None or name in wanted)
    befores = accumulate(sizes, initial=0)
    return [
        Piece(path, form, rows, range(i, i + 1), before, columns, defaults, repeated[i])
        for i, (rows, before) in enumerate(zip(sizes, befores, strict=False))
    ]


def repeated_texts(schema: pa.Schema, group: pq.RowGroupMetaData) -> frozenset[str]:
    """The columns of a row group whose texts are few: Parquet tells them by numbers, and the texts once."""
    texts = {own.name for own in schema if pa.types.is_string(own.type) or pa.types.is_large_string(own.type)}
    columns = [group.column(number) for number in range(group.num_columns)]
    return frozenset(
        column.path_in_schema
        for column in columns
        if column.path_in_schema in texts
        and column.has_dictionary_page
        and column.data_page_offset - (column.dictionary_page_offset or 0) < SMALL_DICTIONARY
        and column.total_uncompressed_size < LENGTH_BYTES * column.num_values
    )


def plan_tasks(pieces: Sequence[Piece], cores: int) -> list[list[Piece]]:
    """Pieces shared out to tasks in their order, neighbours together: a few tasks per core, none tiny."""
    total = sum(piece.rows for piece in pieces)
    wanted = max(cores, min(4 * cores, total // TASK_ROWS))
    share = max(1, -(-total // wanted))
    tasks: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        size = piece.rows or share  # of a file whose size is not known, one to a task
        if not tasks or size > room:
            tasks.append([])
            room = max(share, size)
        tasks[-1].append(piece)
        room -= size
    return tasks


def pack_pieces(
    numbers: Iterator[pa.RecordBatch], tasks: Sequence[Sequence[Piece]], readers: Mapping[str, Reader], job: Job
) -> Iterator[pa.RecordBatch]:
    """In a task: read the pieces of the tasks with these numbers and pack their events."""
    for part in (number for batch in numbers for number in batch.column(0).to_pylist()):
        chunks = (
            chunk
            for pieces in tasks[part : part + 1]
            for piece in pieces
            for chunk in read(piece, readers, job.reading)
        )
        yield from pack_part((EventSource(partial(_only, chunk), job.reading) for chunk in chunks), job, part)


def _only(chunk: Chunk) -> list[Chunk]:
    return [chunk]


@dataclass(frozen=True)
class FilePlace:
    """All that it takes to read a file of a stream once more; `until` is that of `Reading`."""

    path: str
    form: str
    defaults: Mapping[str, str]
    until: int | None = None
    part: FilePart = WHOLE

    def packed(self) -> bytes:
        """As bytes."""
        return json.dumps([self.path, self.form, dict(self.defaults), self.until, self.part]).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> FilePlace:
        """The place that was made into these bytes."""
        path, form, defaults, until, *part = json.loads(data)
        return cls(path, form, defaults, until, *(FilePart(*own) for own in part))

    def chunks(self, reading: Reading, readers: Mapping[str, Reader]) -> Iterator[Chunk]:
        """The rows of the file or its part, always in the same chunks."""
        part = self.part
        if part.begin >= 0:
            chunks = readers[self.form](self.path, reading, (part.first + 1, part.begin, part.end))
            yield from (with_defaults(chunk, self.defaults) for chunk in chunks)
            return
        for piece in pieces_of(self.path, self.form, reading, self.defaults):
            if not piece.groups or part.overlaps(piece.before, piece.rows):
                yield from part.of(read(piece, readers, reading), piece.before)


def read(piece: Piece, readers: Mapping[str, Reader], reading: Reading) -> Iterator[Chunk]:
    """The rows of a piece in chunks."""
    form = readers[piece.format]
    chunks = parquet_chunks(piece, reading) if piece.groups else form(piece.path, reading)
    return (with_defaults(chunk, piece.defaults) for chunk in chunks)


def parquet_chunks(piece: Piece, reading: Reading) -> Iterator[Chunk]:
    """Row groups of a Parquet file, only the needed columns; an unreadable row is looked up again, with all of them."""
    repeated = [name for name in piece.columns if name in (reading.type, STREAM) or name in piece.repeated]
    first = piece.before
    with pq.ParquetFile(piece.path, memory_map=True, read_dictionary=repeated) as file:
        batches = file.iter_batches(CHUNK_ROWS, row_groups=piece.groups, columns=list(piece.columns), use_threads=False)
        for batch in batches:
            rows = arrow_chunk(batch, reading.time_unit)
            yield Chunk(
                rows.length,
                rows.names,
                rows.column,
                partial(_whole_row, piece.path, first),
                place=partial(_place, piece.path, first),
                original=rows.array,
            )
            first += batch.num_rows


def _place(path: str, first: int, row: int) -> tuple[str, int]:
    return path, first + row + 1


def _whole_row(path: str, first: int, row: int) -> dict[str, object]:
    with pq.ParquetFile(path) as file:
        wanted = first + row
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if wanted < rows:
                return dict(file.read_row_group(group).slice(wanted, 1).to_pylist()[0])
            wanted -= rows
    return {}
