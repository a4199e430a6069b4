"""Matches and rejected events to files: JSON lines, CSV, Parquet, or standard output."""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast
from weakref import finalize

import pyarrow as pa
import pyarrow.parquet as pq

from weft.connectors.places import opened
from weft.errors import InputError, UsageError
from weft.runtime.data.blocks import packed_rows, unpacked_rows
from weft.runtime.data.events import Rejected
from weft.runtime.data.joint_types import fitted, joint_schema
from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.writing.match_lines import json_lines

Rows = Iterable[Any]  # a table, a record batch, or an iterable of these or of dicts
ROWS = 4096  # dicts taken together


def _emptied(path: str | Path) -> BinaryIO:
    """Open an empty file that can be read while it grows."""
    try:
        return Path(path).open("wb")
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}") from None


class MatchFile:
    """A file to which matches are appended as they are found; the path's ending determines the format."""

    def __init__(self, path: str | Path) -> None:
        make = writer_of_ending(path)
        self._open = ExitStack()
        self._sink = self._open.enter_context(_emptied(path))
        self._writer = self._open.enter_context(closing(make(self._sink)))
        self._complete = finalize(self, self._open.close)  # also when it is forgotten

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows of MATCH_SCHEMA. Lines are in the file at once, Parquet is readable when it is closed."""
        self._writer.write(rows)
        self._sink.flush()

    def close(self) -> None:
        """Complete the file; nothing can be added any more."""
        self._complete()


def write_rejected(rejected: Iterable[Rejected], path: str | Path) -> int:
    """Write events that could not be read as JSON lines, each with its place and the reason; returns how many."""
    count = 0
    with opened(path) as sink:
        for one in rejected:
            fields = {"file": one.file, "line": one.line, "row": one.row, "reason": one.reason, "event": one.event}
            shown = {name: value for name, value in fields.items() if value is not None}
            sink.write((json.dumps(shown, ensure_ascii=False, default=str) + "\n").encode())
            count += 1
    return count


def batches_of(matches: Rows) -> Iterator[pa.RecordBatch]:
    """Matches as record batches of MATCH_SCHEMA."""
    items: Iterable[Any] = [matches] if isinstance(matches, pa.Table | pa.RecordBatch) else matches
    dicts: list[Mapping[str, Any]] = []
    for item in chain(items, [None]):
        if dicts and (not isinstance(item, Mapping) or len(dicts) == ROWS):
            yield _from_dicts(dicts)
            dicts = []
        if isinstance(item, pa.Table):
            yield from item.to_batches()
        elif isinstance(item, pa.RecordBatch):
            yield item
        elif item is not None:
            dicts.append(item)


def _from_dicts(matches: list[Mapping[str, Any]]) -> pa.RecordBatch:
    rows = [
        {
            **match,
            "bindings": list(match["bindings"].items()),
            "event": json.dumps(match["event"], ensure_ascii=False),
        }
        for match in matches
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MATCH_SCHEMA)


def writer_of(format: str) -> Callable[[BinaryIO], Writer]:
    """What makes the writer of a format."""
    writers: dict[str, Callable[[BinaryIO], Writer]] = {"jsonl": JsonLines, "csv": Csv, "parquet": Parquet}
    if format not in writers:
        raise UsageError(f"unknown format {format!r}; known are {', '.join(writers)}")
    return writers[format]


def writer_of_ending(path: str | Path) -> Callable[[BinaryIO], Writer]:
    """The same by the ending of a path."""
    return writer_of(Path(path).suffix.removeprefix(".").lower())


class Writer(Protocol):
    """Matches in one format, to an open file."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows of MATCH_SCHEMA."""

    def close(self) -> None:
        """Write what completes the file, which stays open."""


class JsonLines:
    """One JSON object a line."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows of MATCH_SCHEMA."""
        self._sink.write(json_lines(rows))
        if self._sink is sys.stdout.buffer:
            self._sink.flush()  # whoever reads the pipe sees matches as they are found

    def close(self) -> None:
        """Nothing is missing."""


class Csv:
    """One line per match; positions are separated by spaces, bindings and event are JSON."""

    def __init__(self, sink: BinaryIO) -> None:
        self._text = io.TextIOWrapper(sink, encoding="utf-8", newline="", write_through=True)
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(MATCH_SCHEMA.names)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows of MATCH_SCHEMA."""
        for match in rows.to_pylist():
            if "positions" in match:
                match["positions"] = " ".join(map(str, match["positions"]))
                match["bindings"] = json.dumps(dict(match["bindings"]), ensure_ascii=False)
            self._rows.writerow([match.get(name) for name in MATCH_SCHEMA.names])

    def close(self) -> None:
        """Leave the file to its owner."""
        self._text.flush()
        self._text.detach()


class Parquet:
    """A row group for each batch of rows: of MATCH_SCHEMA, or of results, whose types may differ."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink: Any = sink
        self._writer: pq.ParquetWriter | None = None
        self._schemas: dict[pa.Schema, None] = {}
        self._waiting = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 # results, until the types of all are known

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows."""
        if rows.schema.names == MATCH_SCHEMA.names:
            self._opened(MATCH_SCHEMA).write_batch(rows)
            return
        self._schemas[rows.schema] = None
        page = packed_rows(rows)
        self._waiting.write(len(page).to_bytes(8, "little") + page)

    def _opened(self, schema: pa.Schema) -> pq.ParquetWriter:
        self._writer = self._writer or pq.ParquetWriter(self._sink, schema)
        return self._writer

    def close(self) -> None:
        """Write the pending rows and the footer."""
        schema = joint_schema(self._schemas) if self._schemas else MATCH_SCHEMA
        writer = self._opened(schema)
        self._waiting.seek(0)
        while size := int.from_bytes(self._waiting.read(8), "little"):
            writer.write_batch(fitted(unpacked_rows(self._waiting.read(size)), schema))
        self._waiting.close()
        writer.close()
