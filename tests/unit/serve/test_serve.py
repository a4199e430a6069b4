"""`weft serve` over real sockets: publishing, deploying, subscribing, limits, and who may do what."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.serving import ServerProcess
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as open_socket

import weft

FIRE = """define Fire(area: string, temp: double)
from   Smoke(area = $a) and last Temp(area = $a and value > 45) within 5 min from Smoke
where  area = Smoke.area and temp = Temp.value
"""
LINES = "application/x-ndjson"


def heat(at: int, area: str = "hall", value: float = 60.0) -> list[dict[str, Any]]:
    return [
        {"type": "Temp", "ts": at, "area": area, "value": value},
        {"type": "Smoke", "ts": at + 1, "area": area},
    ]


def lines(events: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--body", "1") as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[weft.Client]:
    """A client, and a server without queries; each test's events are later than those of the tests before."""
    with weft.connect(server.url) as made:
        yield made
        for query in made.queries():
            made.remove(query["name"])


@pytest.fixture
def now(client: weft.Client) -> int:
    """A time that no event had yet."""
    stats = client.stats()
    time = 10_000_000 * (int(stats["requests"]) + 1)
    client.advance(time)
    return time


def taken(matches: Any, count: int) -> list[weft.Match]:
    """The first so many matches, in bounded time."""
    found: list[weft.Match] = []
    thread = threading.Thread(target=lambda: found.extend(next(matches) for _ in range(count)), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), f"only {len(found)} of {count} matches came"
    return found


def test_what_is_published_is_found_and_delivered(client: weft.Client, now: int) -> None:
    assert client.deploy(FIRE).names == ("Fire",)
    with client.subscribe("Fire", where="area = 'hall' and temp > 50") as matches:
        client.publish(heat(now, "attic"))
        client.publish(heat(now + 10, "hall", 47.0))
        client.publish(pa.Table.from_pylist(heat(now + 20, "hall", 60.0)))
        assert client.flush().accepted == 6
        (match,) = taken(matches, 1)
    assert (match.query, match.start, match.end) == ("Fire", now + 20, now + 21)
    assert match.event == {"area": "hall", "temp": 60.0}


def test_matches_are_those_of_weft_live(client: weft.Client, now: int) -> None:
    events = [event for at in range(50) for event in heat(now + 10 * at, f"room{at % 3}", 40.0 + at)]
    client.deploy(FIRE)
    with client.subscribe() as matches:
        client.publish(events)
        client.flush()
        expected = [match.event for match in weft.live(FIRE).push(events)]
        assert [match.event for match in taken(matches, len(expected))] == expected


def test_primitive_events_have_subscribers_with_conditions_too(client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    with client.subscribe("Temp", where="value > 50") as matches:
        client.publish([*heat(now, value=40.0), *heat(now + 10, value=55.0)])
        (match,) = taken(matches, 1)
    assert match.query == "Temp"
    assert match.event == {"ts": now + 10, "area": "hall", "value": 55.0}


def test_an_answer_tells_rows_that_are_rejected_or_late(server: ServerProcess, client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    body = lines([heat(now)[0]]) + "\n\nnonsense\n" + lines([{"type": "Temp"}]) + lines(heat(5))
    answer = httpx.post(f"{server.url}/v1/events", content=body, headers={"Content-Type": LINES}).json()
    assert (answer["accepted"], answer["late"]) == (1, 2)
    assert [one["row"] for one in answer["rejected"]] == [1, 2, 3, 4]
    assert answer["rejected"][0]["reason"].startswith("not JSON")
    assert answer["rejected"][3]["reason"].startswith("late")


def test_a_batch_that_is_sent_again_counts_once(server: ServerProcess, client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    address = f"{server.url}/v1/events?source=me&sequence=7"
    first = httpx.post(address, content=lines(heat(now)), headers={"Content-Type": LINES}).json()
    again = httpx.post(address, content=lines(heat(now)), headers={"Content-Type": LINES}).json()
    assert first["accepted"] == 2
    assert again == {**first, "duplicate": True}


def test_events_get_a_type_from_the_address(server: ServerProcess, client: weft.Client, now: int) -> None:
    client.deploy("SELECT * FROM S WHERE (Trade AS a ; Trade AS b) WITHIN 1 HOUR", name="pairs")
    body = json.dumps({"ts": now}) + "\n" + json.dumps({"ts": now + 1})
    answer = httpx.post(f"{server.url}/v1/events?type=Trade", content=body, headers={"Content-Type": LINES}).json()
    assert answer == {"accepted": 2, "rejected": [], "late": 0}
    assert client.stats()["matches"]["pairs"] == 1


def test_wrong_programs_are_answered_with_findings(client: weft.Client) -> None:
    with pytest.raises(weft.ServiceError) as refused:
        client.deploy("define Fire(area: string) from Smoke(area = ")
    assert refused.value.status == 422
    (finding,) = refused.value.findings
    assert (finding["code"], finding["line"], finding["span"][0]) == ("syntax", 1, 36)
    assert client.queries() == []


def test_a_text_is_never_a_file_of_the_server(server: ServerProcess, tmp_path: Path) -> None:
    secret = tmp_path / "secret.tesla"
    secret.write_text(FIRE)
    answer = httpx.post(f"{server.url}/v1/queries", json={"text": str(secret), "language": "tesla"})
    assert answer.status_code == 422
    assert "Smoke" not in answer.text


def test_a_query_is_replaced_and_removed(client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    client.replace("Fire", FIRE.replace("45", "70"))
    client.publish([*heat(now, value=60.0), *heat(now + 10, value=80.0)])
    client.flush()
    (query,) = client.queries()
    assert (query["name"], "70" in query["text"]) == ("Fire", True)
    with client.subscribe("Fire", after="") as matches:
        assert taken(matches, 1)[-1].query == "Fire"
    client.remove("Fire")
    assert client.queries() == []
    with pytest.raises(weft.ServiceError, match="no query is called 'Fire'"):
        client.remove("Fire")


def test_a_rule_that_runs_is_not_deployed_once_more(client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    with pytest.raises(weft.ServiceError, match="this rule, which defines 'Fire', runs already: remove 'Fire'") as told:
        client.deploy(f"{FIRE}\ndefine Heat(area: string) from Temp(value > 80) where area = Temp.area")
    assert told.value.status == 409
    other = FIRE.replace("45", "50")
    assert client.deploy(other).names == ("Fire",)
    (query,) = client.queries()
    assert (query["name"], query["text"]) == ("Fire", f"{FIRE}\n\n{other}")
    client.replace("Fire", other)
    (query,) = client.queries()
    assert query["text"] == other
    client.publish(heat(now))
    client.flush()
    assert client.queries()[0]["matches"] - query["matches"] == 1


def test_a_subscriber_resumes_after_an_id(client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    with client.subscribe("Fire") as matches:
        client.publish([event for at in range(5) for event in heat(now + 10 * at)])
        found = taken(matches, 5)
    with client.subscribe("Fire", after=found[1].id) as matches:
        assert [match.id for match in taken(matches, 3)] == [match.id for match in found[2:]]
    with client.subscribe("Fire", where=f"ts > {now + 30}", after=found[0].id) as matches:
        assert [match.id for match in taken(matches, 2)] == [match.id for match in found[3:]]


def test_web_sockets_deliver_the_lines_that_weft_match_writes(
    server: ServerProcess, client: weft.Client, now: int
) -> None:
    client.deploy(FIRE)
    with open_socket(f"{server.url.replace('http', 'ws')}/v1/matches?query=Fire") as socket:
        client.publish(heat(now))
        client.flush()
        match = json.loads(socket.recv(30))
    assert list(match) == ["query", "id", "start", "end", "positions", "bindings", "event"]
    with open_socket(f"{server.url.replace('http', 'ws')}/v1/matches?query=Nothing") as socket:
        assert "deploy it first" in json.loads(socket.recv(30))["problem"]
        with pytest.raises(ConnectionClosed):
            socket.recv(30)


def test_a_wrong_subscription_is_refused(client: weft.Client) -> None:
    client.deploy(FIRE)
    with pytest.raises(weft.ServiceError, match="did you mean 'Fire'"):
        client.subscribe("Fyre")
    with pytest.raises(weft.ServiceError, match="no field 'aera'"):
        client.subscribe("Fire", where="aera = 'hall'")


def test_bodies_hosts_and_origins_are_checked(server: ServerProcess) -> None:
    address = f"{server.url}/v1/events"
    assert httpx.post(address, content=b" " * (1 << 21), headers={"Content-Type": LINES}).status_code == 413
    assert httpx.post(address, content=b"x", headers={"Content-Type": "text/html"}).status_code == 415
    assert httpx.get(f"{server.url}/v1/stats", headers={"Host": "elsewhere"}).status_code == 400
    assert httpx.get(f"{server.url}/v1/stats", headers={"Origin": "http://elsewhere"}).status_code == 403
    own = httpx.get(f"{server.url}/v1/stats", headers={"Origin": server.url})
    assert own.headers["access-control-allow-origin"] == server.url
    packed = {"Content-Type": LINES, "Content-Encoding": "gzip"}
    assert httpx.post(address, content=b"x", headers=packed).status_code == 415
    form = httpx.post(f"{server.url}/v1/queries", data={"text": FIRE})
    assert (form.status_code, form.json()["problem"]) == (
        415,
        "this takes application/json, not application/x-www-form-urlencoded",
    )
    damaged = {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert httpx.post(address, content=b"no arrow", headers=damaged).status_code == 422


def test_whatever_is_wrong_is_told_in_one_form(server: ServerProcess) -> None:
    asked = [
        ("GET", "/nowhere", {}, 404, "there is no address /nowhere: /docs describes them"),
        ("DELETE", "/v1/queries/nothing", {}, 404, "no query is called 'nothing'"),
        ("POST", "/v1/queries", {"json": {"txt": "x"}}, 422, "body.text: Field required"),
        ("POST", "/v1/events?sequence=-1", {"content": b"{}"}, 422, "query.sequence: Input should be greater"),
        ("POST", "/v1/events", {"content": b" " * (1 << 21)}, 413, "a body has at most 1,048,576 bytes"),
        ("GET", "/v1/matches?query=Nothing", {}, 409, "no query or rule gives 'Nothing'"),
    ]
    for method, place, given, status, said in asked:
        answer = httpx.request(method, server.url + place, **given)
        assert answer.status_code == status, place
        assert answer.json()["problem"].startswith(said), answer.text
        assert answer.json()["findings"] == []


def test_figures_and_the_plan_are_told(server: ServerProcess, client: weft.Client, now: int) -> None:
    client.deploy(FIRE)
    client.publish(heat(now))
    client.flush()
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
    assert 'weft_serve_matches_total{query="Fire"}' in httpx.get(f"{server.url}/metrics").text
    assert "rule Fire" in client.plan()
    assert "/v1/events" in httpx.get(f"{server.url}/openapi.json").json()["paths"]


def test_the_asynchronous_client_does_the_same(server: ServerProcess, client: weft.Client, now: int) -> None:
    async def work() -> tuple[weft.Match, int]:
        async with weft.connect(server.url, asynchronous=True) as own:
            await own.deploy(FIRE)
            matches = await own.subscribe("Fire")
            await own.publish(heat(now))
            done = await own.flush()
            match = await asyncio.wait_for(anext(matches), 30)
            await matches.close()
            await own.remove("Fire")
            return match, done.accepted

    match, accepted = asyncio.run(work())
    assert (match.start, accepted) == (now, 2)


def test_tokens_allow_what_they_say(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("all-the-things\nonly-publishes publish # a sensor\nlooks-on subscribe\n")
    with ServerProcess("--token-file", str(tokens)) as server:
        nobody = httpx.get(f"{server.url}/v1/stats")
        assert (nobody.status_code, nobody.json()["findings"]) == (401, [])
        unknown = httpx.get(f"{server.url}/v1/stats", headers={"Authorization": "Bearer another-one"})
        assert (unknown.status_code, unknown.json()["problem"]) == (401, "this token is not known here")
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert "swagger" in httpx.get(f"{server.url}/docs").text
        described = httpx.get(f"{server.url}/openapi.json").json()
        assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
        assert described["paths"]["/v1/events"]["post"]["security"] == [{"HTTPBearer": []}]
        with weft.connect(server.url, "all-the-things") as admin:
            admin.deploy(FIRE)
        with weft.connect(server.url, "only-publishes") as sensor:
            sensor.publish(heat(1))
            assert sensor.flush().accepted == 2
            with pytest.raises(weft.ServiceError, match="does not allow to deploy"):
                sensor.deploy(FIRE)
            with pytest.raises(weft.ServiceError, match="does not allow to subscribe"):
                sensor.subscribe("Fire")
        with weft.connect(server.url, "looks-on") as looker, looker.subscribe("Fire", after="") as matches:
            assert len(taken(matches, 1)) == 1
        address = f"{server.url.replace('http', 'ws')}/v1/matches?query=Fire&after=&token="
        with open_socket(address + "looks-on") as socket:
            assert json.loads(socket.recv(30))["query"] == "Fire"
        with pytest.raises(Exception, match="403"), open_socket(address + "nonsense"):
            pass


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "give --token-file"),
        (["--certificate", "cert.pem"], "go together"),
        (["--token-file", "nothing-there"], "cannot read the tokens"),
    ],
)
def test_what_cannot_be_served_is_told_at_once(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "weft", "serve", "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode in (1, 2)
    assert said in done.stderr
