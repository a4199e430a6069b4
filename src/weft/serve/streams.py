"""Matches to subscribers over a WebSocket, or as server-sent events: one match as JSON in each message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.websockets import WebSocket, WebSocketDisconnect

from weft.serve.hub import Gap, Subscriber
from weft.serve.match_log import LoggedMatch
from weft.serve.service import Service

ALIVE_EVERY = 15.0  # seconds between two signs of life of a stream without matches
AT_ONCE = 256  # matches in one write


async def send_to_socket(socket: WebSocket, service: Service, subscriber: Subscriber, ready: asyncio.Event) -> None:
    """Send matches until the other side disconnects."""
    sending = asyncio.create_task(_sending(socket, subscriber, ready))
    try:
        while not sending.done():
            hearing = asyncio.create_task(socket.receive())
            done, _ = await asyncio.wait({sending, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if hearing not in done:
                hearing.cancel()
                break
            if hearing.result()["type"] == "websocket.disconnect":
                break  # what else subscribers say means nothing
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        sending.cancel()
        service.leave(subscriber)


async def _sending(socket: WebSocket, subscriber: Subscriber, ready: asyncio.Event) -> None:
    while True:
        await ready.wait()
        ready.clear()
        for item in subscriber.take():
            await socket.send_text(item.line.decode())


async def as_server_sent(service: Service, subscriber: Subscriber, ready: asyncio.Event) -> AsyncIterator[bytes]:
    """The same as server-sent events; the first says after which id they go on."""
    try:
        yield b"event: ready\nid: " + subscriber.first_id.encode() + b"\ndata: {}\n\n"
        while True:
            try:
                async with asyncio.timeout(ALIVE_EVERY):
                    await ready.wait()
            except TimeoutError:
                yield b": alive\n\n"
                continue
            ready.clear()
            items = subscriber.take()
            for at in range(0, len(items), AT_ONCE):
                yield b"".join(map(_message, items[at : at + AT_ONCE]))
    finally:
        service.leave(subscriber)


def _message(item: LoggedMatch | Gap) -> bytes:
    if isinstance(item, Gap):
        return b"event: gap\ndata: " + item.line + b"\n\n"
    return b"id: " + item.id.encode() + b"\ndata: " + item.line + b"\n\n"
