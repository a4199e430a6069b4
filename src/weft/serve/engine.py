"""The server's engine thread, which executes commands in order: journal first, then events, then the answer.

Every answered command is in the journal, so a kill loses nothing that was answered. Journalled commands without an
answer are repeated after a restart, and a publisher that retries with the same number learns that it was applied.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from weft.errors import BudgetError, WeftError
from weft.serve.folders import StateFolder
from weft.serve.journal import Record
from weft.serve.program import NDJSON, Answer, Publication, ServedProgram

MOST_TOGETHER = 1 << 20  # bytes of publications that are matched as one
SPACED = 20  # seconds of work between two snapshots, for each second that one takes
LONGEST = 8  # times the bytes after which a snapshot is due: then it is taken, whatever it costs


class Busy(Exception):
    """The queue is full, or something else must come first; retry after the given number of seconds."""

    def __init__(self, seconds: int, reason: str | None = None) -> None:
        super().__init__(reason or f"the queue is full: try again in {seconds} s")
        self.seconds = seconds


class Stopped(WeftError):
    """The server takes nothing more."""


@dataclass
class Request:
    """A job, and the future of its answer."""

    about: Mapping[str, Any]
    body: bytes = b""
    part: Publication | None = None  # of a publication
    done: Future[Answer] = field(default_factory=Future)


class Engine:
    """Execute jobs in order. `room` is the number of bytes of publications that may be queued."""

    def __init__(self, program: ServedProgram, folder: StateFolder | None, room: int, snapshot_bytes: int) -> None:
        self.program, self.folder = program, folder
        self.problem: str | None = None
        self.waiting = 0  # bytes of publications
        self.seconds = 0.0  # spent at work
        self._snapshot_due = 0.0  # by these seconds
        self._room, self._snapshot_bytes = room, snapshot_bytes
        self._jobs: deque[Request] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._rate = 0.0  # bytes of publications done in a second, of late
        self._thread = threading.Thread(target=self._run, name="weft serve", daemon=True)

    def start(self) -> None:
        """Start the thread; the journal is replayed already."""
        self._thread.start()

    def replay(self) -> int:
        """Execute the records of the journal again, and return their number."""
        count = 0
        for record in self.folder.records() if self.folder is not None else ():
            try:
                self.program.apply(record)
            except BudgetError:
                raise
            except WeftError:
                pass  # it was answered with an error the first time, too
            count += 1
        return count

    def check_room(self, size: int) -> None:
        """Raise Busy if there is no room for a publication of this size."""
        if self.waiting and self.waiting + size > self._room:
            raise Busy(max(1, min(30, round(self.waiting / self._rate) if self._rate else 1)))

    def submit(self, job: Request) -> Future[Answer]:
        """Queue a job, and return its answer when it is done."""
        with self._changed:
            if self.problem is not None or self._ended:
                raise Stopped(self.problem or "the server is stopping")
            if job.part is not None:
                self.check_room(len(job.body))
                self.waiting += len(job.body)
            self._jobs.append(job)
            self._changed.notify()
        return job.done

    def stop(self) -> None:
        """Execute the queued jobs, take a snapshot, and end."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        if self.folder is not None:
            if self.problem is None and self.folder.journal.size:
                self.snapshot()
            self.folder.close()

    def snapshot(self) -> None:
        """Take a snapshot of the whole state."""
        assert self.folder is not None
        started = time.perf_counter()
        self.folder.take(self.program.save, self.program.about(), self.program.hub.table)
        self._snapshot_due = self.seconds + SPACED * (time.perf_counter() - started)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while group := self._next():
            started = time.perf_counter()
            try:
                self._do(group)
                self._snapshot_if_due()
            except BaseException as failure:  # whatever it is, those who wait must hear of it
                self._fail(group, failure)
            took = time.perf_counter() - started
            self.seconds += took
            size = sum(len(job.body) for job in group)
            with self._changed:
                self.waiting -= size if group[0].part is not None else 0
            if size:
                self._rate = 0.8 * self._rate + 0.2 * size / max(took, 1e-6) if self._rate else size / max(took, 1e-6)

    def _next(self) -> list[Request]:
        """The next job, with publications that may be matched together with it; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._ended)
            if not self._jobs:
                return []
            group = [self._jobs.popleft()]
            size = len(group[0].body)
            while self._jobs and _together(group[0], self._jobs[0]) and size < MOST_TOGETHER:
                size += len(self._jobs[0].body)
                group.append(self._jobs.popleft())
            return group

    def _do(self, group: list[Request]) -> None:
        first = group[0]
        if first.part is None:
            (answer,) = self._told(first, Record(first.about))
            first.done.set_result(answer)
            return
        fresh: dict[tuple[str | None, int | None] | int, Request] = {}
        again: list[tuple[Request, Request]] = []  # what a publisher sent again before the first had an answer
        for place, job in enumerate(group):
            assert job.part is not None
            known = self.program.known(job.part.source, job.part.sequence)
            number = place if job.part.sequence is None else (job.part.source, job.part.sequence)
            if known is not None:
                job.done.set_result(known)
            elif number in fresh:
                again.append((job, fresh[number]))
            else:
                fresh[number] = job
        if fresh:
            self._publish(list(fresh.values()))
        for job, first in again:
            _answer_like(job, first)

    def _publish(self, jobs: list[Request]) -> None:
        parts = [[job.part.lines, job.part.source, job.part.sequence] for job in jobs if job.part is not None]
        body = jobs[0].body if len(jobs) == 1 else b"".join(_whole_lines(job.body) for job in jobs)
        record = Record({**jobs[0].about, "parts": parts}, body)
        if self.folder is not None:
            self.folder.journal.append(record)  # before it is matched: what a subscriber sees is never taken back
        try:
            answers = self.program.apply(record)
        except WeftError as problem:
            if isinstance(problem, BudgetError):
                raise
            for job in jobs:
                job.done.set_exception(problem)
            return
        for job, answer in zip(jobs, answers, strict=True):
            job.done.set_result(answer)

    def _told(self, job: Request, record: Record) -> list[Answer]:
        """Do something that is no publication. It is in the journal when it is done, or before, if it emits matches:
        what a subscriber sees is never taken back.
        """
        emits = record.about["op"] == "advance"
        if self.folder is not None and emits:
            self.folder.journal.append(record)
        try:
            answers = self.program.apply(record)
        except BudgetError:
            raise
        except WeftError as problem:
            job.done.set_exception(problem)
            raise _Answered from None
        if self.folder is not None and not emits:
            self.folder.journal.append(record)
        return answers

    def _snapshot_if_due(self) -> None:
        """Take a snapshot when the journal is long, and the last one took a small part of the time since."""
        if self.folder is None or self.folder.journal.size <= self._snapshot_bytes:
            return
        if self.seconds >= self._snapshot_due or self.folder.journal.size > LONGEST * self._snapshot_bytes:
            self.snapshot()

    def _fail(self, group: list[Request], failure: BaseException) -> None:
        if isinstance(failure, _Answered):
            return
        with self._changed:
            self.problem = f"the server has stopped taking events: {_reason(failure)}"
            waiting = [*group, *self._jobs]
            self._jobs.clear()
        for job in waiting:
            if not job.done.done():
                job.done.set_exception(Stopped(self.problem))


class _Answered(Exception):
    """Raised when the error was reported to the requester."""


def _answer_like(job: Request, first: Request) -> None:
    """Give a repeated publication the answer of the first one."""
    failure = first.done.exception()
    if failure is not None:
        job.done.set_exception(failure)
    else:
        job.done.set_result({**first.done.result(), "duplicate": True})


def _together(first: Request, other: Request) -> bool:
    """Whether two publications are matched as one."""
    forms = first.about, other.about
    return first.part is not None and other.part is not None and forms[0] == forms[1] and forms[0]["form"] == NDJSON


def _reason(failure: BaseException) -> str:
    if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"there is no room left on the disk of its state ({failure.strerror}): make room and start it again; all "
            "that was answered is kept"
        )
    return f"{failure}" if isinstance(failure, WeftError) else f"{type(failure).__name__}: {failure}"


def _whole_lines(body: bytes) -> bytes:
    return body if body.endswith(b"\n") else body + b"\n"
