"""Events of any kind → bodies that a server takes: JSON lines, or an Arrow stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from weft.connectors.adapters.registry import open_source
from weft.connectors.files import find_files, format_of
from weft.connectors.json_lines import JsonText, open_lines
from weft.connectors.uris import as_uri
from weft.errors import InputError, UsageError

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
LINES = 1 << 20  # bytes of a file of lines that are sent at once
ROWS = 1 << 16  # rows of a table in one piece, at most
TABLE_BYTES = 8 << 20  # bytes of tables that are sent at once


class Body(NamedTuple):
    """Events as bytes, their content type, and their number; tables are encoded when they are sent."""

    content: bytes
    kind: str
    rows: int
    table: pa.Table | None = None

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return len(self.content) if self.table is None else int(self.table.nbytes)


def as_stream(tables: Sequence[pa.Table]) -> Body:
    """Encode tables with one schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return Body(sink.getvalue().to_pybytes(), ARROW, sum(map(len, tables)))


def encoded(events: Any) -> Iterator[Body]:
    """Encode events (one, several, tables, frames) as bodies, in their order."""
    if isinstance(events, Mapping):
        yield lines_of([events])
    elif isinstance(events, JsonText):
        yield Body(events.text, NDJSON, len(events))
    elif isinstance(events, pa.Table | pa.RecordBatch):
        yield from _tables(pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events)
    elif hasattr(events, "__arrow_c_stream__"):
        yield from _tables(pa.RecordBatchReader.from_stream(events).read_all())
    elif isinstance(events, str | Path | bytes):
        raise UsageError("events are dicts, tables or frames; for a file use weft publish FILE --to URL")
    elif isinstance(events, Iterable):
        yield from _items(events)
    else:
        raise UsageError(f"events are dicts, tables or frames, not a {type(events).__name__}")


def _items(events: Iterable[Any]) -> Iterator[Body]:
    waiting: list[Mapping[str, Any]] = []
    for item in events:
        if isinstance(item, Mapping):
            waiting.append(item)
            if len(waiting) == ROWS:
                yield lines_of(waiting)
                waiting = []
            continue
        if waiting:
            yield lines_of(waiting)
            waiting = []
        yield from encoded(item)
    if waiting:
        yield lines_of(waiting)


def lines_of(events: Sequence[Mapping[str, Any]]) -> Body:
    """Encode dicts as JSON lines, with times as texts that weft reads."""
    try:
        lines = [json.dumps(event, default=_plain, ensure_ascii=False) for event in events]
        return Body("\n".join([*lines, ""]).encode(), NDJSON, len(lines))
    except (TypeError, ValueError) as problem:
        raise InputError(f"an event cannot be sent as JSON: {problem}") from None


def _plain(value: object) -> object:
    """A value that JSON has no kind for: numbers of NumPy as numbers, times as ISO texts."""
    with suppress(AttributeError):
        return value.isoformat()  # type: ignore[attr-defined]
    with suppress(AttributeError):
        return value.item()  # type: ignore[attr-defined]
    raise TypeError(f"a {type(value).__name__} is no value of an event")


def _tables(table: pa.Table) -> Iterator[Body]:
    rows = max(1, min(ROWS, TABLE_BYTES * len(table) // max(1, table.nbytes)))
    for at in range(0, len(table), rows):
        piece = table.slice(at, rows)
        yield Body(b"", ARROW, len(piece), piece)


def bodies_of_place(place: str) -> Iterator[Body]:
    """The events of a file, a folder or a URI, or of standard input (`-`)."""
    uri = as_uri(place)
    incoming = None if uri is None else open_source(uri)
    if incoming is not None and incoming.paths is None:
        for item in incoming.items or ():
            yield from encoded(item)
        return
    for path in find_files(place if incoming is None or incoming.paths is None else incoming.paths):
        try:
            yield from _READERS[format_of(path)](path)
        except (OSError, pa.ArrowException) as problem:
            raise InputError(f"cannot read {path}: {problem}") from None


def _json_bodies(path: str) -> Iterator[Body]:
    with open_lines(path) as stream:
        while True:
            lines = stream.readlines(LINES) if path != "-" else [stream.readline()]
            content = b"".join(lines)
            if not content:
                return
            if not content.isspace():
                yield Body(content, NDJSON, len(lines))


def _parquet_bodies(path: str) -> Iterator[Body]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(ROWS):
        yield from encoded(batch)


def _csv_bodies(path: str) -> Iterator[Body]:
    from pyarrow import csv

    with csv.open_csv(path) as reader:
        for batch in reader:
            yield from encoded(batch)


_READERS = {"jsonl": _json_bodies, "parquet": _parquet_bodies, "csv": _csv_bodies}
