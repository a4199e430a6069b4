"""`http(s)://…`: a source is fetched once, or polled with `?every=SECONDS`; a sink gets matches by POST, with retries.

Options that are not weft's stay in the address.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pyarrow as pa

from weft.connectors.adapters.registry import Adapter, Incoming, Role
from weft.connectors.json_lines import JsonText
from weft.connectors.uris import Uri
from weft.connectors.writers import Writer
from weft.errors import InputError
from weft.runtime.writing.match_lines import json_lines

TIMEOUT = 30.0  # seconds for an answer
TRIES = 6  # in a row, before a place is given up
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds between tries
LARGEST = 1 << 30  # bytes of an answer
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses that may be others the next time
NDJSON = "application/x-ndjson"
SOURCE_OPTIONS = {
    "every": "seconds between two requests; without it there is one",
    "cursor": "an attribute whose last value is sent with the next request, as after=VALUE",
    "token": "sent as `Authorization: Bearer …`",
}
SINK_OPTIONS = {"tries": "how often a request is tried before the sink fails", "token": SOURCE_OPTIONS["token"]}


class _NoRedirect(HTTPRedirectHandler):
    """A token must not follow a redirection to another host."""

    def redirect_request(self, req: Request, *given: Any) -> Request | None:
        """Follow none that carries a token."""
        return None if req.has_header("Authorization") else super().redirect_request(req, *given)


_OPENER = build_opener(_NoRedirect)


def _lacks(uri: Uri, role: Role) -> str | None:
    if not uri.place:
        return f"it names no host: write {uri.scheme}://HOST/PATH"
    for name, least in (("every", 0.0), ("tries", 1.0)):
        given = uri.options.get(name)
        if given is not None and not _is_above(given, least):
            return f"{name} is a number, not {given!r}"
    return None


def _is_above(text: str, least: float) -> bool:
    try:
        return float(text) >= least
    except ValueError:
        return False


def address_of(uri: Uri, options: dict[str, str], **more: str) -> str:
    """The address without weft's own options, and with more of the server's."""
    given = {name: value for name, value in uri.options.items() if name not in options and name != "type"} | more
    return f"{uri.scheme}://{uri.place}{'?' * bool(given)}{urlencode(given)}"


def _headers(uri: Uri) -> dict[str, str]:
    token = uri.options.get("token")
    return {"User-Agent": "weft"} | ({} if token is None else {"Authorization": f"Bearer {token}"})


def answered(request: Request, tries: int = TRIES) -> tuple[bytes, Any] | None:
    """The body and headers of an answer, or None if nothing has changed there. What may pass is tried again."""
    pause, problem = FIRST_PAUSE, "no answer"
    for attempt in range(tries):
        if attempt:
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
        try:
            with _OPENER.open(request, timeout=TIMEOUT) as answer:
                body = answer.read(LARGEST + 1)
                if len(body) > LARGEST:
                    raise InputError(f"{request.full_url} answers with more than {LARGEST >> 30} GiB")
                return body, answer.headers
        except HTTPError as error:
            if error.code == 304:
                return None
            problem = f"status {error.code} {error.reason}"
            after = error.headers.get("Retry-After", "")
            pause = float(after) if after.isdigit() else pause
            if error.code not in PASSING:
                break
        except (URLError, HTTPException, OSError) as error:
            problem = str(getattr(error, "reason", error))
    raise InputError(f"{request.full_url}: {problem}")


class Poll:
    """Asks an address again and again. An event that the answer before had, too, is not told again."""

    def __init__(self, uri: Uri) -> None:
        self._uri = uri
        self._every = float(uri.options["every"]) if "every" in uri.options else None
        self._cursor = uri.options.get("cursor")
        self._seen: frozenset[bytes] = frozenset()
        self._tag: str | None = None
        self._after: dict[str, str] = {}

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self._fetched()
            if self._every is None:
                return
            time.sleep(self._every)

    def _fetched(self) -> Iterator[Any]:
        request = Request(address_of(self._uri, SOURCE_OPTIONS, **self._after), headers=_headers(self._uri))
        if self._tag is not None:
            request.add_header("If-None-Match", self._tag)
        found = answered(request)
        if found is None:
            return
        body, headers = found
        self._tag = headers.get("ETag")
        fresh = self._fresh(_lines_of(body))
        if fresh:
            self._note(fresh[-1])
            yield JsonText(b"\n".join(fresh), self._uri.text)

    def _fresh(self, lines: list[bytes]) -> list[bytes]:
        if self._every is None:
            return lines
        before, self._seen = self._seen, frozenset(lines)
        return [line for line in lines if line not in before]

    def _note(self, last: bytes) -> None:
        if self._cursor is not None:
            try:
                value = json.loads(last)[self._cursor]
            except (ValueError, LookupError, TypeError):
                raise InputError(f"{self._uri}: its last event has no attribute {self._cursor!r} (cursor)") from None
            self._after = {"after": str(value)}


def _lines_of(body: bytes) -> list[bytes]:
    """The events of an answer, each as a line: it is JSON lines, or one JSON array."""
    if body.lstrip()[:1] == b"[":
        try:
            return [json.dumps(event, ensure_ascii=False).encode() for event in json.loads(body)]
        except (ValueError, RecursionError):
            pass  # its lines are rejected one by one
    return [line for line in body.split(b"\n") if line.strip()]


class Post:
    """Sends matches as JSON lines; a request that fails is sent again with the same `Idempotency-Key`."""

    def __init__(self, uri: Uri) -> None:
        self._uri = uri
        self._address = address_of(uri, SINK_OPTIONS)
        self._tries = int(float(uri.options.get("tries", TRIES)))

    def write(self, rows: pa.RecordBatch) -> None:
        """Send rows of MATCH_SCHEMA; returns when they are taken."""
        if not len(rows):
            return
        key = hashlib.blake2b("\n".join(rows["id"].to_pylist()).encode(), digest_size=16).hexdigest()
        headers = {**_headers(self._uri), "Content-Type": NDJSON, "Idempotency-Key": key}
        answered(Request(self._address, bytes(json_lines(rows)), headers, method="POST"), self._tries)

    def close(self) -> None:
        """Nothing is missing."""


def _source(uri: Uri) -> Incoming:
    return Incoming(items=Poll(uri), is_live="every" in uri.options)


def _sink(uri: Uri) -> Writer:
    return Post(uri)


def _adapter(scheme: str) -> Adapter:
    return Adapter(
        scheme,
        f"JSON lines over HTTP: {scheme}://HOST/PATH, polled with ?every=SECONDS",
        _source,
        _sink,
        source_options=SOURCE_OPTIONS,
        sink_options=SINK_OPTIONS,
        passes_options=True,
        lacks=_lacks,
    )


HTTP, HTTPS = _adapter("http"), _adapter("https")
