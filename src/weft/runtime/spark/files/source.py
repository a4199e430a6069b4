"""Growing folders of files as one streaming source that gives runs: files are read by Arrow, not by the JVM."""

from __future__ import annotations

import base64
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from weft.errors import UsageError
from weft.runtime.reading.pacing import Pace
from weft.runtime.spark.compat import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    ReadAllAvailable,
    SupportsTriggerAvailableNow,
)
from weft.runtime.spark.files.log import FileLog, Found, ending_of, found_files
from weft.runtime.spark.files.parts import WHOLE, FilePart
from weft.runtime.spark.kernels import settle_worker
from weft.runtime.spark.schema import RUN_DDL
from weft.runtime.spark.unpacking import unpacked

FORMAT = "weft-files"
SMALL = 1 << 22  # bytes that are worth a task
Offset = dict[str, Any]


@dataclass(frozen=True)
class FileStream:
    """All that the source must know."""

    log: FileLog
    work: bytes  # a pickled FileWork: only tasks need it, and what it loads
    files_per_trigger: int | None = None
    bytes_per_trigger: int | None = None
    tasks: int = 1  # that read at a time: small files share one
    ending: bool = False  # declare the stream complete when all files have been read
    idle_after: tuple[float | None, ...] = ()  # seconds without a new file after which each source is idle
    idle_learns: bool = False  # a source that has had longer pauses between files is idle after such a one
    tick: int = 10**6  # nanoseconds
    ahead: float | None = None  # seconds by which events may be ahead of the clock
    rate: float | None = None  # events that are read in a second, at most; then a trigger is one file
    rates: tuple[float | None, ...] = ()  # of each source, where they have their own
    clock: bool = False  # tell lanes the time with every trigger, for sources that are no folders
    bounded: bool = False  # read what is there when the query starts, where Spark does not say so itself
    begun: Offset | None = None  # the last offset in the checkpoint, where Spark does not say it

    def rate_of(self, source: int) -> float | None:
        """How many events of a source are read in a second at most, if that is said of it alone."""
        return self.rates[source] if self.rates else None

    def packed(self) -> str:
        """As the text of an option."""
        return base64.b64encode(cloudpickle.dumps(self)).decode()


@dataclass
class Part(InputPartition):  # type: ignore[misc] # pyspark is not checked
    """A file to read, or a part of it; without a path, a report about time.

    Such a report says that a source is idle, what the clock shows, or that the stream ended. With `grown`, the file
    changed since it was found: its old and new number of bytes. `now`: the clock when it was decided to read it
    (nanoseconds since 1970; 0: unknown).
    """

    number: int
    source: int = 0
    path: str | None = None
    is_silent: bool = False
    grown: tuple[int, int] | None = None
    size: int = 0
    now: int = 0
    part: FilePart = WHOLE


@dataclass
class Bundle(InputPartition):  # type: ignore[misc] # pyspark is not checked
    """The parts that one task reads, in sequence."""

    parts: list[Part]
    rate: float | None = None  # events in a second: its share of what all tasks may read


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
        """Return the reader of a stream, which Spark runs in a separate process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started the stream
        return FolderReader(cloudpickle.loads(base64.b64decode(self.options["stream"])))


class Silence:
    """Says once of each silence that it is long enough. Here a clock is read.

    One that `learns` takes the longest pause so far for usual.
    """

    def __init__(
        self, after: float | None, clock: Callable[[], int] = time.monotonic_ns, *, learns: bool = False
    ) -> None:
        self._after = None if after is None else int(after * 1e9)
        self._clock, self._learns = clock, learns
        self._since: int | None = clock()  # None: it was said
        self._heard: int | None = None  # when, last

    def begins(self, *, heard: bool) -> bool:
        """Whether it has been silent for long enough, and this was not said before."""
        now = self._clock()
        if heard:
            if self._learns and self._after is not None and self._heard is not None:
                self._after = max(self._after, now - self._heard)
            self._since = self._heard = now
        if heard or self._after is None or self._since is None or now - self._since < self._after:
            return False
        self._since = None
        return True


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc] # pyspark is not checked
    """Offsets count the files found so far, in the order of the log, which outlives the process.

    They also count how often each source became idle, so that a retried trigger gets the same.
    """

    def __init__(self, stream: FileStream) -> None:
        self._stream = stream
        self._target: int | None = None
        self._latest = stream.begun
        after = stream.idle_after or (None,) * len(stream.log.folders)
        self._silences = [Silence(own, learns=stream.idle_learns) for own in after]

    def initialOffset(self) -> Offset:
        """Before the first file."""
        return {"files": 0, "ended": 0, "idle": [0] * len(self._stream.log.folders), "now": 0}

    def getDefaultReadLimit(self) -> Any:
        """As many files as there are: `latestOffset` has its own limits."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what is there now, when it has settled."""
        if self._stream.log.settle:
            time.sleep(self._stream.log.settle)
        self._target = len(found_files(self._stream.log, look=True))

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:
        """The files to read next; before Spark 4.2 a reader is not told after which."""
        if start is None:
            if self._target is None and self._stream.bounded:
                self.prepareForTriggerAvailableNow()
            self._latest = self._offset_after(self._latest or self.initialOffset())
            return self._latest
        return self._offset_after(start)

    def _offset_after(self, start: Offset) -> Offset:
        stream = self._stream
        known = found_files(stream.log, look=self._target is None, read=start["files"])
        total = len(known) if self._target is None else self._target
        files = start["files"] + self._wanted(known[start["files"] : total])
        complete = stream.ending and start["files"] >= total
        heard = {found.source for found in known[start["files"] :]}
        silences = enumerate(zip(start["idle"], self._silences, strict=True))
        idle = [before + silence.begins(heard=source in heard) for source, (before, silence) in silences]
        # The clock is part of what is read: a trigger that is tried again judges events by the same.
        # A clock that was set back would have events of today look as if they were ahead.
        now = start.get("now", 0)
        if files > start["files"] or stream.clock:
            now = max(now, time.time_ns())
        return {"files": files, "ended": 1 if complete else start["ended"], "idle": idle, "now": now}

    def _wanted(self, files: Sequence[Found]) -> int:
        """How many of these files one trigger takes: one at least."""
        most = 1 if self._stream.rate else self._stream.files_per_trigger or len(files)
        most = min(most, _before_second(files, self._stream.rates))
        room = self._stream.bytes_per_trigger
        size = 0
        for count, file in enumerate(files[:most]):
            size += max(0, file.size)
            if count and room is not None and size > room:
                return count
        return min(most, len(files))

    def partitions(self, start: Offset, end: Offset) -> Sequence[Bundle]:
        """Files, the end, and silence; small files that follow each other are read by one task."""
        files = found_files(self._stream.log, look=False)[start["files"] : end["files"]]
        if len(files) < end["files"] - start["files"]:
            raise UsageError(
                f"the checkpoint is damaged: {self._stream.log.path} has fewer files than were read; use another "
                "folder, and another sink"
            )
        first, now = start["files"], end.get("now", 0)
        parts = [
            Part(first + at, file.source, file.path, 0, file.grown, max(0, file.size), now, FilePart(*file.part))
            for at, file in enumerate(files)
        ]
        if end["ended"] > start["ended"]:
            parts.append(Part(end["files"]))
        silences = enumerate(zip(start["idle"], end["idle"], strict=True))
        parts += [Part(end["files"], source, is_silent=True) for source, (before, after) in silences if after > before]
        if self._stream.clock and now > start.get("now", 0):
            parts.append(Part(end["files"], now=now))
        paced = [part for part in parts if part.path is not None and self._stream.rate_of(part.source) is not None]
        found, rate = bundles([part for part in parts if part not in paced], self._stream.tasks), self._stream.rate
        apart = [Bundle([part], self._stream.rate_of(part.source)) for part in paced]
        return [*(found if rate is None else [Bundle(own.parts, rate / len(found)) for own in found]), *apart]

    def read(self, partition: Bundle) -> Iterator[pa.RecordBatch]:
        """In a task: the runs of its files."""
        settle_worker()
        work = unpacked(self._stream.work)
        pace = Pace(partition.rate)
        for part in partition.parts:
            yield from self._runs(work, part, pace)

    def _runs(self, work: Any, part: Part, pace: Pace) -> Iterator[pa.RecordBatch]:
        if part.path is None and part.now:
            yield work.clock(part.number, part.now)
        elif part.path is None:
            yield work.silence(part.source, part.number) if part.is_silent else work.end(part.number)
        elif part.grown is not None:
            yield work.changed(part.path, part.source, part.number, part.grown)
        else:
            log, ahead = self._stream.log, self._stream.ahead
            form, defaults = log.formats[ending_of(part.path)], log.folders[part.source].defaults
            known = ahead is not None and part.now
            latest = (part.now + int((ahead or 0) * 1e9)) // self._stream.tick if known else None
            yield from work.runs(part.path, form, part.source, part.number, defaults, latest, pace, part.part)


def _before_second(files: Sequence[Found], rates: Sequence[float | None]) -> int:
    """Return how many files precede the second file of any source that has a separate rate."""
    seen: set[int] = set()
    for count, file in enumerate(files):
        if rates and rates[file.source] is not None:
            if file.source in seen:
                return count
            seen.add(file.source)
    return len(files)


def bundles(parts: Sequence[Part], tasks: int) -> list[Bundle]:
    """Parts shared out to about that many tasks in their order, neighbours together."""
    total = sum(part.size for part in parts)
    share = max(SMALL, -(-total // max(1, tasks)))
    found: list[Bundle] = []
    room = -1
    for part in parts:
        if part.size > room:
            found.append(Bundle([]))
            room = share
        found[-1].parts.append(part)
        room -= part.size
    return found
