"""Who may do what: tokens with permissions, and requests that are meant for this server and come from allowed pages."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qs

from weft.errors import InputError, UsageError, did_you_mean

Permission = Literal["publish", "subscribe", "deploy"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
ALL = frozenset(PERMISSIONS)
OPEN = frozenset({"/health", "/docs", "/openapi.json"})  # tell nothing of events and queries
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SHORTEST = 8  # characters of a token

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Tokens:
    """Tokens, each with its permissions. Without tokens, everybody may do everything."""

    def __init__(self, permissions: Mapping[str, frozenset[Permission]] | None = None) -> None:
        self._known = {_digest(token): granted for token, granted in (permissions or {}).items()}

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return not self._known

    def granted(self, token: str | None) -> frozenset[Permission] | None:
        """Return the permissions of a token, or None. Digests are compared, so that timing reveals nothing."""
        return ALL if self.is_open else None if token is None else self._known.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def read_tokens(path: Path) -> Tokens:
    """Tokens of a file: one in a line, optionally followed by its permissions; `#` begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as problem:
        raise InputError(f"cannot read the tokens in {path}: {getattr(problem, 'strerror', None) or problem}") from None
    found: dict[str, frozenset[Permission]] = {}
    for number, line in enumerate(lines, 1):
        token, *given = line.partition("#")[0].replace(",", " ").split() or [""]
        if not token:
            continue
        if len(token) < SHORTEST:
            raise InputError(f"{path}:{number}: a token has at least {SHORTEST} characters")
        unknown = next((word for word in given if word not in PERMISSIONS), None)
        if unknown is not None:
            hint = did_you_mean(unknown, PERMISSIONS)
            raise InputError(f"{path}:{number}: there is no permission {unknown!r}; {hint}")
        found[token] = frozenset(word for word in PERMISSIONS if word in given) or ALL
    if not found:
        raise InputError(f"{path} has no tokens: write one in each line")
    return Tokens(found)


def hosts_of(host: str, port: int, more: Iterable[str] = (), *, usual_port: int = 80) -> frozenset[str]:
    """The `Host` headers of requests that are meant for this server: without the port, if it is the usual one."""
    names = [host, *LOOPBACK, *(() if host in LOOPBACK else _names_here())]
    bare = {f"[{name}]" if ":" in name else name for name in names}
    own = {f"{name}:{port}" for name in bare} | (bare if port == usual_port else set())
    return frozenset(one.lower() for one in own | set(more))


def _names_here() -> list[str]:
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None)
    except OSError:
        found = []
    return [name, socket.getfqdn(), *(str(one[4][0]) for one in found)]


def check_exposure(host: str, tokens: Tokens) -> None:
    """Refuse to give everybody in the network all permissions."""
    if tokens.is_open and host not in LOOPBACK:
        raise UsageError(f"--host {host} can be reached by others: give --token-file, so that not everybody may use it")


class Gate:
    """Checks host, origin and token of each request and each web socket."""

    def __init__(self, app: App, tokens: Tokens, hosts: frozenset[str], origins: Iterable[str] = ()) -> None:
        self._app, self._tokens, self._hosts = app, tokens, hosts
        own = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}
        self._origins = frozenset(own | set(origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or one socket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(headers)
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        origin = headers.get("origin")
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and origin is not None:
            await _allow(send, origin)
            return
        token = _token(scope, headers)
        granted = self._tokens.granted(token)
        if granted is None and scope["path"] not in OPEN:
            asked = "this needs a token: Authorization: Bearer …"
            await _refuse(scope, send, 401, asked if token is None else "this token is not known here")
            return
        scope.setdefault("state", {})["granted"] = granted or frozenset()
        await self._app(scope, receive, send if origin is None else _with_origin(send, origin))

    def _refused(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        if headers.get("host", "").lower() not in self._hosts:
            return 400, "this is not the address of the server; --allow-host NAME:PORT adds one"
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            return 403, f"pages of {origin} may not use this server; --origin {origin} allows it"
        return None


def _token(scope: Scope, headers: Mapping[str, str]) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    if scope["path"] == "/v1/matches":  # a browser's sockets have no headers of ours
        return next(iter(parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])), None)
    return None


def _with_origin(send: Send, origin: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(b"access-control-allow-origin", origin.encode()), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending


async def _allow(send: Send, origin: str) -> None:
    headers = [
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
        (b"access-control-allow-headers", b"authorization, content-type, last-event-id"),
        (b"vary", b"Origin"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why[:120]})
        return
    headers = [(b"content-type", b"application/json")]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"problem": why, "findings": []}).encode()})
