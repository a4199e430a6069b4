"""Events wait in a client and are sent in batches, in the background, as fast as the server takes them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.client.answers import Published
from weft.client.encoding import NDJSON, Body

BATCH_BYTES = 1 << 20  # of a batch of lines
ROOM = 32 << 20  # bytes that may wait before `publish` does
LINGER = 0.02  # seconds for which a batch waits for more


class Outbox:
    """Bodies that wait, and which of them go together. Numbers of batches begin with 1."""

    def __init__(self) -> None:
        self.bytes = 0
        self._bodies: deque[Body] = deque()
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def add(self, body: Body) -> None:
        """Let one more wait."""
        self._bodies.append(body)
        self.bytes += len(body.content)

    @property
    def is_full(self) -> bool:
        """Whether a batch need not wait for more."""
        is_table = bool(self._bodies) and self._bodies[0].kind != NDJSON
        return is_table or (len(self._bodies) > 1 and self.bytes >= BATCH_BYTES)

    def take(self) -> tuple[Body, int]:
        """The next batch, and its number: lines that wait one after the other go together."""
        first = self._bodies.popleft()
        parts, size, rows = [first.content], len(first.content), first.rows
        while self._bodies and first.kind == NDJSON == self._bodies[0].kind and size < BATCH_BYTES:
            body = self._bodies.popleft()
            parts.append(body.content)
            size += len(body.content)
            rows += body.rows
        self.bytes -= size
        self._sequence += 1
        if len(parts) > 1:
            parts = [part if part.endswith(b"\n") else part + b"\n" for part in parts]
        return Body(b"".join(parts), first.kind, rows), self._sequence


class Publisher:
    """Sends what it is given in a thread; `send` takes a batch and its number, and returns the answer."""

    def __init__(self, send: Callable[[Body, int], dict[str, Any]], published: Published) -> None:
        self._send, self._published = send, published
        self._outbox = Outbox()
        self._changed = threading.Condition()
        self._is_sending = self._ended = self._hurry = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="weft publish", daemon=True)
        self._thread.start()

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
            self._changed.wait_for(lambda: self._failure is not None or not (self._outbox or self._is_sending))
            self._hurry = False
            self._raise()

    def close(self) -> None:
        """Send what waits, and end."""
        try:
            self.flush()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            self._thread.join()

    def _raise(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._outbox or self._ended)
                if not self._outbox:
                    return
                until = time.monotonic() + LINGER
                while (
                    not (self._outbox.is_full or self._hurry or self._ended) and (left := until - time.monotonic()) > 0
                ):
                    self._changed.wait(left)
                batch, sequence = self._outbox.take()
                self._is_sending = True
                self._changed.notify_all()
            failure: BaseException | None = None
            try:
                self._published.add(self._send(batch, sequence))
            except BaseException as problem:
                failure = problem
            with self._changed:
                self._is_sending = False
                self._failure = self._failure or failure
                self._changed.notify_all()
