"""Parts of large files: what is read of a file in one trigger where its events are read at a rate.

Lines of JSON are cut by bytes, so that a part is read alone; of other files, rows are counted from the first.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from weft.runtime.reading.chunks import Chunk

BLOCK = 1 << 20
MOST_PARTS = 1000  # of a file whose parts are not read alone


class FilePart(NamedTuple):
    """The rows from `first` to before `last` (-1: to the end), which are the bytes from `begin` to `end` where that
    is known. `total`: the rows of the file, as far as it matters."""

    first: int = 0
    last: int = -1
    begin: int = -1
    end: int = -1
    total: int = -1

    def overlaps(self, first: int, count: int) -> bool:
        """Whether any row of a range of rows is part of it."""
        return first + count > self.first and (self.last < 0 or first < self.last)

    def of(self, chunks: Iterable[Chunk], first: int = 0) -> Iterator[Chunk]:
        """The rows of chunks that are part of it; `first` is the number of their first row."""
        for chunk in chunks:
            if 0 <= self.last <= first:
                return
            begin = max(0, self.first - first)
            end = chunk.length if self.last < 0 else min(chunk.length, self.last - first)
            if begin < end:
                yield chunk if end - begin == chunk.length else chunk.slice(begin, end - begin)
            first += chunk.length


WHOLE = FilePart()


def rows_per_part(rate: float | None) -> int | None:
    """How many events are a part: those of a second."""
    return None if rate is None else max(1, ceil(rate))


def next_part(path: str, form: str, size: int, rows: int, before: FilePart | None = None) -> FilePart | None:
    """The part of a file that follows another one, or None at the end of the file."""
    if before is not None and before.last < 0:
        return None
    try:
        if form == "jsonl" and not path.lower().endswith(".gz"):
            return _next_lines(path, size, rows, before or FilePart(0, 0, 0, 0))
        return _next_rows(path, form, rows, before or FilePart(0, 0))
    except (OSError, EOFError, zlib.error, pa.ArrowException):  # whoever reads it tells of that
        return WHOLE if before is None else FilePart(before.last)


def _next_lines(path: str, size: int, rows: int, before: FilePart) -> FilePart | None:
    """So many lines, which begin where those before end."""
    begin = end = before.end
    left = rows
    with Path(path).open("rb") as file:
        file.seek(begin)
        while left and end < size and (block := file.read(min(BLOCK, size - end))):
            count = block.count(b"\n")
            if count < left:
                left, end = left - count, end + len(block)
                continue
            at = -1
            for _ in range(left):
                at = block.index(b"\n", at + 1)
            left, end = 0, end + at + 1
    if begin == 0 and end >= size:
        return WHOLE
    last = -1 if end >= size else before.last + rows
    return FilePart(before.last, last, begin, min(end, size))


def _next_rows(path: str, form: str, rows: int, before: FilePart) -> FilePart | None:
    total = _row_count(path, form) if before.total < 0 else before.total
    last = before.last + max(rows, total // MOST_PARTS)
    if before.last == 0 and last >= total:
        return WHOLE
    return FilePart(before.last, -1 if last >= total else last, total=total)


def _row_count(path: str, form: str) -> int:
    """The rows of a file, at most: texts of several lines count as several."""
    if form == "parquet":
        return int(pq.read_metadata(path).num_rows)
    count, last = 0, b""
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as file:
        while block := file.read(BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last not in (b"", b"\n"))
