"""Late events as rejects: each is reported once, by one lane, with the attributes that were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.errors import InputError
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.order import EventSource
from weft.runtime.reading.shown import as_dicts
from weft.runtime.spark.files.batches import FilePlace
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.chunks import event_text, reject_rows
from weft.runtime.spark.packing.runs import RunRow
from weft.runtime.spark.packing.streams import Summary
from weft.runtime.spark.watermark import END_OF_TIME

if TYPE_CHECKING:
    from weft.runtime.spark.files.batches import Reader

Reject = tuple[str | None, int | None, int | None, str | None, str]


def reads_again(source: int, job: Job) -> bool:
    """Whether late events of a source are read again from its files, by the lane that is told which file it is."""
    return job.readers is not None and source not in job.topics


def late_rows(row: RunRow, own: EventBatch, summary: Summary, watermark: int, job: Job) -> pa.RecordBatch | None:
    """Rejects for the events of a row that it falls to its lane to report; `own`: those of the lane that are late."""
    count = summary.late(watermark)
    if not reads_again(row.source, job):
        rows = list(_sent(row, own, summary, watermark, job))
    elif not count:
        return None
    else:
        place = FilePlace.unpacked(bytes(summary.events))
        try:
            rows = list(_looked_up(place, row.chunk, watermark, job, job.readers or {}))
        except (InputError, OSError, EOFError, UnicodeError, pa.ArrowException):
            rows = []
        if len(rows) != count:
            gone = f"{_reason(None, watermark)}; {count:,} events of a file that is gone or has changed since"
            rows = [(f"{place.path}:0", None, None, None, gone)]
    return reject_rows(rows) if rows else None


def _sent(row: RunRow, own: EventBatch, summary: Summary, watermark: int, job: Job) -> Iterator[Reject]:
    """Late events as far as lanes know them."""
    batches = []
    named = job.topics.get(row.source)
    place = None if named is None else f"{named}/{row.part}"
    if len(own) and job.reports_late(job.lane_named(row.lane)):
        batches.append(own)
    if summary.late(watermark):
        batches.append(summary.late_events(watermark))
    for late in batches:
        for at, event in enumerate(as_dicts(late, job.reading)):
            start, end = int(late.starts[at]), int(late.ends[at])
            yield place, start, end, event_text(event), _reason(end, watermark)


def _looked_up(
    place: FilePlace, number: int, watermark: int, job: Job, readers: Mapping[str, Reader]
) -> Iterator[Reject]:
    """Late events as they are in their file, with all attributes, and their lines."""
    reading = replace(job.reading, until=place.until)
    for chunk in islice(place.chunks(job.reading, readers), number, number + 1):
        segment = EventSource(partial(list, (chunk,)), reading).read(chunk)
        for at in np.flatnonzero(segment.ends < watermark):
            row = int(at if segment.keep is None else segment.keep[at])
            start, end = int(segment.starts[at]), int(segment.ends[at])
            file, line = chunk.place(row) if chunk.place else (place.path, 0)
            yield f"{file}:{line}", start, end, event_text(chunk.row(row)), _reason(end, watermark)


def _reason(end: int | None, watermark: int) -> str:
    if watermark == END_OF_TIME:
        return "late: the stream had been declared complete"
    if end is None:
        return f"late: the watermark was at {watermark} already"
    return f"late: it ended at {end}, and the watermark was at {watermark} already"
