"""`weft.connect`: a client of a server, synchronous."""

from __future__ import annotations

import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from weft.client.answers import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    RETRIED,
    Cursor,
    MessageParser,
    Published,
    Remote,
    ServiceError,
    checked,
    remote_of,
)
from weft.client.encoding import bodies_of_place, encoded
from weft.client.publishing import Batch, Publisher
from weft.errors import UsageError
from weft.languages import LANGUAGES
from weft.languages.texts import path_of_program, read_program
from weft.runtime.data.matches import Match

STREAM_TIMEOUT = httpx.Timeout(10.0, read=60.0)  # a stream says something every 15 s


class ConnectionOptions:
    """How a client talks to its server: the address, the token, and for how long it tries."""

    def __init__(self, url: str, token: str | None, patience: float, verify: bool | str, source: str | None) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise UsageError(f"the address of a server begins with http:// or https://, not {url!r}")
        self.url = url.rstrip("/")
        self.patience = patience
        self.source = source or uuid.uuid4().hex
        self.http: dict[str, Any] = {
            "base_url": self.url,
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "verify": ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify,
            "timeout": httpx.Timeout(10.0, read=max(60.0, patience)),
            "trust_env": False,
        }


class Client:
    """A program that runs elsewhere; see `weft.connect`. Its methods may be called from several threads."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._http = httpx.Client(**options.http)
        self._publisher: Publisher | None = None
        self.published = Published()

    # -- queries --------------------------------------------------------------------------------

    def deploy(self, program: str | Path, language: str | None = None, name: str | None = None) -> Remote:
        """Deploy queries, given as text or as a file; raises ServiceError, whose `findings` say what is wrong.

        Args:
            program: A text, the path of a file, or a `weft.Pattern`.
            language: The language of a text, where its first word does not tell it.
            name: What the program is called on the server.
        """
        text, stem = text_of(program)
        given = {"text": text, "language": language or language_of(program), "name": name or stem}
        return remote_of(self._asked("POST", "/v1/queries", json=given))

    def replace(self, name: str, program: str | Path, language: str | None = None) -> Remote:
        """Let another text take a query's place; what stays the same keeps its state.

        Args:
            name: What the program is called on the server.
            program: What takes its place: a text, the path of a file, or a `weft.Pattern`.
            language: The language of a text, where its first word does not tell it.
        """
        given = {"text": text_of(program)[0], "language": language or language_of(program)}
        return remote_of(self._asked("PUT", f"/v1/queries/{quoted(name)}", json=given))

    def remove(self, name: str) -> None:
        """Remove a query.

        Args:
            name: What the program is called on the server.
        """
        self._asked("DELETE", f"/v1/queries/{quoted(name)}")

    def queries(self) -> list[dict[str, Any]]:
        """The queries that run, with their texts."""
        found: list[dict[str, Any]] = self._asked("GET", "/v1/queries")
        return found

    # -- events ---------------------------------------------------------------------------------

    def publish(self, events: Any) -> None:
        """Publish events: dicts, Arrow tables, pandas or Polars frames. They are sent in batches, in the background.

        Waits when many wait already, since the server takes no more. `flush` waits for the answers, which `published`
        counts; an error of an earlier batch is raised here. A batch that got no answer is sent again, and counts once.

        Args:
            events: Events, as `weft.detect` takes them.
        """
        for body in encoded(events):
            self._sending().add(body)

    def publish_place(self, place: str) -> None:
        """Publish the events of a file, a folder or a URI.

        Args:
            place: A file or a URI of events, as `weft publish` takes it.
        """
        for body in bodies_of_place(place):
            self._sending().add(body)

    def flush(self) -> Published:
        """Wait until all events that were published are answered; what became of them."""
        if self._publisher is not None:
            self._publisher.flush()
        return self.published

    def advance(self, time: int) -> None:
        """No event that ends before `time` will come: what waited for that is decided.

        Args:
            time: No event that ends before this time will come.
        """
        self.flush()
        self._asked("POST", "/v1/time", json={"time": time})

    def _sending(self) -> Publisher:
        if self._publisher is None:
            self._publisher = Publisher(self._send, self.published)
        return self._publisher

    def _send(self, batch: Batch, waits: Callable[[], bool]) -> dict[str, Any]:
        """Send a batch until it is answered; the server waits for the one before as long as that is on its way."""
        given = {"source": self._options.source, "sequence": batch.number}

        def numbered() -> dict[str, Any]:
            return given | {"after": batch.before} if waits() else given

        headers = {"Content-Type": batch.body.kind}
        answer: dict[str, Any] = self._asked(
            "POST", "/v1/events", given=numbered, headers=headers, content=batch.body.content, retry=True
        )
        return answer

    # -- matches --------------------------------------------------------------------------------

    def subscribe(self, query: str = "*", where: str | None = None, after: str | None = None) -> RemoteSubscription:
        """The matches of a query (`*`: of all; or events of a type of the input) as an iterator, from now on.

        When it returns, the server knows of it. A connection that breaks is made again, and goes on after the last
        match that came. With `after`, matches after that id come first, as far as the server's log has them.

        Args:
            query: The query whose matches are wanted (`*`: all), or a type of the input.
            where: A condition on the attributes, as text.
            after: The id of the last match that was received: those after it come first.
        """
        return RemoteSubscription(self._options, query, where, after)

    # -- the server -----------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Return the counters of the server and the sizes of its queues."""
        found: dict[str, Any] = self._asked("GET", "/v1/stats")
        return found

    def plan(self) -> str:
        """How the queries run there."""
        return str(self._asked("GET", "/v1/plan"))

    def close(self) -> None:
        """Send pending events, and close the connection."""
        try:
            if self._publisher is not None:
                self._publisher.close()
                self._publisher = None
        finally:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _asked(
        self, method: str, path: str, *, retry: bool = False, given: Callable[[], Any] = dict, **more: Any
    ) -> Any:
        """The answer to a request; with `retry`, one that is refused for now, or breaks, is sent again for a while.

        `given` are parameters of the address, asked for each time.
        """
        pauses = Pauses(self._options.patience)
        while True:
            try:
                answer = self._http.request(method, path, params=given(), **more)
                if not (retry and answer.status_code in RETRIED and pauses.may_wait):
                    return checked(answer.status_code, answer.text)
                pause = pauses.next(answer.headers.get("Retry-After"))
            except httpx.TransportError as problem:
                if not (retry and pauses.may_wait):
                    raise unreachable(self._options.url, problem) from None
                pause = pauses.next(None)
            time.sleep(pause)


class RemoteSubscription:
    """An iterator over matches; `missed` counts those that the server says were lost. `close` ends it."""

    def __init__(self, options: ConnectionOptions, query: str, where: str | None, after: str | None) -> None:
        self._options = options
        self._given = {"query": query} | ({} if where is None else {"where": where})
        self._cursor = Cursor(after)
        self._http = httpx.Client(**{**options.http, "timeout": STREAM_TIMEOUT})
        self._closed = False
        self._stream: httpx.Response | None = self._opened()
        self._matches = self._iterated()

    @property
    def missed(self) -> int:
        """How many matches were lost, by number."""
        return self._cursor.missed

    @property
    def last_id(self) -> str | None:
        """The id after which another subscription can resume."""
        return self._cursor.after

    def __iter__(self) -> Iterator[Match]:
        return self

    def __next__(self) -> Match:
        return next(self._matches)

    def _opened(self) -> httpx.Response:
        given = dict(self._given) | ({} if self._cursor.after is None else {"after": self._cursor.after})
        pauses = Pauses(self._options.patience)
        while True:
            try:
                request = self._http.build_request("GET", "/v1/matches", params=given)
                answer = self._http.send(request, stream=True)
                if answer.status_code < 400:
                    return answer
                answer.read()
                if not (answer.status_code in RETRIED and pauses.may_wait):
                    checked(answer.status_code, answer.text)
                pause = pauses.next(answer.headers.get("Retry-After"))
            except httpx.TransportError as problem:
                if not pauses.may_wait:
                    raise unreachable(self._options.url, problem) from None
                pause = pauses.next(None)
            time.sleep(pause)

    def _iterated(self) -> Iterator[Match]:
        while not self._closed:
            parser = MessageParser()
            try:
                self._stream = self._stream or self._opened()
                for part in self._stream.iter_bytes():
                    for message in parser.messages(part):
                        match = self._cursor.take(message)
                        if match is not None:
                            yield match
            except (httpx.TransportError, httpx.StreamError):
                pass  # it is made again
            except RuntimeError:
                if not self._closed:  # the client is closed while another thread reads
                    raise
            self._stream = None

    def close(self) -> None:
        """End it."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pauses:
    """Increasing pauses between attempts, until the time limit."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._pause = FIRST_PAUSE

    @property
    def may_wait(self) -> bool:
        """Whether to try again."""
        return time.monotonic() < self._until

    def next(self, asked: str | None) -> float:
        """Return how long to wait now, at least as long as the server asks for."""
        pause, self._pause = self._pause, min(LONGEST_PAUSE, 2 * self._pause)
        return float(asked) if asked and asked.isdigit() else pause


def unreachable(url: str, problem: Exception) -> ServiceError:
    """Return the error for a server that does not answer."""
    hint = (
        "; check it by its own certificate: verify='cert.pem' (--certificates)" if "CERTIFICATE" in str(problem) else ""
    )
    return ServiceError(f"the server at {url} cannot be reached: {problem or type(problem).__name__}{hint}")


def quoted(name: str) -> str:
    """A name as a part of an address."""
    from urllib.parse import quote

    return quote(name, safe="")


def text_of(program: str | Path) -> tuple[str, str | None]:
    """The text of a program, and the stem of its file."""
    path = path_of_program(program)
    return (str(program), None) if path is None else (read_program(path), path.stem)


def language_of(program: str | Path) -> str | None:
    """The language that a file's ending tells; of other files and of texts the server finds it out."""
    path = path_of_program(program)
    endings = {language.ending: language.name for language in LANGUAGES}
    return None if path is None else endings.get(path.suffix.lower())
