"""The log of the files that a stream has found, in the order in which they are read: it outlives the process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from weft.errors import UsageError
from weft.runtime.spark.files.parts import FilePart, next_part

_of_the_future: dict[str, tuple[tuple[int, int] | None, float]] = {}  # files: how each looks, and since when


@dataclass(frozen=True)
class Folder:
    """A source: a folder of files of events, or a single file; `defaults` are what events do not say themselves."""

    name: str
    path: str
    defaults: Mapping[str, str]


@dataclass(frozen=True)
class FileLog:
    """Where the log is, and where files are looked for."""

    path: str
    folders: tuple[Folder, ...]
    formats: Mapping[str, str]  # by ending
    settle: float = 0.0  # seconds for which a file has not changed before it is read
    epoch: int | None = None  # of the owner of the checkpoint; None: nobody can take it over
    part_rows: tuple[int | None, ...] = ()  # of each source: how many rows of a file are an entry; None: all

    def check_owner(self) -> None:
        """Refuse to write if another process has taken over the checkpoint."""
        try:
            epoch = json.loads(Path(self.path).with_name("owner.json").read_text())["epoch"]
        except (OSError, ValueError, TypeError, KeyError):
            return
        if self.epoch is not None and isinstance(epoch, int) and epoch > self.epoch:
            raise UsageError(
                f"the checkpoint of {self.path} was taken over by another run (epoch {epoch}): this run (epoch "
                f"{self.epoch}) reads nothing more"
            )


class Found(NamedTuple):
    """A file in the log, with its bytes when it was found and when it had changed last (nanoseconds since 1970).

    `before`: the bytes that an earlier entry has, if this one tells of a change.
    """

    source: int
    path: str
    size: int = -1  # not known, in logs of old
    before: int = -1
    changed: int = -1  # likewise
    part: Sequence[int] = ()  # of the file, if it is cut: see `FilePart`

    @property
    def grown(self) -> tuple[int, int] | None:
        """For a file that changed after it was found: its bytes then and now."""
        return None if self.before < 0 else (self.before, self.size)


def change_of(grown: tuple[int, int]) -> str:
    """Return how a file changed, given its old and new number of bytes, and how the change is handled."""
    then, now = grown
    how = f"had {then:,} bytes when it was found and has {now:,} now" if then != now else "was written again"
    return f"{how}: what was added or changed since it was read takes no part"


class Changes:
    """Files that changed after they were found, as recorded in the log from now on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = log.stat().st_size if log.exists() else 0

    def new(self) -> list[Found]:
        """Those that the log has told of since this was asked last."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # another process may be writing
        self._at += len(whole)
        entries = (Found(*json.loads(line)) for line in whole.decode().splitlines())
        return [entry for entry in entries if entry.grown is not None]


def found_files(log: FileLog, *, look: bool, read: int | None = None) -> list[Found]:
    """The files so far; `look` first for new and changed ones, which are appended to the log.

    The log is what makes a restart read the same files in the same order. New files go in by age, then name. Of a file
    that is cut, a part goes in when the part before it is among the `read` entries, so that files of other sources do
    not wait for all of it; None: all parts go in, those of different sources in turn.
    """
    place = Path(log.path)
    known = _entries(place, mend=look)
    if not look:
        return known
    following = list(_following(log, known, read))
    latest = {(found.source, found.path): found for found in known}
    fresh = []
    for number, folder in enumerate(log.folders):
        for path, status in settled(listed(folder.path, log.formats), log.settle):
            before = latest.get((number, path))
            if before is None or _has_changed(before, status):
                was = -1 if before is None else before.size
                fresh.append((status.st_mtime_ns, Found(number, path, status.st_size, was, status.st_mtime_ns)))
    added = following + [_begun(log, found) for _, found in sorted(fresh)]
    more = added if read is None else []
    while more:
        more = list(_following(log, more, None))
        added += more
    if added:
        log.check_owner()
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in added)
            file.flush()
            os.fsync(file.fileno())
    return known + added


def _begun(log: FileLog, found: Found) -> Found:
    """The entry of a new file: its first part, if it is cut."""
    rows = log.part_rows[found.source] if log.part_rows else None
    if rows is None or found.grown is not None:
        return found
    part = next_part(found.path, log.formats[ending_of(found.path)], found.size, rows)
    return found if part is None or part.last < 0 else found._replace(part=part)


def _following(log: FileLog, known: Sequence[Found], read: int | None) -> Iterator[Found]:
    """The next part of each file whose last part in the log has been read."""
    last = {(found.source, found.path): (at, found) for at, found in enumerate(known) if found.part}
    for at, found in last.values():
        if read is not None and at >= read:
            continue
        part = FilePart(*found.part)
        rows = (log.part_rows[found.source] if log.part_rows else None) or part.last - part.first
        after = next_part(found.path, log.formats[ending_of(found.path)], found.size, rows, part)
        if after is not None:
            yield found._replace(part=after)


def _has_changed(before: Found, now: os.stat_result) -> bool:
    if before.size < 0:
        return False
    return before.size != now.st_size or -1 < before.changed != now.st_mtime_ns


def _entries(log: Path, *, mend: bool) -> list[Found]:
    """Return the entries of the log; the last one is incomplete if the process was killed while writing it.

    `mend`: remove an incomplete one. Only the writer of the log may do that: for readers it may still be being written.
    """
    if not log.exists():
        return []
    try:
        data = log.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        entries = [Found(*json.loads(line)) for line in whole.decode().splitlines()]
        if not all(isinstance(entry.source, int) and isinstance(entry.path, str) for entry in entries):
            raise TypeError
        if mend and whole != data:
            os.truncate(log, len(whole))
    except (ValueError, TypeError):
        raise UsageError(
            f"the checkpoint is damaged: {log} does not say any more which files were read; use another folder, "
            "and another sink"
        ) from None
    return entries


def listed(path: str, formats: Mapping[str, str]) -> list[tuple[str, os.stat_result]]:
    """List the files of a known format; names that begin with `.` or `_` are incomplete."""
    found = []
    place = Path(path)
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        hidden = any(part[0] in "._" for part in file.relative_to(place).parts)
        if hidden or ending_of(str(file)) not in formats:
            continue
        try:
            if file.is_file():
                found.append((str(file), file.stat()))
        except OSError:  # it went away while we looked
            continue
    return found


def settled(files: Sequence[tuple[str, os.stat_result]], seconds: float) -> list[tuple[str, os.stat_result]]:
    """Those that have not changed for so long. Here clocks are read.

    A file of the future was written before the clock was set back: it is watched for so long by a clock that never is.
    """
    if not seconds:
        return list(files)
    now, watched = time.time_ns(), time.monotonic()
    found = []
    for path, status in files:
        if status.st_mtime_ns <= now:
            _of_the_future.pop(path, None)
            is_settled = status.st_mtime_ns <= now - int(seconds * 1e9)
        else:
            looks = status.st_mtime_ns, status.st_size
            before, since = _of_the_future.get(path, (None, watched))
            if before != looks:
                since = watched
            _of_the_future[path] = looks, since
            is_settled = watched - since >= seconds
        if is_settled:
            found.append((path, status))
    return found


def ending_of(path: str) -> str:
    """How a file's name ends, without regard to case and compression."""
    return Path(path.lower().removesuffix(".gz")).suffix
