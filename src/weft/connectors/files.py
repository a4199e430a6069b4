"""Events from files: JSON lines, CSV and Parquet, by path, pattern or folder, as one stream."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from weft.connectors.csv_rows import csv_chunks
from weft.connectors.json_lines import json_chunks
from weft.connectors.sinks import write_matches, write_to_sinks
from weft.connectors.writers import write_rejected
from weft.errors import InputError
from weft.runtime.data.events import STREAM, Column
from weft.runtime.reading.chunks import Chunk, column_at
from weft.runtime.reading.kinds import column_of
from weft.runtime.reading.order import EventSource, Given, Reading, reading_of

__all__ = ["open_events", "write_matches", "write_rejected", "write_to_sinks"]

Paths = str | Path | Sequence[str | Path]
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STANDARD_INPUT = "-"


def open_events(paths: Paths, *, format: str | None = None, **given: Unpack[Given]) -> EventSource:
    """Events in stream order from files: paths, patterns (`day-*.csv`) and folders; `-` is standard input.

    Several files are one stream; among events with equal times those of the earlier file come first. The format
    is determined by the ending (`.jsonl`, `.csv`, `.parquet`; `.gz` may follow the first two) unless it is given.
    For the rest see `read_events`.
    """
    return open_files(paths, reading_of(**given), format)


def open_files(paths: Paths, reading: Reading, format: str | None = None) -> EventSource:
    """The same, as a value says that they are read."""
    if format is not None and format not in READERS:
        raise InputError(f"unknown format {format!r}; known are {', '.join(READERS)}")
    files = [(path, format or format_of(path)) for path in find_files(paths)]
    return EventSource(partial(file_chunks, files, reading), reading)


def file_chunks(files: Sequence[tuple[str, str]], reading: Reading) -> Iterator[Chunk]:
    """The rows of files, each a path and a format, one file after the other."""
    for path, kind in files:
        try:
            yield from READERS[kind](path, reading)
        except OSError as problem:
            raise InputError(f"cannot read {path}: {problem.strerror or problem}") from None
        except (pa.ArrowException, UnicodeError, EOFError) as problem:
            raise InputError(f"cannot read {path}: {problem}") from None


def find_files(paths: Paths) -> list[str]:
    """The files that paths, patterns and folders name; each pattern's and folder's in order of name."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    found: list[str] = []
    for path in map(str, listed):
        if path == STANDARD_INPUT or Path(path).is_file():
            found.append(path)
        elif Path(path).is_dir():
            found.extend(_files_in(Path(path)))
        elif glob.has_magic(path):
            matching = sorted(name for name in glob.glob(path, recursive=True) if Path(name).is_file())
            if not matching:
                raise InputError(f"no file matches {path!r}")
            found.extend(matching)
        elif Path(path).exists():
            found.append(path)  # a pipe or a device
        else:
            raise InputError(f"no such file: {path}{_nearest(Path(path))}")
    if not found:
        raise InputError("no files of events were given")
    return found


def _files_in(folder: Path) -> list[str]:
    shown = (path for path in folder.rglob("*") if not any(p[0] in "._" for p in path.relative_to(folder).parts))
    files = sorted(str(path) for path in shown if path.is_file() and _ending(path.name) in ENDINGS)
    if not files:
        raise InputError(f"no events in the folder {folder}: it has no file that ends in {_known_endings()}")
    return files


def _nearest(path: Path) -> str:
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, beside, n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


def format_of(path: str) -> str:
    """The format of a file by its ending."""
    if path == STANDARD_INPUT:
        return "jsonl"
    ending = _ending(Path(path).name)
    if ending not in ENDINGS:
        raise InputError(f"cannot tell the format of {path}: its name does not end in {_known_endings()}")
    return ENDINGS[ending]


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def _known_endings() -> str:
    return ", ".join(sorted(ENDINGS))


def parquet_chunks(path: str, reading: Reading) -> Iterator[Chunk]:
    """A Parquet file's row groups. A column is read when it is asked for: the rest is never loaded."""
    try:
        fields = pq.read_schema(path)
        coded = [f.name for f in fields if f.name in (reading.type, STREAM) and pa.types.is_string(f.type)]
        file = pq.ParquetFile(path, read_dictionary=coded)
    except (pa.ArrowException, UnicodeError, OSError) as problem:
        raise InputError(f"{path} is not a Parquet file: {problem}") from None
    names = file.schema_arrow.names
    row = 0
    for group in range(file.num_row_groups):
        length = file.metadata.row_group(group).num_rows
        yield _row_group(file, path, group, length, names, row, reading.time_unit)
        row += length
    if file.num_row_groups == 0:
        yield Chunk(0, names, lambda name: column_of(pa.nulls(0)), lambda row: None)


def _row_group(
    file: pq.ParquetFile, path: str, group: int, length: int, names: list[str], first: int, time_unit: str
) -> Chunk:
    def original(name: str) -> pa.Array:
        try:
            array = file.read_row_group(group, columns=[name]).column(name).combine_chunks()
            array.validate(full=True)  # nobody has looked whether texts are Unicode
        except (pa.ArrowException, OSError) as problem:
            raise InputError(f"cannot read column {name!r} of {path}: {problem}") from None
        if len(array) != length:
            raise InputError(f"cannot read column {name!r} of {path}: it has {len(array)} of {length} rows")
        return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array

    def load(name: str) -> Column:
        return column_at(name, names, original, time_unit)

    @cache
    def readable() -> dict[str, pa.Array]:
        columns = {}
        for name in names:
            with suppress(InputError):  # what else is wrong with the file is told when that column is needed
                columns[name] = original(name)
        return columns

    def row(place: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, column in readable().items():
            with suppress(pa.ArrowException, ValueError, OverflowError):
                found[name] = column[place].as_py()
        return found

    return Chunk(length, names, load, row, place=lambda place: (path, first + place + 1), original=original)


READERS: dict[str, Callable[[str, Reading], Iterator[Chunk]]] = {
    "jsonl": json_chunks,
    "csv": csv_chunks,
    "parquet": parquet_chunks,
}
