"""User work in separate processes, with a deadline and a memory limit for each job, and cancellation.

Workers are reused while they finish their jobs; one that exceeds its deadline, or whose job is cancelled, is killed. A
job that ran out of memory or died is reported in one sentence.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from weft.errors import UsageError, WeftError

Result = TypeVar("Result")
LOOK = 0.05  # seconds between two looks whether anybody still waits
START_TIMEOUT_S = 60.0  # until a new process is ready: loading libraries is not part of a job's time
HEADER = struct.Struct(">Q")
_CHILD = "import sys; sys.path[:] = {path!r}; from weft.workbench.worker import main; main({memory})"


class CancelledError(WeftError):
    """The job was cancelled because its client went away."""


class CrowdedError(WeftError):
    """More work waits than is accepted."""


@dataclass(frozen=True)
class WorkLimits:
    """What user work may take: seconds, bytes of memory; how much of it at once, and how much may wait."""

    seconds: float = 60.0
    memory: int = 2 << 30
    at_once: int = 4
    waiting: int = 64


class Workers:
    """Runs functions of modules in other processes, within limits."""

    def __init__(self, limits: WorkLimits = WorkLimits()) -> None:
        self.limits = limits
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        self._asked = 0
        self._threads = ThreadPoolExecutor(limits.at_once, thread_name_prefix="weft-work")

    def submit(self, cancelled: threading.Event, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Run a function in another process, as soon as there is room; `cancelled` ends it."""
        with self._lock:
            if self._asked >= self.limits.at_once + self.limits.waiting:
                raise CrowdedError("too much is asked for at once: try again in a minute")
            self._asked += 1
        future = self._threads.submit(self._run, cancelled, work, arguments)
        future.add_done_callback(self._answered)
        return future

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Run a function in another process and wait for it."""
        return self.submit(threading.Event(), work, *arguments).result()

    def close(self) -> None:
        """End all workers."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            workers, self._all, self._idle = self._all, set(), []
        for worker in workers:
            worker.kill()

    @property
    def pids(self) -> list[int]:
        """The processes of the workers."""
        with self._lock:
            return [worker.pid for worker in self._all]

    def _answered(self, _: Future[Any]) -> None:
        with self._lock:
            self._asked -= 1

    def _run(self, cancelled: threading.Event, work: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
        if cancelled.is_set():
            raise CancelledError("the client no longer waits for this")
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker(self.limits.memory)
            self._all.add(worker)
        is_whole = False
        try:
            answer = worker.ask((work, arguments), self.limits.seconds, cancelled)
            is_whole = True
        finally:
            with self._lock:
                if is_whole and worker in self._all:
                    self._idle.append(worker)
                else:
                    self._all.discard(worker)
            if not is_whole:
                worker.kill()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class _Worker:
    """One process, which does one piece of work at a time."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._ready = threading.Event()
        code = _CHILD.format(path=sys.path, memory=memory)
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def ask(self, job: object, seconds: float, cancelled: threading.Event) -> Any:
        """Return the answer to a job. Raise if it does not arrive in time or is cancelled."""
        found: list[bytes] = []
        reader = threading.Thread(target=self._exchange, args=(pickle.dumps(job), found), daemon=True)
        reader.start()
        deadline, is_started = time.monotonic() + START_TIMEOUT_S, False
        while reader.is_alive():
            if self._ready.is_set() and not is_started:
                deadline, is_started = time.monotonic() + seconds, True
            if cancelled.is_set():
                raise CancelledError("the client no longer waits for this")
            if time.monotonic() > deadline:
                raise UsageError(
                    f"this took longer than {seconds:g} seconds and was stopped: try fewer events, "
                    "or a pattern with fewer matches"
                )
            reader.join(LOOK)
        if not found:
            raise self._died()
        return pickle.loads(found[0])

    def _exchange(self, job: bytes, found: list[bytes]) -> None:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        try:
            pipe_in.write(HEADER.pack(len(job)) + job)
            pipe_in.flush()
            if not self._ready.is_set() and pipe_out.read(HEADER.size) == HEADER.pack(0):
                self._ready.set()
            header = pipe_out.read(HEADER.size)
            if len(header) == HEADER.size:
                (size,) = HEADER.unpack(header)
                answer = pipe_out.read(size)
                found += [answer] if len(answer) == size else []
        except (OSError, ValueError):
            pass  # it is gone, which the caller sees

    def _died(self) -> UsageError:
        code = self._process.wait()
        if code == -signal.SIGKILL or code == -signal.SIGABRT or code == -signal.SIGSEGV:
            return UsageError(out_of_memory(self._memory))
        return UsageError(f"the process that did this ended by itself (exit code {code})")

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not sent is lost with it
                    pipe.close()


def out_of_memory(memory: int) -> str:
    """What is said when work needs more memory than it may have."""
    return f"this needed more than {memory / (1 << 30):g} GiB of memory and was stopped: try fewer events"


@cache
def shared_workers() -> Workers:
    """The workers of this process; they end with it."""
    workers = Workers()
    atexit.register(workers.close)
    os.register_at_fork(after_in_child=shared_workers.cache_clear)
    return workers
