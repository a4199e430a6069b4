"""A pace that a reader keeps: no more events in a second than it may read."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Waits after events that came too soon. Here a clock is read: it is for sources."""

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
        """So many events were read: wait until the next may be."""
        if self._rate is None:
            return
        self._due += events / self._rate
        wait = self._due - self._clock()
        if wait > 0:
            self._sleep(wait)
