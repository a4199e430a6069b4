"""The workbench as a client of a running server: deploy, publish a file, watch matches, remove."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving import ServerProcess

import weft
from weft.workbench.servers import ServerConnection

FIRE = """define Fire(area: string, temp: double)
from   Smoke(area = $a) and last Temp(area = $a and value > 45) within 5 min from Smoke
where  area = Smoke.area and temp = Temp.value
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text("all-the-things\nlooks-on subscribe\n")
    with ServerProcess("--token-file", str(tokens)) as running:
        yield running


def events(first: int, area: str) -> str:
    rows = [{"type": "Temp", "ts": first, "area": area, "value": 60}, {"type": "Smoke", "ts": first + 1, "area": area}]
    return "".join(json.dumps(row) + "\n" for row in rows)


def came(connection: ServerConnection, count: int) -> list[dict[str, object]]:
    """The matches of the tail, when so many are there."""
    assert connection.tail is not None
    until = time.monotonic() + 30
    while connection.tail.total < count:
        assert time.monotonic() < until, connection.tail.problem
        time.sleep(0.01)
    return connection.tail.latest(count)


def test_a_server_is_used_from_the_workbench(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(events(1_000, "hall") + "nonsense\n" + events(2_000, "attic"))
    connection = ServerConnection(server.url + "/", "all-the-things")
    try:
        assert connection.deploy(FIRE, "tesla", "fire") == ("Fire",)
        assert connection.deploy(FIRE.replace("45", "50"), "tesla", "Fire") == ("Fire",)
        (query,) = connection.queries()
        assert (query["name"], "50" in str(query["text"])) == ("Fire", True)
        tail = connection.watch("Fire", "area = 'attic'")
        assert connection.publish(file) == ("4 accepted, 1 rejected; the last: not JSON: Expecting value at column 1")
        (match,) = came(connection, 1)
        assert (match["query"], match["event"]) == ("Fire", {"area": "attic", "temp": 60.0})
        connection.watch("Temp", None)
        assert connection.tail is not tail
        file.write_text(events(3_000, "hall"))
        assert connection.publish(file) == "2 accepted, 0 rejected"
        assert came(connection, 1)[0]["event"] == {"ts": 3_000, "area": "hall", "value": 60}
        with pytest.raises(weft.ServiceError, match="no field 'aera'"):
            connection.watch("Fire", "aera = 'hall'")
        assert connection.stats()["events"] == 6
        connection.remove("Fire")
        assert connection.queries() == []
    finally:
        connection.close()


def test_what_a_server_refuses_is_told(server: ServerProcess) -> None:
    looker = ServerConnection(server.url, "looks-on")
    assert looker.queries() == []
    with pytest.raises(weft.ServiceError, match="does not allow to deploy"):
        looker.remove("Fire")
    looker.close()
    with pytest.raises(weft.ServiceError, match="token"):
        ServerConnection(server.url, "wrong-token")
    with pytest.raises(weft.UsageError, match="give the address of a server"):
        ServerConnection(" ")
    with pytest.raises(weft.UsageError, match="begins with http"):
        ServerConnection("localhost:8787")
