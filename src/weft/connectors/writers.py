"""Matches and rejected events to files: JSON lines, CSV, Parquet, or standard output."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from weft.errors import InputError, UsageError
from weft.runtime.events import Rejected
from weft.runtime.match_lines import json_lines
from weft.runtime.matches import MATCH_SCHEMA

Rows = Iterable[Any]  # a table, a record batch, or an iterable of these or of dicts
ROWS = 4096  # dicts taken together


def write_matches(matches: Rows, path: str | Path, format: str = "jsonl") -> int:
    """Write matches (dicts, or rows of MATCH_SCHEMA) to a file, `-` being standard output; returns how many."""
    writers = {"jsonl": _write_json_lines, "csv": _write_csv, "parquet": _write_parquet}
    if format not in writers:
        raise UsageError(f"unknown format {format!r}; known are {', '.join(writers)}")
    with _opened(path) as sink:
        return writers[format](_batches(matches), sink)


def write_rejected(rejected: Iterable[Rejected], path: str | Path) -> int:
    """Write events that could not be read as JSON lines, each with its place and the reason; returns how many."""
    count = 0
    with _opened(path) as sink:
        for one in rejected:
            fields = {"file": one.file, "line": one.line, "row": one.row, "reason": one.reason, "event": one.event}
            shown = {name: value for name, value in fields.items() if value is not None}
            sink.write((json.dumps(shown, ensure_ascii=False, default=str) + "\n").encode())
            count += 1
    return count


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with Path(path).open("wb") as sink:
            yield sink
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}") from None


def _batches(matches: Rows) -> Iterator[pa.RecordBatch]:
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


def _write_json_lines(batches: Iterable[pa.RecordBatch], sink: BinaryIO) -> int:
    count = 0
    for batch in batches:
        sink.write(json_lines(batch))
        count += len(batch)
        if sink is sys.stdout.buffer:
            sink.flush()  # whoever reads the pipe sees matches as they are found
    return count


def _write_csv(batches: Iterable[pa.RecordBatch], sink: BinaryIO) -> int:
    """One line per match; positions are separated by spaces, bindings and event are JSON."""
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="", write_through=True)
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(MATCH_SCHEMA.names)
    count = 0
    for batch in batches:
        for match in batch.to_pylist():
            match["positions"] = " ".join(map(str, match["positions"]))
            match["bindings"] = json.dumps(dict(match["bindings"]), ensure_ascii=False)
            rows.writerow([match[name] for name in MATCH_SCHEMA.names])
        count += len(batch)
    text.flush()
    text.detach()
    return count


def _write_parquet(batches: Iterable[pa.RecordBatch], sink: BinaryIO) -> int:
    count = 0
    with pq.ParquetWriter(cast(Any, sink), MATCH_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += len(batch)
    return count
