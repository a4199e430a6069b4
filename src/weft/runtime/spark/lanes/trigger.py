"""One trigger of a stream in a task: the rows of its lanes in, matches out, state in files beside the checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from weft.errors import UsageError
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.state import LaneState
from weft.runtime.spark.lanes.state_files import LaneFiles, note_rows
from weft.runtime.spark.packing.runs import RunRow, run_rows_of
from weft.runtime.spark.watermark import Lateness

_BATCH = "streaming.sql.batchId"  # the property by which Spark tells tasks the number of the trigger


@dataclass(frozen=True)
class TriggerWork:
    """What a task of a stream does with the runs of its lanes.

    `folder` is where state is kept; None: the property `place` of the task says so. `epoch`: see `LaneFiles`.
    """

    job: Job
    lateness: Lateness
    folder: str | None = None
    place: str = ""
    epoch: int = 0

    @property
    def trigger(self) -> int:
        """The number of the current trigger."""
        return int(self._property(_BATCH))

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The output of the trigger, lane by lane, while it is found; the state is written before the task ends."""
        folder = Path(self.folder or self._property(self.place))
        by_lane: dict[int, list[RunRow]] = {}
        for row in chain.from_iterable(map(run_rows_of, batches)):
            by_lane.setdefault(row.lane, []).append(row)
        note_rows(folder, self.trigger, _task(), are_there=bool(by_lane))
        for lane in sorted(by_lane):
            if self.job.has_lane(lane):  # others are of queries that have ended
                yield from self._lane(folder, lane, by_lane[lane])

    def _lane(self, folder: Path, lane: int, rows: list[RunRow]) -> Iterator[pa.RecordBatch]:
        is_new = self.job.seed is not None
        pages = LaneFiles(folder / str(lane), self.trigger, new=is_new, task=_task(), epoch=self.epoch)
        state = LaneState.load(pages, self.job, lane)
        yield from state.take(rows, self.lateness)
        yield from state.go_on()
        state.store(pages)
        pages.commit()
        yield state.report(lane)

    def _property(self, name: str) -> str:
        context = TaskContext.get()
        value = None if context is None else context.getLocalProperty(name)
        if value is None:
            raise UsageError(
                "weft.match on a stream keeps its state beside the checkpoint, and the query was not started by its "
                "writeStream: use weft.match(…, state='spark')"
            )
        return str(value)


def _task() -> int:
    """Return the number of the current partition."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
