"""Events for a live program through a queue of bounded length: a thread of its own works them off.

When more come than can be matched the queue is full: then who pushes waits, or events are left out. Of these only such
are left out whose loss never invents a match; if the queue has no other, who pushes waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import pyarrow as pa

from weft.errors import UsageError
from weft.runtime.limits.shedding import Shed

WhenFull = Literal["wait", "drop"]
WHEN_FULL: tuple[WhenFull, ...] = get_args(WhenFull)
MOST_AT_ONCE = 1 << 16  # events that the thread takes out together
_END = object()


class EventQueue:
    """Calls `work` with what was put in, in a thread: lists of events that were put in one after the other.

    `room` is how many events may wait. With `drop`, what does not fit goes on as a `Flood`: the worker sheds it.
    """

    def __init__(self, room: int, when_full: WhenFull, work: Any) -> None:
        if isinstance(room, bool) or not isinstance(room, int) or room < 1:
            raise UsageError(f"queue is the number of events that may wait, at least 1, not {room!r}")
        if when_full not in WHEN_FULL:
            raise UsageError(f"when_full is {' or '.join(map(repr, WHEN_FULL))}, not {when_full!r}")
        self._room, self._when_full, self._work = room, when_full, work
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._count = 0  # events that wait, or are worked on
        self._failure: BaseException | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="weft queue", daemon=True)
        self._thread.start()

    def put(self, events: list[Any]) -> None:
        """Put events in; more than there is room for wait for it, or go in as far as none is needed of them."""
        for at in range(0, len(events), self._room):
            self._put(events[at : at + self._room])

    def _put(self, events: list[Any]) -> None:
        with self._changed:
            self._check()
            # With twice the room the worker sheds down to it; what may not be shed makes this wait.
            most = self._room if self._when_full == "wait" else 2 * self._room
            self._changed.wait_for(lambda: self._count + len(events) <= most or self._failure is not None)
            self._check()
            self._count += len(events)
        self._waiting.put(events)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise UsageError("the stream has ended: start another with weft.live(program)")

    def join(self) -> None:
        """Wait until all that was put in is worked off; what went wrong is raised here."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0 or self._failure is not None)
            if self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Work off what is there, and take nothing more."""
        self.join()
        self._ended = True
        self._waiting.put(_END)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def waiting(self) -> int:
        """How many events wait, or are worked on."""
        return self._count

    @property
    def pressure(self) -> float:
        """The share of the events at hand that there is no room for; 0 if who pushes waits."""
        over = self._count - self._room
        return over / self._count if self._when_full == "drop" and over > 0 else 0.0

    def _run(self) -> None:
        while True:
            item = self._waiting.get()
            if item is _END:
                return
            taken = list(item)
            while len(taken) < MOST_AT_ONCE and not self._waiting.empty():
                more = self._waiting.get()
                if more is _END:
                    self._waiting.put(_END)
                    break
                taken += more
            with self._counted(len(taken)):
                if self._failure is None:
                    self._work(taken, self.pressure)

    @contextmanager
    def _counted(self, count: int) -> Iterator[None]:
        try:
            yield
        except BaseException as failure:  # it is raised where events are put in
            self._failure = failure
        finally:
            with self._changed:
                self._count -= count
                self._changed.notify_all()


def as_events(events: Any) -> list[Any]:
    """What was pushed as a list of dicts."""
    if isinstance(events, dict):
        return [events]
    if isinstance(events, pa.Table | pa.RecordBatch):
        return list(events.to_pylist())
    if isinstance(events, list | tuple):
        return list(events)
    raise UsageError("through a queue go dicts, lists of them and Arrow tables: for other events leave `queue` out")


SHEDS = Shed(share=0.0)  # what a program with a queue that drops sheds by; the share follows the queue
