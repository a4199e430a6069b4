"""Pieces of the matches of one push: a bounded number in memory, the others in a temporary file."""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any, Generic, TypeVar

import pyarrow as pa

from weft.runtime.data.matches import MatchBatch
from weft.runtime.local import settle

Item = TypeVar("Item")
MOST_BYTES = 64 << 20  # of matches that are held in memory, and of one piece
CODEC = "zstd"


class Spool(Generic[Item]):
    """A list of items: the last in memory, the others in a temporary file, which is removed with the list."""

    def __init__(self) -> None:
        self._last: Item | None = None
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int, int]] = []  # in the file: where, and bytes packed and unpacked
        self._lock = threading.Lock()  # several may iterate

    def add(self, item: Item) -> None:
        """Append an item."""
        if self._last is not None:
            self._write(self._last)
        self._last = item

    def _write(self, item: Item) -> None:
        whole = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        packed = pa.compress(whole, CODEC, asbytes=True)
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="weft-")  # noqa: SIM115 # closed when this is forgotten
            self._places.append((self._file.seek(0, os.SEEK_END), len(packed), len(whole)))
            self._file.write(packed)

    def _read(self, at: int, packed: int, whole: int) -> Item:
        assert self._file is not None
        with self._lock:
            self._file.seek(at)
            read = self._file.read(packed)
        item: Item = pickle.loads(pa.decompress(read, whole, CODEC, asbytes=True))  # only this process wrote it
        return item

    def __iter__(self) -> Iterator[Item]:
        for place in self._places:
            yield self._read(*place)
        if self._last is not None:
            yield self._last


class Pieces:
    """The matches of one push, in pieces that are sorted separately.

    Usually there is one piece. Otherwise matches of one query are sorted by end: with `by_end`, if all are of one
    query, a piece ends between two times where possible.
    """

    def __init__(self, by_end: bool, most_bytes: int | None = None) -> None:
        self._by_end = by_end
        self._most = MOST_BYTES if most_bytes is None else most_bytes
        self._open: list[MatchBatch] = []
        self._bytes = 0
        self._count = 0
        self._spool: Spool[list[MatchBatch]] = Spool()

    def add(self, found: MatchBatch) -> None:
        """Add matches."""
        if not len(found):
            return
        self._count += len(found)
        self._open.append(found)
        self._bytes += _bytes_of(found)
        if self._bytes > self._most:
            ready, held = settle(self._open, int(found.ends[-1])) if self._by_end else (self._open, [])
            if not ready:
                ready, held = held, []
            self._spool.add(ready)
            self._open, self._bytes = held, sum(map(_bytes_of, held))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Sequence[MatchBatch]]:
        yield from self._spool
        if self._open:
            yield self._open


def _bytes_of(found: MatchBatch) -> int:
    arrays: list[Any] = [found.starts, found.ends, found.offsets, found.positions, found.labels, *found.fields.values()]
    arrays += [] if found.events is None else [found.events]
    return sum(array.nbytes for array in arrays)
