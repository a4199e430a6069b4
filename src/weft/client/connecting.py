"""The public function that makes a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from weft.described import described
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.client.asynchronous import AsyncClient
    from weft.client.connection import Client

MISSING = "weft.connect needs more packages: pip install 'weft-cep[serve]'"


@overload
def connect(
    url: str,
    token: str | None = None,
    *,
    asynchronous: Literal[False] = False,
    patience: float = 60.0,
    verify: bool | str = True,
    source: str | None = None,
) -> Client: ...


@overload
def connect(
    url: str,
    token: str | None = None,
    *,
    asynchronous: Literal[True],
    patience: float = 60.0,
    verify: bool | str = True,
    source: str | None = None,
) -> AsyncClient: ...


@described()
def connect(
    url: str = "http://127.0.0.1:8787",
    token: str | None = None,
    *,
    asynchronous: bool = False,
    patience: float = 60.0,
    verify: bool | str = True,
    source: str | None = None,
) -> Client | AsyncClient:
    """Connect to a program that `weft serve` runs: deploy queries, publish events, subscribe to matches."""
    try:
        from weft.client.asynchronous import AsyncClient
        from weft.client.connection import Client, ConnectionOptions
    except ImportError:
        raise UsageError(MISSING) from None
    options = ConnectionOptions(url, token, patience, verify, source)
    return AsyncClient(options) if asynchronous else Client(options)
