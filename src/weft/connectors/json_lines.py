"""Events from JSON lines, in files and in memory, block by block."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import cast

from weft.connectors.damage import bad_rows, read_piece
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.json_blocks import LONGEST, TOO_LONG, block_chunk
from weft.runtime.reading.order import Reading

BLOCK = 1 << 24  # bytes parsed at a time
MOST_LINES = 1 << 16  # of a piece that Arrow reads


def json_chunks(path: str, reading: Reading, lines: tuple[int, int, int] | None = None) -> Iterator[Chunk]:
    """The lines of a file in blocks. A line that is not a JSON object is a row with a problem.

    `lines`: which of them, by the number of the first, where it begins, and where the last ends.
    """
    texts: set[str] = set()  # columns that Arrow takes for times
    line = 1 if lines is None else lines[0]
    damage: list[str] = []
    with open_lines(path) if lines is None else _cut(path, *lines[1:]) as stream:
        for block in _pieces(_blocks(stream, damage)):
            if not block.isspace():
                yield block_chunk(block, path, line, reading.time_unit, texts)
            line += block.count(b"\n")
    if damage:
        yield bad_rows(path, [(line, damage[0])])


class JsonText:
    """JSON lines in memory, from anywhere; `place` and `line` are where its first line is, for messages."""

    def __init__(self, text: bytes, place: str = "<lines>", line: int = 1) -> None:
        self.text, self._place, self._line = text, place, line

    def __len__(self) -> int:
        """The number of lines."""
        return self.text.count(b"\n") + (not self.text.endswith(b"\n"))

    def chunks(self, time_unit: str) -> Iterator[Chunk]:
        """Its events; a line that is not a JSON object is a row with a problem."""
        if self.text and not self.text.isspace():
            yield block_chunk(self.text, self._place, self._line, time_unit, set())


def open_lines(path: str) -> BufferedIOBase:
    """A file of lines, which may be compressed, or standard input."""
    if path == "-":
        return cast(BufferedIOBase, sys.stdin.buffer)
    if path.lower().endswith(".gz"):
        return cast(BufferedIOBase, gzip.open(path, "rb"))
    return Path(path).open("rb")


def _cut(path: str, begin: int, end: int) -> BufferedIOBase:
    with Path(path).open("rb") as stream:
        stream.seek(begin)
        return BytesIO(stream.read(end - begin))


def _blocks(stream: BufferedIOBase, damage: list[str]) -> Iterator[bytes]:
    """The file in pieces that end with a line; of a compressed file that is damaged, what can be read of it.

    A line that is longer than any event is not kept: a short mark takes its place, which is no event.
    """
    rest, is_too_long = b"", False
    while piece := read_piece(stream, BLOCK, damage):
        cut = piece.rfind(b"\n") + 1
        if not cut:
            is_too_long = is_too_long or len(rest) + len(piece) > LONGEST
            rest = b"" if is_too_long else rest + piece
            continue
        if is_too_long:
            first = piece.find(b"\n")
            yield TOO_LONG + piece[first:cut]
        else:
            yield rest + piece[:cut]
        rest, is_too_long = piece[cut:], False
    if is_too_long:
        yield TOO_LONG
    elif rest.strip():
        yield rest


def _pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks with many lines in pieces: Arrow's tables have a cell for each line and each name."""
    for block in blocks:
        rest = block
        while rest.count(b"\n") > MOST_LINES:
            cut = len(b"\n".join(rest.split(b"\n", MOST_LINES)[:-1])) + 1
            yield rest[:cut]
            rest = rest[cut:]
        if rest:
            yield rest
