"""Clients that are broken or hostile: the server answers in a sentence, or ends the connection, and serves others."""

from __future__ import annotations

import asyncio
import http.client
import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from tests.serving import ServerProcess

import weft
from weft.errors import InputError
from weft.serve import connections
from weft.serve.bodies import BodyLimits
from weft.serve.permissions import hosts_of
from weft.serve.program import NDJSON, Publication
from weft.serve.server import Endpoint, gated
from weft.serve.service import MOST_CONDITION, ServerSettings, Service

FIRE = "define Fire(area: string) from Smoke(level > 3) where area = Smoke.area"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--query", FIRE, "--body", "1", "--queue", "2") as running:
        yield running
        assert not [line for line in running.said if "Traceback" in line], "".join(running.said)


def sent(server: ServerProcess, request: bytes, *, is_whole: bool = True) -> bytes:
    """What the server says to these bytes until it ends the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as opened:
        opened.sendall(request.replace(b"HOST", f"Host: 127.0.0.1:{server.port}\r\nConnection: close".encode()))
        return b"".join(iter(lambda: opened.recv(65536), b"")) if is_whole else b""


@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHOST\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHOST\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHOST\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nHOST\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n",
        b'POST /v1/queries HTTP/1.1\r\nHOST\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n"\xff\xfe"',
        b"POST /v1/queries HTTP/1.1\r\nHOST\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n"
        + b"[" * 200_000,
    ],
)
def test_what_is_no_request_is_answered_with_400(server: ServerProcess, request_: bytes) -> None:
    assert sent(server, request_).startswith(b"HTTP/1.1 400")
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_bodies_that_end_in_the_middle_leave_nothing_behind(server: ServerProcess) -> None:
    for place in (b"events", b"queries", b"time"):
        head = b"POST /v1/" + place + b" HTTP/1.1\r\nHOST\r\nContent-Type: application/json\r\nContent-Length: 100"
        sent(server, head + b'\r\n\r\n{"type": "Smoke", ', is_whole=False)
    assert httpx.get(f"{server.url}/v1/stats").json()["events"] == 0


def test_bodies_of_every_address_are_bounded(server: ServerProcess) -> None:
    large = json.dumps({"text": "x" * (2 << 20)}).encode()

    def in_parts() -> Iterator[bytes]:
        yield from (large[at : at + 65536] for at in range(0, len(large), 65536))

    for content in (large, in_parts()):
        answer = httpx.post(f"{server.url}/v1/queries", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.headers["connection"]) == (413, "close")
        assert answer.json()["problem"].startswith("a body has at most 1,048,576 bytes")


@pytest.mark.parametrize(
    ("method", "place", "given", "said"),
    [
        ("POST", "/v1/events?sequence=1", {"content": b"{}"}, "batches are numbered for each source"),
        ("POST", "/v1/queries", {"json": {"text": "x", "language": "klingon"}}, "there is no language 'klingon'"),
        ("POST", "/v1/queries", {"content": b"{", "headers": {"Content-Type": "application/json"}}, "the body is not"),
        ("POST", "/v1/time", {"json": {"time": 2**63}}, "body.time: Input should be less than"),
        ("GET", "/v1/plan?stage=all", {}, "query.stage: Input should be"),
        ("GET", "/v1/matches?query=Fire&after=a%0Adata:%20evil%0A%0A", {}, "after= is the id of a match"),
        ("GET", f"/v1/matches?query=Fire&where={'(' * (MOST_CONDITION + 1)}", {}, "a condition has at most 20,000"),
    ],
)
def test_wrong_parameters_are_answered_with_422(
    server: ServerProcess, method: str, place: str, given: dict[str, Any], said: str
) -> None:
    answer = httpx.request(method, server.url + place, **given)
    assert answer.status_code == 422, answer.text
    assert answer.json()["problem"].startswith(said)


def test_the_description_of_the_addresses_has_bodies_and_refusals(server: ServerProcess) -> None:
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    publish = paths["/v1/events"]["post"]
    assert "application/vnd.apache.arrow.stream" in publish["requestBody"]["content"]
    assert publish["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/PublishAnswer"
    }
    for methods in paths.values():
        for about in methods.values():
            refused = about["responses"]["4XX"]["content"]["application/json"]["schema"]
            assert refused == {"$ref": "#/components/schemas/Problem"}


def test_texts_with_any_character_reach_subscribers(server: ServerProcess) -> None:
    areas = ["a\u2028b\u2029c", "x\x85\x0b\x0c\x1cy", "z\r\nw", '"}\n\ndata: ', "\U0001f525"]
    events = [{"type": "Smoke", "ts": at, "level": 5, "area": area} for at, area in enumerate(areas)]

    async def received() -> list[Any]:
        async with weft.connect(server.url, asynchronous=True) as client, client.subscribe("Fire", after="") as matches:
            return [(await anext(matches)).event["area"] for _ in areas]

    with weft.connect(server.url) as client:
        client.publish(events)
        assert client.flush().accepted == len(areas)
        with client.subscribe("Fire", after="") as matches:
            assert [next(matches).event["area"] for _ in areas] == areas
    assert asyncio.run(received()) == areas


def test_a_host_is_called_without_the_port_that_its_scheme_implies() -> None:
    assert {"localhost", "localhost:443", "[::1]"} <= hosts_of("127.0.0.1", 443, usual_port=443)
    assert "localhost" not in hosts_of("127.0.0.1", 443)
    assert "example.org:8787" in hosts_of("127.0.0.1", 8787, ["Example.org:8787"])


@asynccontextmanager
async def served(**settings: Any) -> AsyncIterator[int]:
    """A server in this event loop; its port."""
    import uvicorn

    service = Service(ServerSettings())
    opened = socket.create_server(("127.0.0.1", 0))
    port = opened.getsockname()[1]
    config = uvicorn.Config(
        gated(service, Endpoint(), port), http=connections.BoundedConnection, log_config=None, **settings
    )
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve([opened]))
    try:
        yield port
    finally:
        running.should_exit = True
        await task
        service.close()


def test_a_head_that_takes_too_long_ends_its_connection() -> None:
    async def ended(*pieces: bytes) -> bytes:
        async with served() as port:
            reading, writing = await asyncio.open_connection("127.0.0.1", port)
            for piece in pieces:
                writing.write(piece.replace(b"HOST", f"Host: 127.0.0.1:{port}".encode()))
            said = await asyncio.wait_for(reading.read(), 30)
            writing.close()
            return said

    with patch.object(connections, "HEAD_SECONDS", 0.2):
        assert asyncio.run(ended(b"GET /health HTTP/1.1\r\nX-a: ")) == b""
        whole = b"GET /health HTTP/1.1\r\nHOST\r\n\r\n"
        assert asyncio.run(ended(whole, b"GET /health HTTP/1.1\r\nX")).count(b"HTTP/1.1 200 OK") == 1


def test_connections_beyond_the_limit_are_ended() -> None:
    async def answers() -> list[bytes]:
        async with served(limit_concurrency=2) as port:
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            found = [await asyncio.wait_for(reading.read(), 30) for reading, _ in opened[2:]]
            for _, writing in opened:
                writing.close()
            return found

    assert asyncio.run(answers()) == [b"", b""]


def test_as_many_files_as_there_may_be_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (256, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.update(now=new))
    assert connections.most_connections() == 4096 - connections.SPARED
    assert limits["now"] == (4096, 4096)


def test_bodies_that_come_at_once_are_bounded_together_and_in_time() -> None:
    app = FastAPI()
    limits = BodyLimits(app, most_bytes=100, seconds=30.0, room=150)

    def body(*parts: bytes) -> Any:
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        waiting = iter(messages)

        async def receive() -> Any:
            return next(waiting)

        return receive

    async def attempt(receive: Any, count: int) -> str:
        async def read(_scope: Any, given: Any, _send: Any) -> None:
            for _ in range(count):
                await given()

        limits._app = read
        try:
            await limits({"type": "http", "headers": [(b"transfer-encoding", b"chunked")]}, receive, None)  # type: ignore[arg-type]
        except HTTPException as refused:
            return str(refused.status_code)
        return "taken"

    async def all_at_once() -> list[str]:
        first = await attempt(body(b"x" * 90), 1)
        large = await attempt(body(b"x" * 90, b"x" * 20), 2)
        limits._held = 100  # another request's
        crowded = await attempt(body(b"x" * 60), 1)
        assert limits._held == 100
        limits._held = 0
        limits.seconds = 0.0

        async def never() -> Any:
            await asyncio.Event().wait()

        return [first, large, crowded, await attempt(never, 1)]

    assert asyncio.run(all_at_once()) == ["taken", "413", "429", "408"]


def test_a_mistake_of_the_compiler_refuses_one_text_and_the_server_goes_on() -> None:
    service = Service(ServerSettings())
    with patch("weft.serve.program.compile_text", side_effect=AssertionError("unexpected")):
        failing = service.engine.submit(_deploying(FIRE))
        with pytest.raises(InputError, match="which is a mistake of weft: AssertionError: unexpected"):
            failing.result(60)
    assert service.engine.submit(_deploying(FIRE)).result(60)["names"] == ["Fire"]
    service.close()


def _deploying(text: str) -> Any:
    from weft.serve.engine import Request

    return Request({"op": "deploy", "text": text, "language": None, "name": None})


def test_publishers_that_are_long_gone_are_forgotten() -> None:
    service = Service(ServerSettings(), weft.compile(FIRE, "tesla"))
    from weft.serve.engine import Request

    about = {"op": "events", "form": NDJSON}
    with patch("weft.serve.program.PUBLISHERS", 3):
        for at, name in enumerate(["a", "b", "c", "a", "d", "e"]):
            line = json.dumps({"type": "Smoke", "ts": at, "level": 5, "area": name}).encode()
            service.engine.submit(Request(about, line, Publication(1, name, at))).result(60)
    assert list(service.engine.program.publishers) == ["a", "d", "e"]
    service.close()


def test_bodies_that_come_side_by_side_do_not_keep_each_other_from_ending() -> None:
    ended: list[str] = []

    async def read(_scope: Any, given: Any, _send: Any) -> None:
        try:
            while (await given())["more_body"]:
                await asyncio.sleep(0)
        except HTTPException:
            for _ in range(20):  # an answer takes a while, in which the bytes are still held
                await asyncio.sleep(0)
            raise

    limits = BodyLimits(read, most_bytes=200, seconds=30.0, room=150)

    async def one() -> None:
        parts = iter([True] * 9 + [False])

        async def receive() -> Any:
            return {"type": "http.request", "body": b"x" * 10, "more_body": next(parts)}

        try:
            await limits({"type": "http", "headers": [(b"content-length", b"100")]}, receive, None)  # type: ignore[arg-type]
            ended.append("taken")
        except HTTPException as refused:
            ended.append(str(refused.status_code))

    async def all_at_once() -> None:
        await asyncio.gather(*(one() for _ in range(4)))

    asyncio.run(all_at_once())
    assert sorted(ended) == ["429", "429", "429", "taken"]
    assert limits._held == 0


def test_a_client_that_sends_before_it_reads_gets_the_answer(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", "/v1/events", b"x" * (10 << 20))
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["problem"][:22]) == (413, "a body has at most 1,0")
