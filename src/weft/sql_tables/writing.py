"""Tables to files: JSON lines, CSV, Parquet, or standard output."""

from __future__ import annotations

import io
import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from weft.connectors.places import opened
from weft.errors import UsageError

_NESTED = (pa.types.is_nested, pa.types.is_duration, pa.types.is_binary)


def write_table(table: pa.Table, path: str | Path, form: str = "jsonl") -> int:
    """Write the rows of a table to a file (`-`: standard output); returns how many."""
    if form not in ("jsonl", "csv", "parquet"):
        raise UsageError(f"unknown format {form!r}; known are jsonl, csv, parquet")
    with opened(path) as sink:
        if form == "parquet":
            pq.write_table(table, sink)
        elif form == "csv":
            pa_csv.write_csv(_flat(table), sink)
        else:
            for batch in table.to_batches(max_chunksize=10_000):
                sink.write("".join(_json(row) + "\n" for row in batch.to_pylist()).encode())
    return int(table.num_rows)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table with values that JSON has."""
    return [json.loads(_json(row)) for row in table.to_pylist()]


def csv_text(table: pa.Table) -> str:
    """The rows of a table as CSV, with a line of names before them."""
    out = io.BytesIO()
    pa_csv.write_csv(_flat(table), out, pa_csv.WriteOptions(quoting_style="needed"))
    return out.getvalue().decode()


def _json(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, default=_plain)


def _flat(table: pa.Table) -> pa.Table:
    """A table for CSV: lists and structs as JSON texts."""
    for index, field in enumerate(table.schema):
        if any(is_one(field.type) for is_one in _NESTED):
            values = table.column(index).to_pylist()
            texts = [
                None if value is None else json.dumps(value, ensure_ascii=False, default=_plain) for value in values
            ]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)
