"""Pacing of a reader: limits the events that it reads in a second."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Waits after events that were read too early. Only sources may read a clock, as this does."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock, self._sleep = clock, sleep
        self._due = clock()  # when the next events may be read

    def keep(self, events: int) -> None:
        """Wait until the next events may be read, after reading `events` ones."""
        if self._rate is None:
            return
        self._due += events / self._rate
        wait = self._due - self._clock()
        if wait > 0:
            self._sleep(wait)
