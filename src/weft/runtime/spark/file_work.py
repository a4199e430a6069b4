"""What a task of a stream of files does: read a file, give its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from weft.runtime.order import EventSource
from weft.runtime.spark.files import Reader, pieces_of, read
from weft.runtime.spark.job import Job
from weft.runtime.spark.lane_state import END_OF_STREAM
from weft.runtime.spark.packing import Place, pack_chunk, run_rows
from weft.runtime.spark.times import encode_times


@dataclass(frozen=True)
class FileWork:
    """The job, and how files of each format are read."""

    job: Job
    readers: Mapping[str, Reader]

    def runs(self, path: str, form: str, source: int, number: int, stream: str | None) -> Iterator[pa.RecordBatch]:
        """The runs of a file, which is the `number`th of all."""
        job = self.job
        chunks = (chunk for piece in pieces_of(path, form, job.reading) for chunk in read(piece, self.readers, job))
        for at, chunk in enumerate(chunks):
            events = EventSource(partial(list, (chunk,)), job.reading)
            yield pack_chunk(events, Place(source, number, at), job, stream)

    def end(self, number: int) -> pa.RecordBatch:
        """The rows that tell every lane that no event comes any more."""
        none = np.empty(0, np.int64)
        lanes = self.job.lanes
        nothing = [b""] * len(lanes)
        return run_rows(lanes, Place(0, number, END_OF_STREAM), None, encode_times(none, none), nothing, None)
