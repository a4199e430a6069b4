"""Events wait in a client and are sent in batches, in the background, as fast as the server takes them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from weft.client.answers import Published
from weft.client.encoding import NDJSON, TABLE_BYTES, Body, as_stream

BATCH_BYTES = 1 << 20  # of a batch of lines
ROOM = 32 << 20  # bytes that may wait before `publish` does
LINGER = 0.02  # seconds for which a batch waits for more
AT_ONCE = 2  # batches that are on their way: one that the server works on, and the next


class Outbox:
    """Queued bodies, grouped into batches. Numbers of batches begin with 1."""

    def __init__(self) -> None:
        self.bytes = 0
        self._bodies: deque[Body] = deque()
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def add(self, body: Body) -> None:
        """Append a body."""
        self._bodies.append(body)
        self.bytes += body.size

    @property
    def is_full(self) -> bool:
        """Whether a batch need not wait for more."""
        is_table = bool(self._bodies) and self._bodies[0].kind != NDJSON
        return is_table or (len(self._bodies) > 1 and self.bytes >= BATCH_BYTES)

    def take(self) -> tuple[Body, int]:
        """The next batch, and its number: lines that wait go together, and so do tables with one schema."""
        parts = [self._bodies.popleft()]
        most = BATCH_BYTES if parts[0].kind == NDJSON else TABLE_BYTES
        size = parts[0].size
        while self._bodies and _go_together(parts[0], self._bodies[0]) and size + self._bodies[0].size <= most:
            size += self._bodies[0].size
            parts.append(self._bodies.popleft())
        self.bytes -= size
        self._sequence += 1
        tables = [part.table for part in parts if part.table is not None]
        if tables:
            return as_stream(tables), self._sequence
        lines = [part.content if part.content.endswith(b"\n") else part.content + b"\n" for part in parts]
        return Body(b"".join(lines), parts[0].kind, sum(part.rows for part in parts)), self._sequence


def _go_together(first: Body, other: Body) -> bool:
    if first.table is None or other.table is None:
        return first.table is None and other.table is None and first.kind == other.kind == NDJSON
    return bool(first.table.schema.equals(other.table.schema))


class Batch(NamedTuple):
    """A numbered batch of bodies; `before` is the number of the batch before."""

    body: Body
    number: int

    @property
    def before(self) -> int:
        """The number of the batch before."""
        return self.number - 1


class Publisher:
    """Sends batches in threads. While the server processes one batch, the next one is being sent.

    `send` takes a batch and a function that returns whether the batch before has no answer yet: then the server must
    wait for that one. It returns the answer.
    """

    def __init__(self, send: Callable[[Batch, Callable[[], bool]], dict[str, Any]], published: Published) -> None:
        self._send, self._published = send, published
        self._outbox = Outbox()
        self._changed = threading.Condition()
        self._sending: set[int] = set()  # numbers of batches that have no answer yet
        self._ended = self._hurry = False
        self._failure: BaseException | None = None
        self._threads = [threading.Thread(target=self._run, name="weft publish", daemon=True) for _ in range(AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def add(self, body: Body) -> None:
        """Have events sent; waits while too many wait. An earlier failure is raised here."""
        with self._changed:
            self._changed.wait_for(lambda: self._outbox.bytes < ROOM or self._failure is not None)
            self._raise()
            self._outbox.add(body)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is sent and answered; raises what went wrong."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failure is not None or not (self._outbox or self._sending))
            self._hurry = False
            self._raise()

    def close(self) -> None:
        """Send pending events, and close the connection."""
        try:
            self.flush()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            for thread in self._threads:
                thread.join()

    def _raise(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            failure: BaseException | None = None
            answer: dict[str, Any] | None = None
            try:
                answer = self._send(batch, partial(self._sending.__contains__, batch.before))
            except BaseException as problem:
                failure = problem
            with self._changed:
                if answer is not None:
                    self._published.add(answer)
                self._sending.discard(batch.number)
                self._failure = self._failure or failure
                self._changed.notify_all()

    def _next(self) -> Batch | None:
        """The next batch, when it is full or has waited for more; None at the end."""
        with self._changed:
            until: float | None = None
            while True:
                if not self._outbox:
                    if self._ended:
                        return None
                    until = None
                    self._changed.wait()
                    continue
                until = time.monotonic() + LINGER if until is None else until
                left = until - time.monotonic()
                if self._outbox.is_full or self._hurry or self._ended or left <= 0:
                    body, number = self._outbox.take()
                    self._sending.add(number)
                    self._changed.notify_all()
                    return Batch(body, number)
                self._changed.wait(left)
