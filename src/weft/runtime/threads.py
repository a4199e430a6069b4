"""Work on several pieces at once, in threads: kernels run without the interpreter's lock. Results come in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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


ALONE = Threads(1)
