"""Tells why a first run takes its time: kernels are compiled for the machine, once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Timer
from typing import Any

from weft.kernels.numba_internals import event
from weft.kernels.store import WAITING

REPORT_COMPILING_AFTER_S = 2.0  # seconds of compiling before it is worth a word


class _Watch(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says once that kernels are compiled, if that takes longer than a user would wait without a word."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._depth = 0
        self._timer: Timer | None = None
        self._is_told = False

    def on_start(self, event: Any) -> None:
        """A kernel, or a part of one, begins to be compiled."""
        self._depth += 1
        if self._timer is None and not self._is_told:
            self._timer = Timer(REPORT_COMPILING_AFTER_S, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        self._is_told = True
        self._tell()


def when_compiling(tell: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when kernels are compiled for a while; what is returned ends that."""
    watch = _Watch(tell)
    for kind in ("numba:compile", WAITING):
        event.register(kind, watch)

    def end() -> None:
        for kind in ("numba:compile", WAITING):
            event.unregister(kind, watch)

    return end
