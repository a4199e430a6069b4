"""Where the time goes: seconds by stage, measured around what each stage gives."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class Stopwatch:
    """Adds up the time that stages need for their items, not that of those who take them, nor of stages inside them."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._told = 0.0  # the seconds of all stages

    def around(self, stage: str, items: Iterable[Item]) -> Iterator[Item]:
        """The items, while the time to make them counts for the stage."""
        source = iter(items)
        while True:
            started, told = time.perf_counter(), self._told
            try:
                item = next(source)
            except StopIteration:
                return
            finally:
                own = time.perf_counter() - started - (self._told - told)
                self.seconds[stage] += own
                self._told += own
            yield item
