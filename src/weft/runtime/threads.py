"""Execute work in threads: kernels run without the interpreter's lock. Results are in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import c_ulong, py_object, pythonapi
from threading import get_ident
from typing import Self, TypeVar

Given = TypeVar("Given")
Out = TypeVar("Out")


class Threads:
    """A pool of `count` threads, created on first use.

    Use it in a `with` statement, so that Ctrl-C ends the work, too: only the main thread receives it, and the process
    waits for all threads at its end.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._at_work: set[int] = set()
        self._is_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._is_ended = True
            for thread in tuple(self._at_work):
                pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), py_object(KeyboardInterrupt))

    def each(self, work: Callable[[Given], Out], given: Sequence[Given]) -> list[Out]:
        """Return the results of all work items."""
        return list(map(work, given)) if len(given) < 2 else self.begin(work, given)()

    def begin(self, work: Callable[[Given], Out], given: Iterable[Given]) -> Callable[[], list[Out]]:
        """Start the work items in threads; the returned function waits for their results. With one thread it does the
        work.
        """
        if self.count == 1:
            return lambda: list(map(work, given))
        begun = [self._submit(work, piece) for piece in given]
        return lambda: [one.result() for one in begun]

    def in_turn(self, work: Callable[[Given], Out], given: Iterable[Given]) -> Iterator[Out]:
        """Yield results in order, while threads compute the next ones; only a few are buffered."""
        if self.count == 1:
            yield from map(work, given)
            return
        begun: deque[Future[Out]] = deque()
        for piece in given:
            begun.append(self._submit(work, piece))
            while begun and (len(begun) > self.count or begun[0].done()):
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()

    def _submit(self, work: Callable[[Given], Out], given: Given) -> Future[Out]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, "weft")
        return self._pool.submit(self._work, work, given)

    def _work(self, work: Callable[[Given], Out], given: Given) -> Out:
        """Execute a work item, while its thread is registered to be interrupted."""
        self._at_work.add(get_ident())
        try:
            if self._is_ended:  # it begins only now, and was not among them
                raise KeyboardInterrupt
            return work(given)
        finally:
            self._at_work.discard(get_ident())


ALONE = Threads(1)
