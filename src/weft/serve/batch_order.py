"""The order of batches that a publisher has on their way at once: one waits until the one before has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weft.serve.engine import Busy

LONGEST = 10.0  # seconds for which a batch waits for the one before
SOURCES = 10_000  # after which those are forgotten of which everything is matched


class BatchOrder:
    """Progress of each publisher; used in the event loop. `known` returns the number of its last matched batch."""

    def __init__(self, known: Callable[[str], int]) -> None:
        self._known = known
        self._submitted: dict[str, int] = {}  # the last that is matched or queued
        self._coming: dict[str, asyncio.Event] = {}

    def note(self, source: str, number: int) -> None:
        """A batch is queued: those after it may be, too."""
        if len(self._submitted) >= SOURCES:
            waiting = {name: last for name, last in self._submitted.items() if self._known(name) < last}
            self._submitted = waiting
        self._submitted[source] = max(number, self._submitted.get(source, -1))
        self._wake(source)

    async def wait_for(self, source: str, number: int) -> None:
        """Wait until a batch is queued or matched; raises Busy if it does not come, so that the sender tries again."""
        try:
            async with asyncio.timeout(LONGEST):
                while max(self._submitted.get(source, -1), self._known(source)) < number:
                    await self._coming.setdefault(source, asyncio.Event()).wait()
        except TimeoutError:
            self._wake(source)  # others wait for another event then, which nobody holds when they are gone, too
            raise Busy(1, f"batch {number} of this source has not come: send it, or try again") from None

    def _wake(self, source: str) -> None:
        event = self._coming.pop(source, None)
        if event is not None:
            event.set()
