"""A server's state as a folder: the latest snapshot, and the journal of commands since then.

DIR/lock                 who uses the folder DIR/snapshot-7/          program.weft, server.json, log.arrow: written
aside, then renamed DIR/journal-7.log        commands after snapshot 7
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from weft.errors import InputError, UsageError
from weft.serve.journal import Journal, Record, Sync, read_journal

PROGRAM, SERVER, LOG = "program.weft", "server.json", "log.arrow"


class Snapshot(NamedTuple):
    """Contents of a snapshot: the file of the live program, the server's own data, and the log of matches."""

    program: Path
    server: Mapping[str, Any]
    log: pa.Table


class StateFolder:
    """The state of one server; no two servers use one folder at a time."""

    def __init__(self, folder: Path, sync: Sync = "second") -> None:
        self.folder = folder
        self._sync = sync
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another server uses {folder}: stop it, or give another --state") from None
        except OSError as problem:
            raise InputError(f"cannot use {folder} for state: {problem.strerror or problem}") from None
        self.number = max((int(path.name.rpartition("-")[2]) for path in self._snapshots()), default=0)
        self.snapshots = 0  # taken by this process
        for path in folder.glob("*.partial"):
            shutil.rmtree(path)
        self.journal = Journal(self._journal(self.number), sync)

    def _snapshots(self) -> list[Path]:
        return [path for path in self.folder.glob("snapshot-*") if path.name.rpartition("-")[2].isdigit()]

    def _journal(self, number: int) -> Path:
        return self.folder / f"journal-{number}.log"

    def latest(self) -> Snapshot | None:
        """The latest snapshot; None in a new folder."""
        place = self.folder / f"snapshot-{self.number}"
        if not place.is_dir():
            return None
        try:
            server = json.loads((place / SERVER).read_text(encoding="utf-8"))
            with pa.ipc.open_file((place / LOG).read_bytes()) as reader:
                log = reader.read_all()
        except (OSError, ValueError, pa.ArrowException) as problem:
            raise InputError(f"{place} is damaged: {problem}") from None
        return Snapshot(place / PROGRAM, server, log)

    def records(self) -> Iterator[Record]:
        """Return the records since the latest snapshot."""
        return read_journal(self._journal(self.number))

    def take(self, save: Callable[[Path], None], server: Mapping[str, Any], log: pa.Table) -> None:
        """Write a snapshot, start a new journal, and remove the old ones."""
        number = self.number + 1
        place = self.folder / f"snapshot-{number}"
        aside = place.with_suffix(".partial")
        aside.mkdir()
        save(aside / PROGRAM)
        (aside / SERVER).write_text(json.dumps(server), encoding="utf-8")
        with pa.OSFile(str(aside / LOG), "wb") as file, pa.ipc.new_file(file, log.schema) as writer:
            writer.write_table(log)
        for path in (*aside.iterdir(), aside):
            _sync_path(path)
        aside.rename(place)
        _sync_path(self.folder)
        before, self.number = self.number, number
        self.journal.close(needed=False)
        self.journal = Journal(self._journal(number), self._sync)
        self.snapshots += 1
        self._journal(before).unlink(missing_ok=True)
        shutil.rmtree(self.folder / f"snapshot-{before}", ignore_errors=True)

    def close(self) -> None:
        """Release the lock on the folder."""
        self.journal.close()
        self._lock.close()


def _sync_path(path: Path) -> None:
    found = os.open(path, os.O_RDONLY)
    try:
        os.fsync(found)
    finally:
        os.close(found)
