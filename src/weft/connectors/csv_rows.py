"""Events from CSV files: each column is numbers or Booleans if all its values are, else texts; empty is missing."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from weft.connectors.damage import bad_rows, read_piece
from weft.errors import InputError
from weft.runtime.events import STREAM, Column
from weft.runtime.exact import floats_with_digits
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.kinds import column_of
from weft.runtime.reading.order import Reading

SAMPLE = 64  # values that show what a column is not


def csv_chunks(path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a file. A column's kind is that of all its values, so the file is read as a whole."""
    data, damage = _content(path)
    if not data.strip() and not damage:
        raise InputError(f"{path} is empty: a CSV file needs a header with the names of its columns")
    if not data.strip():
        yield bad_rows(path, [(1, problem) for problem in damage])
        return
    bad: list[tuple[int, str]] = []
    table = _read(data, path, bad)
    if bad or damage:
        yield bad_rows(path, [*bad, *((data.count(b"\n") + 1, problem) for problem in damage)])
    columns = {
        name: column_of(_one(table.column(name)))
        if name in (reading.type, STREAM)
        else _typed(_one(table.column(name)))
        for name in table.schema.names
    }
    left_out = sorted(number for number, _ in bad)
    for first in range(0, max(1, len(table)), reading.batch_size):
        yield _slice(path, table, columns, left_out, first, min(reading.batch_size, len(table) - first))


def _content(path: str) -> tuple[bytes, list[str]]:
    """All bytes of a file; of a compressed one that is damaged, the lines that can be read, and what is wrong."""
    damage: list[str] = []
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
        pieces = list(iter(lambda: read_piece(cast(BufferedIOBase, file), 1 << 24, damage), b""))
    data = b"".join(pieces)
    return (data[: data.rfind(b"\n") + 1] if damage else data), damage


def _slice(
    path: str, table: pa.Table, columns: dict[str, Column], left_out: list[int], first: int, length: int
) -> Chunk:
    return Chunk(
        length,
        columns,
        lambda name: columns[name].map(lambda array: array.slice(first, length)),
        lambda row: {k: v for k, v in table.slice(first + row, 1).to_pylist()[0].items() if v is not None},
        place=lambda row: (path, _line(first + row, left_out)),
    )


def _read(data: bytes, path: str, bad: list[tuple[int, str]]) -> pa.Table:
    """All columns as texts; rows of another length than the header go to `bad` by their line."""
    names = _header(data[: data.find(b"\n") + 1] or data, path)
    data, undecodable = _readable(data, len(names))

    def note(row: pv.InvalidRow) -> str:
        wrong = "not UTF-8" if row.number in undecodable else None
        bad.append((row.number, wrong or f"{row.actual_columns} values for {row.expected_columns} columns"))
        return "skip"

    try:
        return pv.read_csv(
            pa.BufferReader(data),
            pv.ReadOptions(use_threads=False, column_names=names, skip_rows_after_names=1),
            pv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
            pv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowException as problem:
        raise InputError(f"cannot read {path}: {problem}") from None


def _readable(data: bytes, columns: int) -> tuple[bytes, set[int]]:
    """The rows, those that are not UTF-8 made too long to be taken; and the numbers of these."""
    try:
        data.decode()
        return data, set()
    except UnicodeDecodeError:
        pass
    lines = data.split(b"\n")
    wrong = {number for number, line in enumerate(lines, 1) if not _decodes(line)}
    for number in wrong:
        lines[number - 1] = lines[number - 1].decode(errors="replace").replace('"', "").encode() + b"," * (columns + 1)
    return b"\n".join(lines), wrong


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def header_of(path: str) -> list[str]:
    """The names of a file's columns."""
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
        return _header(file.readline() + b"\n", path)


def _header(data: bytes, path: str) -> list[str]:
    try:
        with pv.open_csv(
            pa.BufferReader(data), parse_options=pv.ParseOptions(invalid_row_handler=lambda row: "skip")
        ) as reader:
            names = [name.strip() for name in reader.schema.names]
    except (pa.ArrowException, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}") from None
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{path}: two columns are called {twice!r}: rename one")
    return names


def _one(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _typed(texts: pa.Array) -> Column:
    """A column of texts as integers, numbers or Booleans if every value is one."""
    if texts.null_count == len(texts):
        return column_of(texts)
    trimmed = pc.utf8_trim_whitespace(texts)
    for kind in (pa.int64(), pa.float64()):
        try:
            trimmed.drop_null().slice(0, SAMPLE).cast(kind)  # a failing cast is slow, and mostly fails at once
            read = column_of(trimmed.cast(kind))
            return read if kind == pa.int64() else floats_with_digits(trimmed, read.numbers)
        except pa.ArrowInvalid:
            continue
    lower = pc.utf8_lower(trimmed)
    if set(lower.unique().drop_null().to_pylist()) <= {"true", "false"}:
        return column_of(pc.equal(lower, "true"))
    return column_of(texts)


def _line(row: int, bad: list[int]) -> int:
    """The number of a row that was read, the header being 1; `bad` are those of rows left out, ascending."""
    number = row + 2
    for left_out in bad:
        number += left_out <= number
    return number
