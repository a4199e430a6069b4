"""A bounded queue of events for a live program, processed by a separate thread.

When events arrive faster than they are matched and the queue is full, pushing blocks, or events are dropped or refused.
Only events whose loss never adds a match are dropped; if the queue has no such event, pushing blocks. Events of any
program can be refused: they do not become part of the stream.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

from weft.errors import UsageError
from weft.runtime.limits.looking import Looking
from weft.runtime.limits.shedding import Shed
from weft.runtime.limits.waiting import Piece, Risky, Rows, Waiting, as_rows

WhenFull = Literal["wait", "drop", "refuse"]
WHEN_FULL: tuple[WhenFull, ...] = get_args(WhenFull)
MOST_AT_ONCE = 1 << 16  # events that the thread takes out together


Work = Callable[[list[Piece], float], None]  # on some pieces, of whose events such a share is to be shed


class EventQueue:
    """Call `work` with the queued events in a thread, with consecutive pieces in one call.

    `room` is the number of events that may be queued. With `drop`, the oldest events are dropped when the queue is
    full, except those of `risky` types; with `refuse`, arriving events for which there is no room. `held` and `refused`
    count the events that had to wait for room, and those that were refused.
    """

    def __init__(
        self, room: int, when_full: WhenFull, work: Work, risky: Callable[[], Risky], type: str = "type"
    ) -> None:
        if isinstance(room, bool) or not isinstance(room, int) or room < 1:
            raise UsageError(f"queue is the number of events that may wait, at least 1, not {room!r}")
        if when_full not in WHEN_FULL:
            raise UsageError(f"when_full is {' or '.join(map(repr, WHEN_FULL))}, not {when_full!r}")
        self._room, self._work, self._risky = room, work, risky
        self.drops, self._refuses = when_full == "drop", when_full == "refuse"
        self.held = self.refused = 0
        self._waiting = Waiting(type)
        self._looking = Looking()
        self._changed = threading.Condition()
        self._is_at_work, self._worked_on = False, 0  # events
        self._failure: BaseException | None = None
        self._ended = self._paused = False
        self._thread = threading.Thread(target=self._run, name="weft queue", daemon=True)
        self._thread.start()

    def put(self, events: Any) -> None:
        """Put events in; more than there is room for wait for it, push out such as may be left out, or are refused."""
        rows = as_rows(events)
        if len(rows) <= self._room:
            self._put(rows)
            return
        for at in range(0, len(rows), self._room):
            self._put(rows[at : at + self._room])

    def _put(self, rows: Rows) -> None:
        with self._changed:
            self._wait(lambda: not self._paused)
            if self._refuses:
                self._wait(lambda: True)  # raises what went wrong
                taken = max(0, self._room - self.waiting)
                self.refused += max(0, len(rows) - taken)
                if taken:
                    self._add(rows[:taken])
            elif self.drops:
                self._add(rows)
                self._waiting.shrink(self._room, self._risky())
                self._hold(len(rows), lambda: self._waiting.count <= self._room)
            else:
                self._hold(len(rows), lambda: self.waiting + len(rows) <= self._room)
                self._add(rows)

    def _hold(self, count: int, until: Callable[[], bool]) -> None:
        """Wait for space, and count the events that had to wait."""
        if not until():
            self.held += count
        self._wait(until)

    def _add(self, rows: Rows) -> None:
        self._waiting.add(rows)
        self._changed.notify_all()

    def _wait(self, until: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: until() or self._failure is not None)
        if self._failure is not None:
            raise self._failure
        if self._ended:
            raise UsageError("the stream has ended: start another with weft.live(program)")

    def join(self) -> None:
        """Wait until all queued events are processed; raise the error that occurred, if any."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_empty or self._failure is not None)
            if self._failure is not None:
                raise self._failure

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Process the queued events while pushing blocks, so that drops are accounted to the current queries."""
        if threading.current_thread() is self._thread:
            raise UsageError("a receiver cannot deploy while the queue drops events: let another thread do so")
        with self._changed:
            self._wait(lambda: not self._paused)
            self._paused = True
        try:
            self.join()
            yield
        finally:
            with self._changed:
                self._paused = False
                self._changed.notify_all()

    def close(self) -> None:
        """Process the queued events, and accept no more."""
        self.join()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def waiting(self) -> int:
        """The number of events that are queued or being processed."""
        return self._waiting.count + self._worked_on

    @property
    def left_out(self) -> int:
        """The number of events that were dropped unread."""
        return self._waiting.left_out

    @property
    def _is_empty(self) -> bool:
        return self._waiting.is_empty and not self._is_at_work

    def _run(self) -> None:
        lost = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._waiting.is_empty or self._ended)
                if self._waiting.is_empty:
                    return
                is_calm = self._waiting.count < self._room / 2
                pieces = self._waiting.take(MOST_AT_ONCE)
                fresh, lost = self._waiting.left_out - lost, self._waiting.left_out
                self._is_at_work, self._worked_on = True, sum(len(piece.events) for piece in pieces)
            share = self._looking.next_share(is_losing=fresh > 0, is_calm=is_calm)
            with self._worked_off():
                if self._failure is None:
                    started = time.perf_counter()
                    self._work(pieces, share)
                    self._looking.took(share, (time.perf_counter() - started) / max(1, self._worked_on))

    @contextmanager
    def _worked_off(self) -> Iterator[None]:
        try:
            yield
        except BaseException as failure:  # it is raised where events are put in
            self._failure = failure
        finally:
            with self._changed:
                self._is_at_work, self._worked_on = False, 0
                self._changed.notify_all()


SHEDS = Shed(share=0.0)  # what a program with a queue that drops sheds by; the share follows the queue
