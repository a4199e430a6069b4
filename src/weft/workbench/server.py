"""Serves the workbench: pages and service on one address of this machine, behind the guard."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from weft.errors import UsageError
from weft.workbench.guard import App, RequestGuard
from weft.workbench.isolation import Workers, WorkLimits
from weft.workbench.service import Workbench

LOOPBACK = "127.0.0.1"
LOCAL = frozenset({LOOPBACK, "localhost"})


@dataclass(frozen=True)
class Address:
    """Where the workbench is, and the token that it asks for."""

    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        """What a browser opens first."""
        return f"http://{self.host}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> list[str]:
        """The names by which requests may call it."""
        names = [self.host, LOOPBACK, "localhost", *(() if self.host in LOCAL else _names_here())]
        return [f"{name}:{self.port}" for name in dict.fromkeys(names)]


def workbench_app(bench: Workbench, address: Address, *, pages: bool = True) -> App:
    """The whole application; without `pages` the service alone."""
    try:
        from weft.workbench.api import application
    except ImportError:
        raise UsageError("the workbench needs more packages: pip install 'weft-cep[workbench]'") from None
    app = application(bench)
    if pages:
        from weft.workbench.pages import add_pages

        add_pages(app, bench)
    return RequestGuard(app, address.token, address.hosts)


def serve(
    folder: Path,
    host: str = LOOPBACK,
    port: int = 8765,
    *,
    announce: object = print,
    limits: WorkLimits | None = None,
) -> None:
    """Serve a project until interrupted; `limits`: what users' programs may take."""
    workers = Workers(limits or WorkLimits())
    bench = Workbench(folder, workers)
    try:
        import uvicorn
    except ImportError:
        raise UsageError("the workbench needs more packages: pip install 'weft-cep[workbench]'") from None
    address = Address(host, port or free_port(host), secrets.token_urlsafe(24))
    app = workbench_app(bench, address)
    assert callable(announce)
    announce(address)
    config = uvicorn.Config(app, host=address.host, port=address.port, log_level="warning", access_log=False)
    try:
        uvicorn.Server(config).run()
    finally:
        bench.close()
        workers.close()


def _names_here() -> list[str]:
    """Return the names under which this machine is reachable: its host name, and its addresses."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, family=socket.AF_INET)
    except OSError:
        found = []
    return [name, socket.getfqdn(), *(str(one[4][0]) for one in found)]


def free_port(host: str = LOOPBACK) -> int:
    """Return an unused port."""
    with socket.socket() as found:
        found.bind((host, 0))
        port: int = found.getsockname()[1]
        return port
