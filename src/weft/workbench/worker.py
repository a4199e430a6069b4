"""A worker of the workbench: a process that reads jobs (a function and its arguments) and writes their results."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from weft.errors import UsageError, WeftError
from weft.workbench.isolation import HEADER, out_of_memory


def main(memory: int) -> None:
    """Process jobs until the input ends."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    _load()
    limit_memory(memory)
    answers.write(HEADER.pack(0))  # ready
    answers.flush()
    waiting = threading.Semaphore(0)
    given: list[bytes] = []
    threading.Thread(target=_read, args=(jobs, given, waiting), daemon=True).start()
    while True:
        waiting.acquire()
        answer = _answer(given.pop(0), memory)
        answers.write(HEADER.pack(len(answer)) + answer)
        answers.flush()


def _load() -> None:
    """Import what jobs use: the address space of libraries is not part of what a job may take."""
    for name in ("pyarrow.compute", "weft.workbench.jobs", "weft.sql_tables.running", "duckdb"):
        with suppress(ImportError):
            import_module(name)


def limit_memory(memory: int) -> None:
    """Limit the memory this process may allocate in addition to its current use, where the system supports it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        pages = 0
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _read(jobs: BinaryIO, given: list[bytes], waiting: threading.Semaphore) -> None:
    """Take jobs; when the other side is gone, end at once, whatever is under way."""
    while len(header := jobs.read(HEADER.size)) == HEADER.size:
        (size,) = HEADER.unpack(header)
        given.append(jobs.read(size))
        waiting.release()
    os._exit(0)


def _answer(job: bytes, memory: int) -> bytes:
    """The result of a job, or what went wrong."""
    try:
        work, arguments = pickle.loads(job)
        return pickle.dumps(work(*arguments))
    except WeftError as problem:
        return pickle.dumps(problem)
    except MemoryError:
        return pickle.dumps(UsageError(out_of_memory(memory)))
    except Exception as problem:  # the process goes on, and the caller is told
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return pickle.dumps(RuntimeError(f"{type(problem).__name__}: {problem}"))
