"""State that a task wrote which was interrupted is never taken for committed, whatever Spark shows."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
from tests.spark.pipeline import PageDict

import weft
from weft.plan.planner import plan
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.job import job_of
from weft.runtime.spark.lanes.head import Attempt, InterruptedAttempt
from weft.runtime.spark.lanes.state import LaneState


def test_the_state_of_another_task_for_the_same_batch_is_refused() -> None:
    program = weft.compile("SELECT * WHERE A ; B WITHIN 9 EVENTS")
    job = job_of(plan(program, strategy="one"), Reading(), 1, streaming=True)
    lane, pages = job.lanes[0].id, PageDict()
    LaneState.load(pages, job, lane, Attempt(4, 10)).store(pages)
    LaneState.load(pages, job, lane, Attempt(4, 10)).store(pages)  # a timer of the same task
    for _ in range(2):  # whether or not the process remembers the lane
        with pytest.raises(InterruptedAttempt, match="task 10 wrote state for batch 4"):
            LaneState.load(pages, job, lane, Attempt(4, 11))
        from weft.runtime.spark.lanes import state

        state._remembered.clear()
    assert LaneState.load(pages, job, lane, Attempt(5, 12)).head.attempt == [4, 10]
