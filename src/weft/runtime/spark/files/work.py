"""What a task of a stream of files does: read a file, give its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from weft.errors import InputError
from weft.runtime.data.events import Rejected
from weft.runtime.reading.order import EventSource
from weft.runtime.reading.pacing import Pace
from weft.runtime.spark.files.batches import FilePlace, Reader
from weft.runtime.spark.files.log import change_of
from weft.runtime.spark.files.parts import WHOLE, FilePart
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import pack_chunk, pack_rejects
from weft.runtime.spark.packing.runs import CLOCK, END_OF_STREAM, SILENCE, Place
from weft.runtime.spark.packing.streams import rows_without_events

AT_ONCE = Pace(None)
CHANGED, GONE = "changed: ", "gone: "  # how the reasons begin


@dataclass(frozen=True)
class FileWork:
    """The job, and how files of each format are read."""

    job: Job
    readers: Mapping[str, Reader]

    def runs(
        self,
        path: str,
        form: str,
        source: int,
        number: int,
        defaults: Mapping[str, str],
        latest: int | None = None,
        pace: Pace = AT_ONCE,
        part: FilePart = WHOLE,
    ) -> Iterator[pa.RecordBatch]:
        """The runs of a file or its part, the `number`th of all; `defaults` are what its events do not say themselves.

        Events that end after `latest` are rejected. They are read at a pace.
        """
        job = self.job
        reading = replace(job.reading, until=latest)
        if not Path(path).exists():
            yield self._gone(path, source, number)
            return
        place = FilePlace(path, form, dict(defaults), latest, part)
        packed_place = place.packed()
        at = 0
        try:
            for chunk in place.chunks(job.reading, self.readers):
                events = EventSource(partial(list, (chunk,)), reading)
                packed = pack_chunk(events, Place(source, number, at), job, packed_place)
                pace.keep(events.row)
                yield packed
                at += 1
        except (InputError, OSError, EOFError, UnicodeError, pa.ArrowException) as problem:
            # The stream goes on without the rest of a file that is not what it should be.
            rejects = pack_rejects([Rejected(0, str(problem), None, path, 0)])
            yield self._without_events(Place(source, number, at), rejects)

    def _gone(self, path: str, source: int, number: int) -> pa.RecordBatch:
        """Return rows that report a file that was found and is missing now."""
        if not Path(path).parent.is_dir():  # a disk that is not mounted, most likely: nothing is to be lost for that
            raise InputError(f"the folder of {path} is gone: the run resumes when it is available again")
        reason = f"{GONE}the file was found and is not there any more: a file must stay until its events are matched"
        return self._without_events(Place(source, number, 0), pack_rejects([Rejected(0, reason, None, path, 0)]))

    def changed(self, path: str, source: int, number: int, grown: tuple[int, int]) -> pa.RecordBatch:
        """Return rows that report a file that was changed after it was found."""
        reason = (
            f"{CHANGED}the file {change_of(grown)}; write files elsewhere, and move them here when they are complete, "
            "or let them settle (--settle SECONDS)"
        )
        rejects = pack_rejects([Rejected(0, reason, None, path, 0)])
        return self._without_events(Place(source, number, 0), rejects)

    def end(self, number: int) -> pa.RecordBatch:
        """The rows that tell every lane that no event comes any more."""
        return self._without_events(Place(0, number, END_OF_STREAM), None)

    def silence(self, source: int, number: int) -> pa.RecordBatch:
        """The rows that tell every lane that a source is idle."""
        return self._without_events(Place(source, number, SILENCE), None)

    def clock(self, number: int, now: int) -> pa.RecordBatch:
        """The rows that tell every lane what time it is, in nanoseconds since 1970."""
        return self._without_events(Place(0, number, CLOCK), None, now)

    def _without_events(self, place: Place, rejects: bytes | None, first: int | None = None) -> pa.RecordBatch:
        return rows_without_events(self.job.lanes, place, first, rejects)
