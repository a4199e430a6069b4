"""`weft.connect(…, asynchronous=True)`: the same client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Self

import httpx

from weft.client.answers import RETRIED, Cursor, MessageParser, Published, Remote, checked, remote_of
from weft.client.connection import STREAM_TIMEOUT, ConnectionOptions, Pauses, language_of, quoted, text_of, unreachable
from weft.client.encoding import Body, encoded
from weft.client.publishing import LINGER, ROOM, Outbox
from weft.runtime.data.matches import Match


class AsyncClient:
    """A program that runs elsewhere, for asyncio; see `Client` for what each method does."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._http = httpx.AsyncClient(**options.http)
        self.published = Published()
        self._outbox = Outbox()
        self._changed = asyncio.Condition()
        self._is_sending = self._ended = self._hurry = False
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    async def deploy(self, program: str | Path, language: str | None = None, name: str | None = None) -> Remote:
        """Deploy queries.

        Args:
            program: A text, the path of a file, or a `weft.Pattern`.
            language: The language of a text, where its first word does not tell it.
            name: What the program is called on the server.
        """
        text, stem = text_of(program)
        given = {"text": text, "language": language or language_of(program), "name": name or stem}
        return remote_of(await self._asked("POST", "/v1/queries", json=given))

    async def replace(self, name: str, program: str | Path, language: str | None = None) -> Remote:
        """Let another text take a query's place.

        Args:
            name: What the program is called on the server.
            program: What takes its place: a text, the path of a file, or a `weft.Pattern`.
            language: The language of a text, where its first word does not tell it.
        """
        given = {"text": text_of(program)[0], "language": language or language_of(program)}
        return remote_of(await self._asked("PUT", f"/v1/queries/{quoted(name)}", json=given))

    async def remove(self, name: str) -> None:
        """Remove a query.

        Args:
            name: What the program is called on the server.
        """
        await self._asked("DELETE", f"/v1/queries/{quoted(name)}")

    async def queries(self) -> list[dict[str, Any]]:
        """The queries that run."""
        found: list[dict[str, Any]] = await self._asked("GET", "/v1/queries")
        return found

    async def stats(self) -> dict[str, Any]:
        """Return the counters of the server and the sizes of its queues."""
        found: dict[str, Any] = await self._asked("GET", "/v1/stats")
        return found

    async def advance(self, time: int) -> None:
        """No event that ends before `time` will come.

        Args:
            time: No event that ends before this time will come.
        """
        await self.flush()
        await self._asked("POST", "/v1/time", json={"time": time})

    async def publish(self, events: Any) -> None:
        """Publish events, in batches, in the background.

        Args:
            events: Events, as `weft.detect` takes them.
        """
        for body in encoded(events):
            async with self._changed:
                self._task = self._task or asyncio.create_task(self._run())
                await self._changed.wait_for(lambda: self._outbox.bytes < ROOM or self._failure is not None)
                self._raise()
                self._outbox.add(body)
                self._changed.notify_all()

    async def flush(self) -> Published:
        """Wait until all events that were published are answered."""
        async with self._changed:
            self._hurry = True
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._failure is not None or not (self._outbox or self._is_sending))
            self._hurry = False
            self._raise()
        return self.published

    def _raise(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def _run(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._outbox) or self._ended)
                if not self._outbox:
                    return
                is_full = self._outbox.is_full or self._hurry
            if not is_full:
                await asyncio.sleep(LINGER)
            async with self._changed:
                batch, sequence = self._outbox.take()
                self._is_sending = True
                self._changed.notify_all()
            failure: BaseException | None = None
            try:
                self.published.add(await self._send(batch, sequence))
            except Exception as problem:
                failure = problem
            async with self._changed:
                self._is_sending = False
                self._failure = self._failure or failure
                self._changed.notify_all()

    async def _send(self, batch: Body, sequence: int) -> dict[str, Any]:
        given = {"source": self._options.source, "sequence": sequence}
        headers = {"Content-Type": batch.kind}
        answer: dict[str, Any] = await self._asked(
            "POST", "/v1/events", params=given, headers=headers, content=batch.content, retry=True
        )
        return answer

    def subscribe(
        self, query: str = "*", where: str | None = None, after: str | None = None
    ) -> AsyncRemoteSubscription:
        """The matches of a query, from now on; a connection that breaks is made again after the last match.

        `async for` begins when its first match is asked for; after `await client.subscribe(…)` the server knows of it.

        Args:
            query: The query whose matches are wanted (`*`: all), or a type of the input.
            where: A condition on the attributes, as text.
            after: The id of the last match that was received: those after it come first.
        """
        return AsyncRemoteSubscription(self._http, self._options, query, where, after)

    async def close(self) -> None:
        """Send pending events, and close the connection."""
        try:
            if self._task is not None:
                await self.flush()
        finally:
            async with self._changed:
                self._ended = True
                self._changed.notify_all()
            if self._task is not None:
                await self._task
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _asked(self, method: str, path: str, *, retry: bool = False, **given: Any) -> Any:
        pauses = Pauses(self._options.patience)
        while True:
            try:
                answer = await self._http.request(method, path, **given)
                if not (retry and answer.status_code in RETRIED and pauses.may_wait):
                    return checked(answer.status_code, answer.text)
                pause = pauses.next(answer.headers.get("Retry-After"))
            except httpx.TransportError as problem:
                if not (retry and pauses.may_wait):
                    raise unreachable(self._options.url, problem) from None
                pause = pauses.next(None)
            await asyncio.sleep(pause)


class AsyncRemoteSubscription:
    """An asynchronous iterator over matches; `missed` counts those that the server says were lost."""

    def __init__(
        self, http: httpx.AsyncClient, options: ConnectionOptions, query: str, where: str | None, after: str | None
    ) -> None:
        self._http, self._options = http, options
        self._given = {"query": query} | ({} if where is None else {"where": where})
        self._cursor = Cursor(after)
        self._stream: httpx.Response | None = None
        self._matches = self._iterated()

    @property
    def missed(self) -> int:
        """How many matches were lost, by number."""
        return self._cursor.missed

    @property
    def last_id(self) -> str | None:
        """The id after which another subscription can resume."""
        return self._cursor.after

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._begun().__await__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Match:
        return await anext(self._matches)

    async def close(self) -> None:
        """End it."""
        await self._matches.aclose()
        if self._stream is not None:
            await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return await self._begun()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _begun(self) -> Self:
        self._stream = self._stream or await self._opened()
        return self

    async def _opened(self) -> httpx.Response:
        pauses = Pauses(self._options.patience)
        while True:
            given = self._given | ({} if self._cursor.after is None else {"after": self._cursor.after})
            try:
                request = self._http.build_request("GET", "/v1/matches", params=given, timeout=STREAM_TIMEOUT)
                answer = await self._http.send(request, stream=True)
                if answer.status_code < 400:
                    return answer
                await answer.aread()
                if not (answer.status_code in RETRIED and pauses.may_wait):
                    checked(answer.status_code, answer.text)
                pause = pauses.next(answer.headers.get("Retry-After"))
            except httpx.TransportError as problem:
                if not pauses.may_wait:
                    raise unreachable(self._options.url, problem) from None
                pause = pauses.next(None)
            await asyncio.sleep(pause)

    async def _iterated(self) -> AsyncGenerator[Match]:
        while True:
            parser = MessageParser()
            stream = self._stream = self._stream or await self._opened()
            try:
                async for part in stream.aiter_bytes():
                    for message in parser.messages(part):
                        match = self._cursor.take(message)
                        if match is not None:
                            yield match
            except (httpx.TransportError, httpx.StreamError):
                pass  # it is made again
            finally:
                await stream.aclose()
                self._stream = None
