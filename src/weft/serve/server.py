"""Runs a server: its sockets, TLS, and the end in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import InputError, UsageError
from weft.serve.permissions import App, Gate, Tokens, check_exposure, hosts_of
from weft.serve.service import Service

MISSING = "weft serve needs more packages: pip install 'weft-cep[serve]'"
LOG = logging.getLogger("weft.serve")


@dataclass(frozen=True)
class Endpoint:
    """The address of a server, and its permissions."""

    host: str = "127.0.0.1"
    port: int = 8787
    tokens: Tokens = field(default_factory=Tokens)
    certificate: Path | None = None
    key: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        """`https` with a certificate."""
        return "http" if self.certificate is None else "https"


def gated(service: Service, address: Endpoint, port: int) -> App:
    """The whole application, behind its gate."""
    try:
        from weft.serve.app import application
    except ImportError:
        raise UsageError(MISSING) from None
    usual_port = 80 if address.certificate is None else 443
    hosts = hosts_of(address.host, port, address.allow_hosts, usual_port=usual_port)
    return Gate(application(service), address.tokens, hosts, address.origins)


def listen(address: Endpoint) -> socket.socket:
    """The socket of a server; it knows the port that was chosen."""
    check_exposure(address.host, address.tokens)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=2048)
    except OSError as problem:
        place = f"{address.host}:{address.port}"
        raise InputError(f"cannot listen at {place}: {problem.strerror or problem}; give another --port") from None


def serve(service: Service, address: Endpoint, opened: socket.socket, announce: Callable[[str], Any]) -> None:
    """Serve until SIGINT or SIGTERM; then finish the queued commands and save the state."""
    try:
        import uvicorn

        from weft.serve.connections import BoundedConnection, most_connections, note_failure
    except ImportError:
        raise UsageError(MISSING) from None
    port = opened.getsockname()[1]
    try:
        config = uvicorn.Config(
            gated(service, address, port),
            log_level="warning",
            access_log=False,
            ssl_certfile=None if address.certificate is None else str(address.certificate),
            ssl_keyfile=None if address.key is None else str(address.key),
            http=BoundedConnection,
            limit_concurrency=most_connections(),
            ws_max_size=1 << 16,
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        config.load()
    except OSError as problem:
        raise InputError(f"the certificate or its key cannot be used: {problem.strerror or problem}") from None
    server = uvicorn.Server(config)
    for number in (signal.SIGINT, signal.SIGTERM):  # it is raised again when all is sent; the end is in order then
        signal.signal(number, lambda *_: None)
    host = f"[{address.host}]" if ":" in address.host else address.host
    announce(f"{address.scheme}://{host}:{port}")

    async def serving() -> None:
        asyncio.get_running_loop().set_exception_handler(note_failure)
        await server.serve([opened])

    try:
        asyncio.run(serving())
    finally:
        service.close()
        opened.close()
