"""What one lane does: runs in, put into stream order, matched; matches and rejects out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch, to_record_batches
from weft.runtime.spark.job import Job
from weft.runtime.spark.packing import record_batch_of
from weft.runtime.spark.runs import run_rows_of
from weft.runtime.spark.schema import rejects_as_output, with_reason
from weft.runtime.spark.sequencer import Sequencer

PUSHED = 65536  # events given to the kernels at a time


def match_runs(batches: Iterator[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Match one lane's runs, which come ordered by their first event."""
    sequencer = Sequencer()
    matcher: Matcher | None = None
    for row in chain.from_iterable(map(run_rows_of, batches)):
        if matcher is None:
            matcher = Matcher(job.plan, job.lane_named(row.lane).queries)
        if row.rejects is not None:
            yield rejects_as_output(record_batch_of(row.rejects))
        if row.first is None:
            continue
        yield from matched(sequencer.release(row.first), matcher, job)
        sequencer.add(row.run())
    if matcher is not None:
        yield from matched(sequencer.release(None), matcher, job)
        yield from match_rows(matcher.finish(), job)


def matched(events: EventBatch, matcher: Matcher, job: Job) -> Iterator[pa.RecordBatch]:
    """Push events and give the matches as rows of the output."""
    if job.empty:
        return
    for first in range(0, len(events), PUSHED):
        yield from match_rows(matcher.push(blocks.slice(events, first, PUSHED)), job)


def match_rows(matches: list[MatchBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Matches as rows of the output."""
    for rows in to_record_batches(matches, job.query_names):
        yield with_reason(rows)
