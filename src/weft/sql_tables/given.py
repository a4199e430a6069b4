"""What a user gives as a table: Arrow, pandas and Polars frames, lists of dicts, files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from weft.connectors.files import find_files, format_of
from weft.errors import InputError, UsageError


def as_table(given: Any, name: str = "the table") -> pa.Table:
    """An Arrow table of what is given; raises UsageError for what is no table, InputError for unreadable files."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, str | Path):
        return _read(find_files(given))
    if isinstance(given, Mapping):
        return _made(lambda: pa.table(dict(given)), name)
    module = type(given).__module__.partition(".")[0]
    if module == "pandas":
        return _made(lambda: pa.Table.from_pandas(given, preserve_index=False), name)
    if hasattr(given, "to_arrow"):
        return as_table(given.to_arrow(), name)
    if hasattr(given, "__arrow_c_stream__"):
        return _made(lambda: pa.table(given), name)
    if isinstance(given, Sequence) and all(isinstance(item, str | Path) for item in given) and given:
        return _read(find_files(list(given)))
    if isinstance(given, Sequence) and all(isinstance(item, Mapping) for item in given):
        return _made(lambda: _from_rows(given), name)
    raise UsageError(
        f"{name} is a {type(given).__name__}: give an Arrow table, a pandas or Polars frame, a list of dicts, or a file"
    )


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def _made(make: Any, name: str) -> pa.Table:
    try:
        return make()
    except (pa.ArrowException, ValueError, TypeError) as problem:
        raise InputError(f"{name} cannot be made into a table: {problem}") from None


def table_of_text(text: str) -> pa.Table:
    """A table that is written as JSON lines, or as CSV."""
    try:
        data = io.BytesIO(text.strip().encode())
        return pa_json.read_json(data) if text.strip().startswith("{") else pa_csv.read_csv(data)
    except (pa.ArrowException, UnicodeEncodeError) as problem:
        raise InputError(f"these rows are neither JSON lines nor CSV: {problem}") from None


def _read(paths: Sequence[str]) -> pa.Table:
    tables = [_read_file(path) for path in paths]
    try:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        raise InputError(f"the files {', '.join(paths)} do not make one table: {problem}") from None


def _read_file(path: str) -> pa.Table:
    form = format_of(path)
    try:
        if form == "parquet":
            return pq.read_table(path)
        if form == "csv":
            options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
            return pa_csv.read_csv(path, convert_options=options)
        with pa.input_stream(path, compression="detect") as stream:
            return pa_json.read_json(io.BytesIO(stream.read()))
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror or problem}") from None
    except pa.ArrowException as problem:
        raise InputError(f"cannot read {path}: {problem}") from None
