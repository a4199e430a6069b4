"""Work on several pieces at once, in threads: kernels run without the interpreter's lock. Results come in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        if self.count == 1 or len(given) < 2:
            return list(map(work, given))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count, "weft-rows")
        return list(self._pool.map(work, given))


ALONE = Threads(1)
