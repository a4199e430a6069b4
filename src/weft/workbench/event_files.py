"""The rows of a file of events, read lazily."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.errors import InputError

BATCH = 1000  # rows of a Parquet file that are read at a time
Row = dict[str, Any]


def drawn(path: Path, skip: int, take: int) -> list[Row]:
    """So many rows of a file, after those that are skipped."""
    try:
        return list(islice(file_rows(path, skip), take))
    except (OSError, ValueError, csv.Error, pa.ArrowException, RecursionError) as problem:
        raise InputError(f"cannot read {path.name}: {problem}") from None


def row_count(path: Path) -> int:
    """How many rows a file has, about: of JSON lines and CSV its lines are counted."""
    try:
        if path.suffix == ".parquet":
            return int(pq.read_metadata(path).num_rows)
        with path.open("rb") as lines:
            return sum(1 for _ in lines) - (path.suffix == ".csv")
    except (OSError, pa.ArrowException) as problem:
        raise InputError(f"cannot read {path.name}: {problem}") from None


def file_rows(path: Path, skip: int = 0) -> Iterator[Row]:
    """The rows of a file of JSON lines, CSV or Parquet; those of Parquet that are skipped are mostly not read."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, skip)
        return
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = _csv_rows(lines) if path.suffix == ".csv" else _json_rows(lines)
        yield from islice(rows, skip, None)


def _parquet_rows(path: Path, skip: int) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        first, left = 0, skip
        while first < file.num_row_groups and left >= file.metadata.row_group(first).num_rows:
            left -= file.metadata.row_group(first).num_rows
            first += 1
        groups = range(first, file.num_row_groups)
        batches = file.iter_batches(batch_size=BATCH, row_groups=list(groups)) if groups else ()
        yield from islice((row for batch in batches for row in batch.to_pylist()), left, None)


def _json_rows(lines: Iterator[str]) -> Iterator[Row]:
    for line in lines:
        row = json.loads(line) if line.strip() else None
        if isinstance(row, dict):
            yield row


def _csv_rows(lines: Iterator[str]) -> Iterator[Row]:
    for row in csv.DictReader(lines):
        yield {name: csv_value(value) for name, value in row.items() if value}


def csv_value(text: str) -> object:
    """What a cell reads as in JSON, else its text."""
    try:
        return json.loads(text) if text.lower() not in ("nan", "infinity", "-infinity") else text
    except ValueError:
        return text
