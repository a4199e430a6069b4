"""Connections of a server: how many there may be, and how long the head of a request may take."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LOG = logging.getLogger("weft.serve")
HEAD_SECONDS = 20.0  # in which a request must have begun, with all its headers
MOST_FILES = 65_536  # that are asked of the operating system: each connection is one
SPARED = 64  # files that are not connections


class BoundedConnection(HttpToolsProtocol):
    """A connection that ends when the head of a request takes too long, or when too many others are open."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many connections."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            transport.abort()
            return
        self._await_head()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        if self._head is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """Begin to answer a request."""
        self._forget_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._forget_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def most_connections() -> int:
    """Ask the operating system for as many open files as it gives; how many connections they allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(SPARED, (MOST_FILES if soft == resource.RLIM_INFINITY else soft) - SPARED)


def note_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Write what failed outside requests to the log, in one line."""
    failure = context.get("exception")
    LOG.error("%s%s", context["message"], "" if failure is None else f": {type(failure).__name__}: {failure}")
