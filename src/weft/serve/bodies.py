"""Limits of the bodies of requests: how large each is, how long it takes, and how much of them is held at once."""

from __future__ import annotations

import asyncio

from fastapi import HTTPException

from weft.serve.permissions import App, Message, Receive, Scope, Send

CLOSED = {"Connection": "close"}  # what else the client sends is not read


class BodyLimits:
    """Middleware that refuses bodies that are too large (413), too slow (408), or too many at once (429)."""

    def __init__(self, app: App, most_bytes: int, seconds: float, room: int) -> None:
        self._app, self._most, self._seconds, self._room = app, most_bytes, seconds, room
        self._held = 0  # bytes of the bodies of all requests that have no answer yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that is checked while it comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)
        until = asyncio.get_running_loop().time() + self._seconds
        size, is_whole = 0, False

        async def checked() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            self._check_size(declared)
            message = await self._in_time(receive, until)
            part = len(message.get("body", b""))
            self._check_size(size + part)
            self._check_room(part)
            size += part
            self._held += part
            is_whole = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, checked, send)
        finally:
            self._held -= size

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise HTTPException(413, f"a body has at most {self._most:,} bytes: send the events in several", CLOSED)

    def _check_room(self, part: int) -> None:
        if self._held and self._held + part > self._room:
            raise HTTPException(429, "too many bodies come at once: try again in 1 s", {**CLOSED, "Retry-After": "1"})

    async def _in_time(self, receive: Receive, until: float) -> Message:
        try:
            async with asyncio.timeout_at(until):
                return await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {self._seconds:g} s", CLOSED) from None
