"""The stateful operator of a stream: one lane per key, its pages in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from weft.runtime.data import blocks
from weft.runtime.spark.compat import StatefulProcessor
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.kernels import receive_kernels, settle_worker
from weft.runtime.spark.watermark import Lateness

if TYPE_CHECKING:
    import pandas as pd

    from weft.runtime.spark.lanes.state import LaneState
    from weft.runtime.spark.packing.runs import RunRow

BATCH = "streaming.sql.batchId"  # the property by which a task knows its batch
PACKED = 1 << 24  # bytes of the output that go on together, about
NO_EVENTS = -(1 << 63)  # the `first` of a run without events: pandas knows no integer that is missing


class MapPages:
    """Pages in a map state of Spark's."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        """The page of that name, None when there is none."""
        if not self._state.containsKey((name,)):  # to ask for what is not there is worth a warning to Spark
            return None
        return bytes(self._state.getValue((name,))[0])

    def items(self) -> Iterable[tuple[str, bytes]]:
        """All pages."""
        return ((key[0], bytes(page[0])) for key, page in self._state.iterator())

    def put(self, name: str, page: bytes) -> None:
        """Write a page."""
        self._state.updateValue((name,), (page,))

    def remove(self, name: str) -> None:
        """Forget a page."""
        self._state.removeKey((name,))


class LaneProcessor(StatefulProcessor):  # type: ignore[misc] # pyspark is not checked
    """Takes a lane's runs trigger by trigger and gives the output, many rows packed into one, in a column of that name.

    Output is streamed: a trigger may have more matches than fit into memory. Spark calls its methods by
    their parameters' names, and takes frames of pandas one by one; rows it would collect first.
    """

    def __init__(self, job: Job, lateness: Lateness, column: str, kernels: str | None = None) -> None:
        self._kernels = kernels
        self._job = job
        self._lateness = lateness
        self._column = column

    def init(self, handle: Any) -> None:
        """Before anything else."""
        self._handle = handle
        self._pages = MapPages(handle.getMapState("pages", "name string", "page binary"))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """All rows of one trigger for this lane."""
        lane = int(key[0])  # NumPy's until Spark 4.1
        if not self._job.has_lane(lane):
            return
        state = self._load(lane)
        taken = state.take([row for frame in rows for row in run_rows(lane, frame)], self._lateness)
        if self._lateness.after_matching:
            # These matches were given out because the watermark passed them, so they are late by the one before.
            taken = iter(list(taken))
        self._follow_spark(state, timerValues)
        yield from self._finish(state, taken, lane)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Handle Spark's watermark passing the time that the lane waits for."""
        lane = int(key[0])
        if not self._job.has_lane(lane):  # of queries that have ended
            return
        state = self._load(lane)
        self._follow_spark(state, timerValues)
        if state.head.timer == expiredTimerInfo.getExpiryTimeInMs():
            state.head.timer = None
        yield from self._finish(state, (), lane)

    def close(self) -> None:
        """After a trigger."""

    def _load(self, lane_id: int) -> LaneState:
        # Spark also starts a process that only asks which states there are: it can do without the engine.
        from weft.runtime.spark.lanes.head import NO_ATTEMPT, Attempt
        from weft.runtime.spark.lanes.state import LaneState

        receive_kernels(self._kernels)
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(BATCH)
        attempt = NO_ATTEMPT if batch is None else Attempt(int(batch), context.taskAttemptId())
        return LaneState.load(self._pages, self._job, lane_id, attempt)

    def _follow_spark(self, state: LaneState, timer_values: Any) -> None:
        if self._lateness.by_spark:
            state.head.watermark = self._lateness.from_spark(timer_values.getCurrentWatermarkInMs())

    def _finish(self, state: LaneState, rejects: Iterable[pa.RecordBatch], lane_id: int) -> Iterator[pd.DataFrame]:
        for batch in chain(rejects, state.go_on()):
            yield from self._packed(batch)
        if self._lateness.by_spark:
            self._set_timer(state)
        state.store(self._pages)
        yield from self._packed(state.report(lane_id))

    def _packed(self, batch: pa.RecordBatch) -> Iterator[pd.DataFrame]:
        import pandas as pd  # as with the kernels: not where states are only asked for

        rows = max(1, len(batch) * PACKED // max(1, batch.nbytes))
        for first in range(0, len(batch), rows):
            yield pd.DataFrame({self._column: [blocks.packed_rows(batch.slice(first, rows))]})

    def _set_timer(self, state: LaneState) -> None:
        """Be called again when the watermark passes what is waited for, even if no more events come."""
        due = state.due
        timer = None if due is None else self._lateness.passed_at(due)
        if timer == state.head.timer:
            return
        if state.head.timer is not None:
            self._handle.deleteTimer(state.head.timer)
        if timer is not None:
            self._handle.registerTimer(timer)
        state.head.timer = timer


def run_rows(lane: int, frame: pd.DataFrame) -> Iterator[RunRow]:
    """Rows of Spark's as ours."""
    from weft.runtime.spark.packing.runs import RunRow

    names = [name for name in frame.columns if name != "lane"]
    for values in frame[names].itertuples(index=False, name=None):
        given = dict(zip(names, values, strict=True))
        numbers = {name: int(given[name]) for name in ("first", "source", "part", "chunk")}
        first = None if numbers["first"] == NO_EVENTS else numbers["first"]
        yield RunRow(**{**given, **numbers, "lane": lane, "first": first})


def unpack_output(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: packed rows of the output as rows."""
    settle_worker()
    for batch in batches:
        for data in batch.column(0):
            yield blocks.unpacked_rows(data.as_buffer())
