"""Limits of the bodies of requests: how large each is, how long it takes, and how much of them is held at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fastapi import HTTPException

from weft.serve.permissions import App, Message, Receive, Scope, Send

CLOSED = {"Connection": "close"}  # what else the client sends is not used
LINGER = 2.0  # seconds for which the rest of a refused body is read and dropped


class BodyLimits:
    """Middleware that refuses bodies that are too large (413), too slow (408), or too many at once (429)."""

    def __init__(self, app: App, most_bytes: int, seconds: float, room: int) -> None:
        self._app, self.most, self.seconds, self._room = app, most_bytes, seconds, room
        self._held = 0  # bytes of the bodies of all requests that have no answer yet, those that are announced too

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that is checked while it arrives."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(self, dict(scope["headers"]), receive)

        async def answered(message: Message) -> None:
            if body.is_whole or message["type"] != "http.response.body" or message.get("more_body", False):
                await send(message)
                return
            # A connection that is closed while its client still sends is reset, and the answer may be lost.
            await send({**message, "more_body": True})
            await body.drop_rest()
            await send({"type": "http.response.body", "body": b""})

        try:
            await self._app(scope, body.receive, answered)
        finally:
            self._held -= body.held

    def hold(self, wanted: int, held: int) -> None:
        """Reserve `wanted` bytes in all for a body that has reserved `held` so far, or refuse it."""
        others = self._held - held
        if others and others + wanted > self._room:
            raise HTTPException(429, "too many bodies come at once: try again in 1 s", {**CLOSED, "Retry-After": "1"})
        self._held = others + wanted


class _Body:
    """The body of one request: `held` bytes are counted for it, and it `is_whole` when all of it has come."""

    def __init__(self, limits: BodyLimits, headers: dict[bytes, bytes], receive: Receive) -> None:
        self._limits, self._receive = limits, receive
        self._declared = int(headers.get(b"content-length", 0))
        self._until = asyncio.get_running_loop().time() + limits.seconds
        self._size = self.held = 0
        self.is_whole = not self._declared and b"transfer-encoding" not in headers

    async def receive(self) -> Message:
        """Return the next part of the body, or the message after it."""
        if self.is_whole:
            return await self._receive()
        # All that is announced is held before any of it comes: bodies at once must not keep each other from ending.
        self._hold(self._declared)
        message = await self._in_time()
        self._size += len(message.get("body", b""))
        self._hold(self._size)
        self.is_whole = not message.get("more_body", False)
        return message

    async def drop_rest(self) -> None:
        """Read and discard the rest of a body that was not accepted, for a limited time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while (await self._receive()).get("more_body", False):
                    pass

    def _hold(self, size: int) -> None:
        if size > self._limits.most:
            detail = f"a body has at most {self._limits.most:,} bytes: send the events in several"
            raise HTTPException(413, detail, CLOSED)
        if size > self.held:
            self._limits.hold(size, self.held)
            self.held = size

    async def _in_time(self) -> Message:
        try:
            async with asyncio.timeout_at(self._until):
                return await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {self._limits.seconds:g} s", CLOSED) from None
