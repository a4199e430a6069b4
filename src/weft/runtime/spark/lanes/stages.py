"""Lanes in stages: what tasks of each stage do, and how occurrences get to the lanes of later ones.

Between stages there are rows of SENT_SCHEMA: occurrences for a lane, or results, as bytes. Results are passed on.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.stage_matcher import StageMatcher
from weft.runtime.identity.events import identities_in, known_chunk
from weft.runtime.operators.joins.channels import OccurrenceBatch
from weft.runtime.operators.joins.operators import ENDLESS
from weft.runtime.results.results import Results
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.worker import lanes_in
from weft.runtime.spark.schema import SENT_SCHEMA, as_output, counters_as_output, counts_as_output

NAMES = SENT_SCHEMA.names
Readers = Mapping[int, Sequence[int]]  # the places of the lanes that read a channel


def first_stage(batches: Iterator[pa.RecordBatch], job: Job, counting: bool) -> Iterator[pa.RecordBatch]:
    """In a task: what the lanes of the first stage find, and what they send."""
    readers = _readers(job)
    for lane in lanes_in(batches, job):
        matcher, totals = lane.matcher, Counter[str]()
        assert isinstance(matcher, StageMatcher)
        if job.shape is not None:
            matcher.rows_at = lane.results.rows_at
        for events in lane.events():
            if counting:
                totals.update(matcher.count(events))
            else:
                yield from _as_results(lane.results.push(events), lane.place, job)
            yield from _as_sent(matcher, readers)
        yield from _finished(matcher, lane.results, totals, lane.place, job, counting)
        yield from _as_sent(matcher, readers)
        yield from _as_results(lane.rest(), lane.place, job)


def next_stage(batches: Iterator[pa.RecordBatch], job: Job, stage: int, counting: bool) -> Iterator[pa.RecordBatch]:
    """Execute the lanes of a later stage in a task, and forward what they send to further lanes."""
    sent: dict[int, list[OccurrenceBatch]] = {}
    for batch in batches:
        others = []
        for at, (place, is_result) in enumerate(zip(*(batch.column(n).to_pylist() for n in NAMES[:2]), strict=True)):
            packed = batch.column("sent")[at].as_buffer()
            if is_result or job.lanes[place].stage > stage:
                others.append((place, is_result, packed.to_pybytes()))
            else:
                sent.setdefault(place, []).append(unpack_occurrences(packed))
        yield from _told([_rows(others)], job, stage)
    readers = _readers(job)
    for place, received in sorted(sent.items()):
        yield from _told(_matched(place, received, job, counting, readers), job, stage)


def _told(rows: Iterable[pa.RecordBatch], job: Job, stage: int) -> Iterator[pa.RecordBatch]:
    """Rows as a stage gives them: the last one gives results as they are."""
    for batch in rows:
        if stage < job.stages - 1:
            yield batch
        else:
            yield from (blocks.unpacked_rows(packed.as_buffer()) for packed in batch.column("sent"))


def _matched(
    place: int, received: Sequence[OccurrenceBatch], job: Job, counting: bool, readers: Readers
) -> Iterator[pa.RecordBatch]:
    """Return the output of a lane for all its input."""
    matcher = StageMatcher(job.plan, job.lanes[place])
    matcher.identify_by(job.reading.key)
    results = Results(matcher, job.query_names, job.shape)
    if job.shape is not None:
        matcher.rows_at = results.rows_at
    events = blocks.concat([batch.events for batch in received])
    _, first = np.unique(events.positions, return_index=True)
    results.keep(blocks.take(events, first))
    for channel in matcher.receives:
        matcher.receive([batch for batch in received if batch.channel == channel], channel, ENDLESS)
    matcher.end(int(events.ends.max()))
    yield from _finished(matcher, results, Counter(), place, job, counting)
    yield from _as_sent(matcher, readers)
    yield from _as_results(iter([counters_as_output(matcher.counters)]), place, job)


def _finished(
    matcher: StageMatcher, results: Results, totals: Counter[str], place: int, job: Job, counting: bool
) -> Iterator[pa.RecordBatch]:
    """What is certain at the end of the input, or the number of all matches of a lane."""
    if not counting:
        yield from _as_results(results.finish(), place, job)
        return
    last: list[MatchBatch] = matcher.finish()
    for found in last:
        totals.update(found.counts)
    yield from _as_results(iter([counts_as_output(totals)]), place, job)


def _as_results(found: Iterator[pa.RecordBatch], place: int, job: Job) -> Iterator[pa.RecordBatch]:
    """Results of a lane, as rows between stages."""
    for rows in found:
        yield _rows([(place, True, blocks.packed_rows(as_output(rows, job.shape)))])


def _as_sent(matcher: StageMatcher, readers: Readers) -> Iterator[pa.RecordBatch]:
    """Occurrences of a lane, as rows between stages: one for each lane that reads them."""
    for batch in matcher.take_sent():
        packed = pack_occurrences(batch)
        yield _rows([(place, False, packed) for place in readers[batch.channel]])


def _rows(rows: Sequence[tuple[int, bool, bytes]]) -> pa.RecordBatch:
    """Rows between stages."""
    columns = zip(*rows, strict=True) if rows else [()] * len(NAMES)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SENT_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SENT_SCHEMA)


def _readers(job: Job) -> Readers:
    """By channel, the places of the lanes that read it."""
    found: dict[int, list[int]] = {}
    for place, lane in enumerate(job.lanes):
        for channel in job.plan.channels_read_by(lane):
            found.setdefault(channel, []).append(place)
    return found


def pack_occurrences(batch: OccurrenceBatch) -> bytes:
    """Occurrences as bytes."""
    ids = [identities_in(batch.chunks, batch.events.positions, names)[:2] for names in batch.attributes]
    arrays = batch.rows.tobytes(), batch.roots.tobytes(), [(high.tobytes(), low.tobytes()) for high, low in ids]
    return pickle.dumps((batch.channel, blocks.pack(batch.events), batch.attributes, *arrays))


def unpack_occurrences(data: pa.Buffer) -> OccurrenceBatch:
    """The occurrences that `pack_occurrences` made into these bytes."""
    channel, events, attributes, rows, roots, ids = pickle.loads(data)
    words = [(np.frombuffer(high, np.uint64), np.frombuffer(low, np.uint64)) for high, low in ids]
    numbers, known = (np.frombuffer(rows, np.int64), np.frombuffer(roots, np.int64)), blocks.unpack(events)
    chunk = known_chunk(replace(known, rows=None), dict(zip(attributes, words, strict=True)))
    return OccurrenceBatch(channel, *numbers, known, attributes, (chunk,))
