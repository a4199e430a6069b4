"""What a task of a stream of files does: read a file, give its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from weft.errors import InputError
from weft.runtime.events import Rejected
from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.order import EventSource
from weft.runtime.spark.files import Reader, pieces_of, read
from weft.runtime.spark.job import Job
from weft.runtime.spark.lanes.packing import Place, pack_chunk, pack_rejects, run_rows
from weft.runtime.spark.lanes.state import END_OF_STREAM, SILENCE
from weft.runtime.spark.lanes.times import encode_times


@dataclass(frozen=True)
class FileWork:
    """The job, and how files of each format are read."""

    job: Job
    readers: Mapping[str, Reader]

    def runs(
        self, path: str, form: str, source: int, number: int, defaults: Mapping[str, str]
    ) -> Iterator[pa.RecordBatch]:
        """The runs of a file, which is the `number`th of all; `defaults` are what its events do not say themselves."""
        job = self.job
        if not Path(path).exists():
            raise InputError(f"{path} is gone: a file must stay until its events have been matched")
        at = 0
        try:
            for chunk in self._chunks(path, form, defaults):
                events = EventSource(partial(list, (chunk,)), job.reading)
                yield pack_chunk(events, Place(source, number, at), job)
                at += 1
        except (InputError, OSError, EOFError, UnicodeError, pa.ArrowException) as problem:
            # The stream goes on without the rest of a file that is not what it should be.
            rejects = pack_rejects([Rejected(0, str(problem), None, path, 0)])
            yield self._without_events(Place(source, number, at), rejects)

    def changed(self, path: str, source: int, number: int, grown: tuple[int, int]) -> pa.RecordBatch:
        """The rows that tell of a file that was changed after it was found."""
        then, now = grown
        reason = (
            f"the file had {then:,} bytes when it was found and has {now:,} now: what was added or changed since it "
            "was read takes no part; write files elsewhere, and move them here when they are complete"
        )
        rejects = pack_rejects([Rejected(0, reason, None, path, 0)])
        return self._without_events(Place(source, number, 0), rejects)

    def _chunks(self, path: str, form: str, defaults: Mapping[str, str]) -> Iterator[Chunk]:
        for piece in pieces_of(path, form, self.job.reading, defaults):
            yield from read(piece, self.readers, self.job)

    def end(self, number: int) -> pa.RecordBatch:
        """The rows that tell every lane that no event comes any more."""
        return self._without_events(Place(0, number, END_OF_STREAM), None)

    def silence(self, source: int, number: int, ticks: int) -> pa.RecordBatch:
        """The rows that tell every lane how long a source has sent nothing."""
        return self._without_events(Place(source, number, SILENCE), None, ticks)

    def _without_events(self, place: Place, rejects: bytes | None, first: int | None = None) -> pa.RecordBatch:
        none = np.empty(0, np.int64)
        lanes = self.job.lanes
        return run_rows(lanes, place, first, encode_times(none, none), [b""] * len(lanes), rejects)
