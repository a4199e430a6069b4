"""Files that are not what they should be: what can be read of them is read, the rest is a row with a problem."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from io import BufferedIOBase

from weft.runtime.data.events import Column
from weft.runtime.reading.chunks import Chunk

PIECE = 1 << 20  # bytes of a compressed file at a time


def read_piece(stream: BufferedIOBase, size: int, damage: list[str]) -> bytes:
    """The next bytes; none when a compressed file is damaged here, which is noted."""
    if damage:
        return b""
    piece = b""
    try:
        while len(piece) < size and (more := stream.read1(min(size, PIECE))):
            piece += more
    except (EOFError, zlib.error) as problem:
        damage.append(f"the file is damaged here, and the rest cannot be read: {problem}")
    except OSError as problem:
        if problem.errno is not None:
            raise
        damage.append(f"the file is damaged here, and the rest cannot be read: {problem}")
    return piece


def bad_rows(path: str, bad: Sequence[tuple[int, str]]) -> Chunk:
    """Lines that are no events, and why."""
    return Chunk(
        len(bad),
        (),
        lambda name: Column(),
        lambda row: None,
        problems={row: problem for row, (_, problem) in enumerate(bad)},
        place=lambda row: (path, bad[row][0]),
        form="rows",
    )
