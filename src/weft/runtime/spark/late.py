"""Late events as rejects: each is reported once, by one lane, with what was read of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.events import STREAM, EventBatch
from weft.runtime.order import Reading
from weft.runtime.spark.job import Job
from weft.runtime.spark.packing import event_text
from weft.runtime.spark.runs import Run, RunRow
from weft.runtime.spark.schema import REJECT_SCHEMA
from weft.runtime.spark.wire import unpack_events
from weft.runtime.times import END, START


def late_rows(row: RunRow, run: Run, count: int, watermark: int, job: Job) -> pa.RecordBatch | None:
    """Rejects for those of the first `count` events of a run that it falls to this row's lane to report."""
    batches = []
    if job.reports_late(job.lane_named(row.lane)):
        batches.append(run.events)
    if row.others is not None:
        batches.append(unpack_events(row.others, run.ends, run.starts))
    rows = [
        (int(events.starts[at]), int(events.ends[at]), event_text(event), _reason(int(events.ends[at]), watermark))
        for events in batches
        for at, event in _events(blocks.slice(events, 0, int(np.searchsorted(events.positions, count))), job.reading)
    ]
    if not rows:
        return None
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, REJECT_SCHEMA, strict=True)],
        schema=REJECT_SCHEMA,
    )


def _reason(end: int, watermark: int) -> str:
    return f"late: it ended at {end}, and the watermark was at {watermark} already"


def _events(events: EventBatch, reading: Reading) -> Iterator[tuple[int, dict[str, object]]]:
    for at in range(len(events)):
        start, end = int(events.starts[at]), int(events.ends[at])
        event: dict[str, object] = {reading.type: events.types[at].as_py()}
        event |= {reading.time: end} if start == end else {START: start, END: end}
        if events.streams is not None and events.streams[at].is_valid:
            event[STREAM] = events.streams[at].as_py()
        values = {name: column.value(at) for name, column in events.columns.items() if name not in event}
        yield at, event | {name: value for name, value in values.items() if value is not None}
