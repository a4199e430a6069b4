"""Events from CSV files: each column is numbers or Booleans if all its values are, else texts; empty is missing."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from weft.connectors.damage import bad_rows, read_piece
from weft.errors import InputError
from weft.runtime.data.events import STREAM, Column
from weft.runtime.data.exact import floats_with_digits
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.kinds import column_of, column_of_values
from weft.runtime.reading.order import Reading
from weft.runtime.reading.times import END, START

LARGEST = 1 << 32  # bytes of a file, after they are unpacked
OPEN_QUOTE = "a quote that opens here is never closed"
OPEN_QUOTES = 20  # lines of a file, before it is not read at all
LONGEST_HEADER = 1 << 22  # bytes
BLOCK, LARGEST_BLOCK = 1 << 20, (1 << 31) - 1  # bytes that are parsed at once
SAMPLE = 64  # values that show what a column is not
_TICKS = r"^\s*[+-]?\d{1,19}\s*$"


def csv_chunks(path: str, reading: Reading) -> Iterator[Chunk]:
    """The rows of a file. A column's kind is that of all its values, so the file is read as a whole."""
    data, damage = _content(path)
    if not data.strip() and not damage:
        raise InputError(f"{path} is empty: a CSV file needs a header with the names of its columns")
    if not data.strip():
        yield bad_rows(path, [(1, problem) for problem in damage])
        return
    if b"\n" not in data and b"\r" not in data:
        data += b"\n"  # Arrow takes a header without an end for no file
    bad: list[tuple[int, str]] = []
    table = _read(data, path, bad)
    if bad or damage:
        yield bad_rows(path, [*bad, *((data.count(b"\n") + 1, problem) for problem in damage)])
    read = dict.fromkeys((reading.type, STREAM), column_of) | dict.fromkeys((reading.time, START, END), _times)
    columns = {name: read.get(name, _typed)(_one(table.column(name))) for name in table.schema.names}
    left_out = sorted(number for number, _ in bad)
    for first in range(0, max(1, len(table)), reading.batch_size):
        yield _slice(path, table, columns, left_out, first, min(reading.batch_size, len(table) - first))


def _content(path: str) -> tuple[bytes, list[str]]:
    """All bytes of a file; of a compressed one that is damaged, the lines that can be read, and what is wrong."""
    damage: list[str] = []
    pieces: list[bytes] = []
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
        size = 0
        while piece := read_piece(cast(BufferedIOBase, file), 1 << 24, damage):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST:
                raise InputError(
                    f"{path} has more than {LARGEST >> 20} MiB, and a CSV file is read as a whole: cut it into parts, "
                    "or give JSON lines or Parquet"
                )
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
    data, wrong = _readable(data, len(names))
    data = _closed(data, path, len(names), wrong)

    def note(row: pv.InvalidRow) -> str:
        problem = wrong.get(row.number) or f"{row.actual_columns} values for {row.expected_columns} columns"
        bad.append((row.number, problem))
        return "skip"

    for size in (BLOCK, min(len(data) + 1, LARGEST_BLOCK)):  # all at once if a row is longer than a block
        bad.clear()
        try:
            return pv.read_csv(
                pa.BufferReader(data),
                pv.ReadOptions(use_threads=False, column_names=names, skip_rows_after_names=1, block_size=size),
                pv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
                pv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
        except pa.ArrowException as problem:
            why = problem
    raise InputError(f"cannot read {path}: {why}")


def _readable(data: bytes, columns: int) -> tuple[bytes, dict[int, str]]:
    """The rows, those that are not UTF-8 made too long to be taken; and what is wrong with these, by number."""
    try:
        data.decode()
        return data, {}
    except UnicodeDecodeError:
        pass
    lines = data.split(b"\n")
    wrong = {number: "not UTF-8" for number, line in enumerate(lines, 1) if not _decodes(line)}
    for number in wrong:
        lines[number - 1] = _refused(lines[number - 1], columns)
    return b"\n".join(lines), wrong


def _closed(data: bytes, path: str, columns: int, wrong: dict[int, str]) -> bytes:
    """The rows; a line in which a quote opens that is never closed is made too long to be taken, and noted.

    It would swallow the rest of the file. The last line that such a quote may be in is left out, then the one before.
    """
    tails: list[int] = []  # bytes from such a line to the end
    while (at := _open_quote(data)) is not None:
        if len(tails) == OPEN_QUOTES:
            raise InputError(f"cannot read {path}: quotes are open in more than {OPEN_QUOTES} lines")
        begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = len(data) if end < 0 else end
        data = data[:begin] + _refused(data[begin:end], columns) + data[end:]
        tails.append(len(data) - begin)
    wrong.update({_records(data[: len(data) - tail]) + 1: OPEN_QUOTE for tail in tails})
    return data


def _refused(line: bytes, columns: int) -> bytes:
    return line.decode(errors="replace").replace('"', "").encode() + b"," * (columns + 1)


# Possessive, so that it takes time in proportion to what it reads, whatever that is.
_FIELD = re.compile(rb'(?:"[^"]*+(?:""[^"]*+)*+"[^,\n]*+|[^",\n][^,\n]*+|)([,\n]|\Z)')


def _open_quote(data: bytes) -> int | None:
    """Where a quote opens that nothing closes. It is the last one of all, or the last but some doubled ones."""
    last = data.rfind(b'"')
    if last < 0 or (last and data[last - 1 : last] not in b',\n"'):
        return None
    at = 0
    while at < len(data):
        field = _FIELD.match(data, at)
        if field is None:
            return at
        at = field.end()
    return None


def _records(data: bytes) -> int:
    """How many rows there are in whole rows, those over several lines counted once."""
    count = at = 0
    while at < len(data) and (field := _FIELD.match(data, at)):
        count += field[1] != b","
        at = field.end()
    return count


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def header_of(path: str) -> list[str]:
    """The names of a file's columns."""
    try:
        with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
            line = file.readline(LONGEST_HEADER)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputError(f"cannot read {path}: {problem}") from None
    return _header(line + b"\n", path)


def _header(data: bytes, path: str) -> list[str]:
    try:
        with pv.open_csv(
            pa.BufferReader(data), parse_options=pv.ParseOptions(invalid_row_handler=lambda row: "skip")
        ) as reader:
            names = [name.strip() for name in reader.schema.names]
    except (pa.ArrowException, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}") from None
    twice = next((name for name, number in Counter(names).items() if number > 1), None)
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


def _times(texts: pa.Array) -> Column:
    """The same for a column of times: one that cannot be read does not make texts of those that are numbers."""
    typed = _typed(texts)
    if typed.texts is None:
        return typed
    whole = pc.fill_null(pc.match_substring_regex(texts, _TICKS), False).to_pylist()
    if not any(whole):
        return typed
    pairs = zip(texts.to_pylist(), whole, strict=True)
    return column_of_values([int(text) if is_number else text for text, is_number in pairs])


def _line(row: int, bad: list[int]) -> int:
    """The number of a row that was read, the header being 1; `bad` are those of rows left out, ascending."""
    number = row + 2
    for left_out in bad:
        number += left_out <= number
    return number
