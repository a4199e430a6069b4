"""The public function that makes a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

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


def connect(
    url: str = "http://127.0.0.1:8787",
    token: str | None = None,
    *,
    asynchronous: bool = False,
    patience: float = 60.0,
    verify: bool | str = True,
    source: str | None = None,
) -> Client | AsyncClient:
    """A client of a program that `weft serve` runs: deploy queries, publish events, subscribe to matches.

    `token` is one that the server knows. `patience` is for how many seconds an unanswered request is retried. `verify`:
    whether the server's certificate is checked, or a file of certificates to check it by. `source` is what the server
    knows this publisher by; a unique one is generated unless it is given. With `asynchronous`, methods are coroutines.
    """
    try:
        from weft.client.asynchronous import AsyncClient
        from weft.client.connection import Client, Options
    except ImportError:
        raise UsageError(MISSING) from None
    options = Options(url, token, patience, verify, source)
    return AsyncClient(options) if asynchronous else Client(options)
