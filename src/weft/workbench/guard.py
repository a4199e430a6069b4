"""Who may use the workbench: those who have its token, from its own pages, on its own address.

The token comes once in the address that `weft web` prints; the browser keeps it as a cookie that no script and no other
site can use. Programs send it as `Authorization: Bearer …`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

COOKIE = "weft"
LARGEST_BODY = 16 << 20  # bytes of a request; larger samples are files of the project
OPEN = frozenset({"/health"})  # says nothing about the project
# The pages' library needs scripts in the page; nothing is loaded from elsewhere, and no other page may show these.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self' {}; frame-ancestors 'none'; base-uri 'self'; "
    "form-action 'self'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class RequestGuard:
    """Stands before the whole application, its web sockets included."""

    def __init__(self, app: App, token: str, hosts: Iterable[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)
        sockets = " ".join(f"ws://{host}" for host in sorted(self._hosts))  # 'self' is not enough for older browsers
        self._headers = {"content-security-policy": POLICY.format(sockets), **HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one socket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(headers)
        if refused is not None:
            await _refuse(scope, send, *refused)
        elif self._brings_token(scope):
            await _redirect(send, scope["path"], self._token)
        elif scope["path"] in OPEN or self._knows_token(headers):
            if scope["type"] == "http":
                limited = await _limited(headers, receive)
                if limited is None:
                    await _refuse(scope, send, 413, f"a request has at most {LARGEST_BODY >> 20} MiB")
                    return
                receive = limited
            await self._app(scope, receive, _with_headers(send, self._headers))
        else:
            await _refuse(scope, send, 401, "this needs the token: open the address that `weft web` printed")

    def _refused(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Why a request is not ours: it was meant for another host, or another site sent it."""
        if headers.get("host") not in self._hosts:
            return 400, "this is not the address of the workbench"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return 403, "another site may not use the workbench"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "another site may not use the workbench"
        return None

    def _brings_token(self, scope: Scope) -> bool:
        """Whether the address has the token in it, as the one that is printed."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith("/api"):
            return False
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        return bool(given) and self._is_token(given[0])

    def _knows_token(self, headers: Mapping[str, str]) -> bool:
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and self._is_token(bearer.removeprefix("Bearer ")):
            return True
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return kept is not None and self._is_token(kept.value)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


async def _limited(headers: Mapping[str, str], receive: Receive) -> Receive | None:
    """What receives the body once more, which has been read, or None if it is too large."""
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_BODY:
        return None
    waiting: list[Message] = []
    size = 0
    while not waiting or waiting[-1].get("more_body", False):
        message = await receive()
        waiting.append(message)
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            return None

    async def again() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return again


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in headers.items()]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending


async def _redirect(send: Send, path: str, token: str) -> None:
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
    # Only a path of ours: "//elsewhere" would be another site.
    place = "/" + path.lstrip("/\\")
    headers = [(b"location", place.encode("latin-1", "replace")), (b"set-cookie", cookie.encode())]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
