"""The small part of a lane's state, and what it says against going on from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.errors import UsageError
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.lanes.emission import Points
from weft.runtime.store.pages import FOREIGN
from weft.stored import Plain


class InterruptedAttempt(Exception):
    """The store shows what an attempt at the same trigger wrote that was interrupted and never committed."""


class Attempt(NamedTuple):
    """A task of Spark's: the number of its batch, and of the task among all of its session."""

    batch: int
    task: int


NO_ATTEMPT = Attempt(-1, -1)


@dataclass
class Head:
    """The small part of the state, written at every trigger."""

    trigger: int = 0
    taken: int = 0  # the lane's events that were not late
    released: int = 0  # events that have a position: of the whole stream if it is `counting`, else the lane's
    counting: bool = True  # whether positions are those in the whole stream
    peaks: list[list[int]] = field(default_factory=list)  # triggers and their last times, as far as these are to come
    reached: dict[str, int] = field(default_factory=dict)  # how far each source has come in time
    heard: dict[str, int] = field(default_factory=dict)  # when each of those that the clock watches sent something
    silent: list[str] = field(default_factory=list)  # sources of files that are idle
    doubted: dict[str, list[int]] = field(default_factory=dict)  # times ahead of that (see `Front`)
    watermark: int | None = None
    finished: bool = False  # the matcher has been told of the end
    timer: int | None = None
    used: dict[str, int] = field(default_factory=dict)  # how many events of a stored run have gone on
    stamp: str = ""  # made new at every trigger
    lanes: int = 0  # how many there were when the stream began
    shared: str = ""  # how the work was shared out then
    form: str | None = None  # that of the queries, where it has changed since
    watched: Plain = None  # what was seen of the events meanwhile, where it may change
    gone: list[int] = field(default_factory=list)  # queries that were removed since
    points: Points = field(default_factory=dict)  # see `EmissionFilter`
    attempt: Sequence[int] = NO_ATTEMPT  # the task that wrote it


def refuse_interrupted(head: Head, attempt: Attempt) -> None:
    """Refuse what another task wrote for the same batch and Spark did not take back: when this one fails, it does."""
    batch, task = head.attempt
    if attempt != NO_ATTEMPT and batch == attempt.batch and task != attempt.task:
        raise InterruptedAttempt(f"task {task} wrote state for batch {batch} and was interrupted: try again")


def refuse_others(head: Head, count: int, shared: str) -> None:
    """Refuse the state of a stream with a different number of lanes, since events would be routed differently."""
    if head.lanes not in (0, count):
        raise UsageError(
            f"the checkpoint is of a stream with {head.lanes} lanes in all, and this one has {count}: "
            "pass the `lanes` that it began with, or use a new checkpoint"
        )
    if head.shared not in ("", shared):
        raise UsageError(
            "the checkpoint is of a stream whose work was shared out in another way, by another strategy or for "
            "another program: pass the `strategy` and the program that it began with, say which checkpoint it is "
            "(weft.match(…, checkpoint=…)) so that queries which are the same keep their state, or use a new one"
        )


def count_positions(head: Head, job: Job) -> None:
    """Count positions from now on as the job does; those in the whole stream only if it was so from the beginning."""
    began = head.trigger == 0
    if job.positions and not began and not head.counting:
        raise UsageError(
            "positions are asked for, and the stream of this checkpoint began without counting them: leave out "
            "positions=True (--positions), or use a new checkpoint"
        )
    head.counting = job.counts_positions and (began or head.counting)


def head_of(stored: bytes) -> Head:
    """The head that a page has."""
    try:
        return Head(**json.loads(stored))
    except (TypeError, ValueError):
        raise UsageError(FOREIGN) from None
