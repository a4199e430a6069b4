"""Late events as rejects: each is reported once, by one lane, with what was read of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.reading.shown import as_dicts
from weft.runtime.spark.job import Job
from weft.runtime.spark.lanes.packing import event_text, reject_rows
from weft.runtime.spark.lanes.runs import Run, RunRow
from weft.runtime.spark.lanes.wire import unpack_events
from weft.runtime.spark.watermark import END_OF_TIME


def late_rows(row: RunRow, run: Run, count: int, watermark: int, job: Job) -> pa.RecordBatch | None:
    """Rejects for those of the first `count` events of a run that it falls to this row's lane to report."""
    batches = []
    if job.reports_late(job.lane_named(row.lane)):
        batches.append(run.events)
    if row.others is not None:
        batches.append(unpack_events(row.others, run.ends, run.starts))
    rows = []
    for events in batches:
        late = blocks.slice(events, 0, int(np.searchsorted(events.positions, count)))
        for at, event in enumerate(as_dicts(late, job.reading)):
            start, end = int(late.starts[at]), int(late.ends[at])
            rows.append((None, start, end, event_text(event), _reason(end, watermark)))
    return reject_rows(rows) if rows else None


def _reason(end: int, watermark: int) -> str:
    if watermark == END_OF_TIME:
        return "late: the stream had been declared complete"
    return f"late: it ended at {end}, and the watermark was at {watermark} already"
