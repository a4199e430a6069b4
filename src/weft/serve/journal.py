"""What a server was told, in order, in a file that survives the process: records with checksums."""

from __future__ import annotations

import json
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from weft.errors import InputError

Sync = Literal["always", "second", "never"]
MAGIC = b"wj01"
_HEAD = struct.Struct("<4sIII")  # magic, bytes of the header, bytes of the body, checksum of both
EVERY = 1.0  # seconds between two syncs


class Record(NamedTuple):
    """One recorded request: its description as JSON, and its binary data."""

    about: Mapping[str, Any]
    body: bytes = b""


class Journal:
    """A file that grows. A record is with the operating system when `append` returns: a kill does not lose it.

    `sync` says when it is on the disk, too, and survives the machine: with each record, each second, or as the
    operating system likes.
    """

    def __init__(self, path: Path, sync: Sync = "second") -> None:
        self.path = path
        self.size = path.stat().st_size if path.exists() else 0
        self._file = path.open("ab", buffering=0)
        self._sync = sync
        self._synced = self.size  # bytes that are on the disk
        self._failure: OSError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_synced, name="weft journal", daemon=True)
        if sync == "second":
            self._thread.start()

    def append(self, record: Record) -> None:
        """Write one record; raises the error of an earlier sync."""
        if self._failure is not None:
            raise self._failure
        header = json.dumps(record.about, separators=(",", ":")).encode()
        checksum = zlib.crc32(record.body, zlib.crc32(header))
        head = _HEAD.pack(MAGIC, len(header), len(record.body), checksum) + header
        parts = [memoryview(head), memoryview(record.body)]
        while parts:  # a write may take a part only
            written = os.writev(self._file.fileno(), parts)
            self.size += written
            while parts and written >= len(parts[0]):
                written -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][written:]
        if self._sync == "always":
            self.flush()

    def _keep_synced(self) -> None:
        """Sync the file in a thread, so that no request waits for the disk."""
        while not self._ended.wait(EVERY):
            if self.size > self._synced:
                try:
                    self.flush()
                except OSError as problem:
                    self._failure = problem
                    return

    def flush(self) -> None:
        """Write everything to the disk."""
        size = self.size
        os.fsync(self._file.fileno())
        self._synced = size

    def close(self, *, needed: bool = True) -> None:
        """Stop writing; without `needed`, skip the final sync to disk."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if needed:
            self.flush()
        self._file.close()


def read_journal(path: Path) -> Iterator[Record]:
    """The records of a journal. A last one that is not whole was never confirmed: it is cut off.

    Raises InputError if a record before the last is damaged.
    """
    size = path.stat().st_size
    with path.open("r+b") as file:
        while (at := file.tell()) < size:
            record = _read(file.read(_HEAD.size), file)
            if record is None:
                if _has_more(path, at, size):
                    raise InputError(f"{path} is damaged at byte {at:,}: restore it from a copy, or move it away")
                file.truncate(at)
                return
            yield record


def _read(head: bytes, file: Any) -> Record | None:
    if len(head) < _HEAD.size:
        return None
    magic, header_size, body_size, checksum = _HEAD.unpack(head)
    if magic != MAGIC:
        return None
    header, body = file.read(header_size), file.read(body_size)
    if len(header) < header_size or len(body) < body_size or zlib.crc32(body, zlib.crc32(header)) != checksum:
        return None
    return Record(json.loads(header), body)


def _has_more(path: Path, at: int, size: int) -> bool:
    """Whether a whole record follows one that is not: then the file was not just cut short."""
    with path.open("rb") as file:
        file.seek(at + 1)
        rest = file.read(size - at)
        found = rest.find(MAGIC)
        while found >= 0:
            file.seek(at + 1 + found)
            if _read(file.read(_HEAD.size), file) is not None:
                return True
            found = rest.find(MAGIC, found + 1)
    return False
