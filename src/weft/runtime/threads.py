"""Work on several pieces at once, in threads: kernels run without the interpreter's lock. Results come in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import c_ulong, py_object, pythonapi
from threading import get_ident
from typing import TypeVar

ENDED = 0  # among the threads at work: those that begin only now are not to
Given = TypeVar("Given")
Out = TypeVar("Out")


class Threads:
    """So many threads, made when they are first needed. They end when nothing refers to this any more."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def each(self, work: Callable[[Given], Out], given: Sequence[Given]) -> list[Out]:
        """What comes out of each piece of work."""
        if len(given) < 2:
            return list(map(work, given))
        return list(self.in_turn(work, given))

    def in_turn(self, work: Callable[[Given], Out], given: Iterable[Given]) -> Iterator[Out]:
        """The same, one after the other, while threads are at the next ones: few wait to be taken."""
        if self.count == 1:
            yield from map(work, given)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, "weft-rows")
        begun: deque[Future[Out]] = deque()
        for piece in given:
            begun.append(self._pool.submit(work, piece))
            while begun and (len(begun) > self.count or begun[0].done()):
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def noted(at_work: set[int], work: Callable[[Given], Out], given: Given) -> Out:
    """What comes out of a piece of work, while the thread that does it is among those at work."""
    at_work.add(get_ident())
    try:
        if ENDED in at_work:
            raise KeyboardInterrupt
        return work(given)
    finally:
        at_work.discard(get_ident())


def results_of(begun: Sequence[Future[Out]], at_work: set[int]) -> list[Out]:
    """What comes out of work that has begun.

    Only this thread hears Ctrl-C. The others are told, since the process waits for them at its end.
    """
    try:
        return [one.result() for one in begun]
    except KeyboardInterrupt:
        for one in begun:
            one.cancel()
        at_work.add(ENDED)
        for thread in at_work - {ENDED}:
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), py_object(KeyboardInterrupt))
        raise


ALONE = Threads(1)
