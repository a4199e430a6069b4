"""Growing folders of files as one streaming source that gives runs: files are read by Arrow, not by the JVM."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from weft.runtime.spark.schema import RUN_DDL

FORMAT = "weft-files"
Offset = dict[str, Any]


@dataclass(frozen=True)
class Folder:
    """A source: a folder of files of events, or a single file; `defaults` are what events do not say themselves."""

    name: str
    path: str
    defaults: Mapping[str, str]


@dataclass(frozen=True)
class FileStream:
    """All that the source must know."""

    folders: tuple[Folder, ...]
    formats: Mapping[str, str]  # by ending
    work: bytes  # a pickled FileWork: only tasks need it, and what it loads
    log: str  # the file in which the files found are kept, in their order
    files_per_trigger: int | None = None
    ending: bool = False  # declare the stream complete when all files have been read
    idle_after: float | None = None  # seconds without a new file after which a source's time moves on by as much
    tick: int = 10**6  # nanoseconds

    def packed(self) -> str:
        """As the text of an option."""
        return base64.b64encode(cloudpickle.dumps(self)).decode()


@dataclass
class Part(InputPartition):  # type: ignore[misc] # pyspark is not checked
    """One file to read, or (no path) ticks that a source sent none, or (none) the end of the stream.

    With `grown`, a file that had other bytes when it was found: so many then, and so many now.
    """

    number: int
    source: int = 0
    path: str | None = None
    ticks: int = 0
    grown: tuple[int, int] | None = None


class WeftFiles(DataSource):  # type: ignore[misc] # pyspark is not checked
    """The data source; its one option holds a FileStream."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return FORMAT

    def schema(self) -> str:
        """Rows are runs."""
        return RUN_DDL

    def streamReader(self, schema: Any) -> FolderReader:
        """The reader of a stream."""
        return FolderReader(cloudpickle.loads(base64.b64decode(self.options["stream"])))


class Silence:
    """The time since something was heard, given out in nanoseconds once it is long enough. Here a clock is read."""

    def __init__(self, after: float | None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._after = after
        self._clock = clock
        self._since = clock()

    def passed(self, *, heard: bool) -> int:
        """How much longer it has been silent than was known."""
        now = self._clock()
        silent = 0 if heard else now - self._since
        if not heard and (self._after is None or silent < self._after * 1e9):
            return 0
        self._since = now
        return silent


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc] # pyspark is not checked
    """Offsets count the files found so far, in the order of the log, which outlives the process.

    They also say how long each source had none, so that a trigger that is tried again moves time on by the same.
    """

    def __init__(self, stream: FileStream) -> None:
        self._stream = stream
        self._target: int | None = None
        self._silences = [Silence(stream.idle_after) for _ in stream.folders]

    def initialOffset(self) -> Offset:
        """Before the first file."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started the stream
        return {"files": 0, "ended": 0, "idle": [0] * len(self._stream.folders)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As many files as there are, unless a number is given."""
        limit = self._stream.files_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what is there now."""
        self._target = len(found_files(self._stream, look=True))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The files to read next."""
        known = found_files(self._stream, look=self._target is None)
        total = len(known) if self._target is None else self._target
        wanted = limit.max_files if isinstance(limit, ReadMaxFiles) else total
        files = max(start["files"], min(total, start["files"] + wanted))
        complete = self._stream.ending and start["files"] == total
        heard = {found.source for found in known[start["files"] :]}
        silences = enumerate(zip(start["idle"], self._silences, strict=True))
        idle = [before + silence.passed(heard=source in heard) for source, (before, silence) in silences]
        return {"files": files, "ended": 1 if complete else start["ended"], "idle": idle}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        """One for each file, for the end, and for silence."""
        files = found_files(self._stream, look=False)[start["files"] : end["files"]]
        parts = [Part(start["files"] + at, file.source, file.path, 0, file.grown) for at, file in enumerate(files)]
        if end["ended"] > start["ended"]:
            parts.append(Part(end["files"]))
        tick = self._stream.tick
        ticks = [after // tick - before // tick for before, after in zip(start["idle"], end["idle"], strict=True)]
        return [*parts, *(Part(end["files"], source, None, count) for source, count in enumerate(ticks) if count)]

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:
        """In a task: the runs of one file."""
        work = cloudpickle.loads(self._stream.work)
        if partition.path is None:
            number, ticks = partition.number, partition.ticks
            yield work.silence(partition.source, number, ticks) if ticks else work.end(number)
            return
        if partition.grown is not None:
            yield work.changed(partition.path, partition.source, partition.number, partition.grown)
            return
        form = self._stream.formats[ending_of(partition.path)]
        defaults = self._stream.folders[partition.source].defaults
        yield from work.runs(partition.path, form, partition.source, partition.number, defaults)


class Found(NamedTuple):
    """A file in the log, with its bytes when it was found; `before`: those that an earlier entry has."""

    source: int
    path: str
    size: int = -1  # not known, in logs of old
    before: int = -1

    @property
    def grown(self) -> tuple[int, int] | None:
        """For a file that changed after it was found: its bytes then and now."""
        return None if self.before < 0 else (self.before, self.size)


def found_files(stream: FileStream, *, look: bool) -> list[Found]:
    """The files so far; `look` first for new and changed ones, which are appended to the log.

    The log is what makes a restart read the same files in the same order. New files go in by age, then name.
    """
    log = Path(stream.log)
    known = [Found(*entry) for entry in map(json.loads, _lines(log))]
    if not look:
        return known
    sizes = {(found.source, found.path): found.size for found in known}
    fresh = [
        (status.st_mtime_ns, Found(number, path, status.st_size, sizes.get((number, path), -1)))
        for number, folder in enumerate(stream.folders)
        for path, status in listed(folder.path, stream.formats)
        if sizes.get((number, path)) is None or -1 < sizes[number, path] != status.st_size
    ]
    added = [found for _, found in sorted(fresh)]
    if added:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in added)
            file.flush()
            os.fsync(file.fileno())
    return known + added


def _lines(log: Path) -> list[str]:
    """The whole lines of the log: half of one is left if the process was killed while writing it."""
    if not log.exists():
        return []
    text = log.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        with log.open("r+", encoding="utf-8") as file:
            file.truncate(len(whole.encode()))
    return whole.splitlines()


def listed(path: str, formats: Mapping[str, str]) -> list[tuple[str, os.stat_result]]:
    """Files of a known format; what begins with `.` or `_` is not finished yet."""
    found = []
    place = Path(path)
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        hidden = any(part[0] in "._" for part in file.relative_to(place).parts)
        if not hidden and ending_of(str(file)) in formats and file.is_file():
            found.append((str(file), file.stat()))
    return found


def ending_of(path: str) -> str:
    """How a file's name ends, without regard to case and compression."""
    return Path(path.lower().removesuffix(".gz")).suffix
