"""Who may use the workbench: a foreign site, a missing token and another host may not; texts never become markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the workbench needs weft[workbench]")

from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from weft.workbench.server import Address, workbench_app
from weft.workbench.service import Workbench

ADDRESS = Address("127.0.0.1", 8765, "the-token")
OWN = {"Authorization": "Bearer the-token"}
PAIR = "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pair.ceql").write_text(PAIR)
    bench = Workbench(tmp_path / "project")
    with TestClient(workbench_app(bench, ADDRESS, pages=False), base_url="http://127.0.0.1:8765") as found:  # type: ignore[arg-type]
        yield found
    bench.close()


def test_without_the_token_nothing_is_answered_but_health(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    for path in ("/api/programs", "/", "/api/openapi.json", "/metrics", "/_nicegui"):
        assert client.get(path).status_code == 401
    assert client.put("/api/program?path=x.ceql", json={"text": PAIR}).status_code == 401
    assert client.get("/api/programs", headers={"Authorization": "Bearer another"}).status_code == 401
    assert client.get("/api/programs?token=the-token").status_code == 401  # a token in an address is for pages only


def test_the_token_of_the_address_becomes_a_cookie_that_no_script_reads(client: TestClient) -> None:
    answer = client.get("/?token=the-token", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"
    assert {"HttpOnly", "SameSite=Strict"} <= set(answer.headers["set-cookie"].split("; "))
    assert client.get("/api/programs").status_code == 200
    assert client.get("/?token=wrong").status_code != 303
    elsewhere = client.get("//evil.example/?token=the-token", follow_redirects=False)
    assert not elsewhere.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8765"])
def test_a_foreign_origin_is_refused_even_with_the_token(client: TestClient, origin: str) -> None:
    asked = {**OWN, "Origin": origin}
    assert client.put("/api/program?path=x.ceql", json={"text": PAIR}, headers=asked).status_code == 403
    assert client.get("/api/programs", headers=asked).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/_nicegui_ws/socket.io/", headers=asked):
        pass


def test_a_page_of_another_site_cannot_ask_by_other_means(client: TestClient) -> None:
    asked = {**OWN, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.post("/api/check", json={"text": PAIR}, headers=asked).status_code == 403


def test_another_host_is_refused(client: TestClient) -> None:
    assert client.get("/api/programs", headers={**OWN, "Host": "evil.example:8765"}).status_code == 400


def test_own_requests_are_answered_with_headers_that_keep_others_out(client: TestClient) -> None:
    answer = client.get("/api/programs", headers={**OWN, "Origin": "http://127.0.0.1:8765"})
    assert answer.json() == [{"path": "pair.ceql", "language": "ceql"}]
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "connect-src 'self' ws://127.0.0.1:8765 ws://localhost:8765;" in policy  # nothing is sent elsewhere
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["../pair.ceql", "/etc/passwd", "..%2f..%2fetc%2fpasswd", "a/../../b.ceql"])
def test_paths_outside_the_project_are_refused(client: TestClient, path: str) -> None:
    assert client.get(f"/api/program?path={path}", headers=OWN).status_code == 400
    assert client.put(f"/api/program?path={path}", json={"text": "x"}, headers=OWN).status_code == 400


def test_markup_in_events_and_programs_stays_text(client: TestClient) -> None:
    rows = "\n".join(json.dumps({"type": kind, "ts": n, "note": MARKUP}) for n, kind in enumerate("AB"))
    program = {"text": f"{PAIR}\n-- {MARKUP}", "language": "ceql"}
    tried = client.post("/api/try", json={"program": program, "events": {"rows": rows}}, headers=OWN).json()
    assert tried["total"] == 1
    assert "<script" not in tried["timeline"]
    assert "<img" not in tried["timeline"]
    types = "\n".join(json.dumps({"type": MARKUP, "ts": n}) for n in range(2))
    odd = client.post("/api/try", json={"program": program, "events": {"rows": types}}, headers=OWN).json()
    assert "<script" not in odd["timeline"]
    plan = client.post("/api/plan", json={"text": PAIR + f" -- {MARKUP}"}, headers=OWN).json()
    assert "<script" not in plan["svg"]


def test_everything_is_described_and_typed(client: TestClient) -> None:
    described = client.get("/api/openapi.json", headers=OWN).json()
    assert {
        "/api/programs", "/api/program", "/api/program/rename", "/api/check", "/api/plan", "/api/events", "/api/try",
        "/api/why", "/api/tests",
        "/api/runs", "/api/runs/{name}", "/api/runs/{name}/events", "/api/runs/spark", "/api/cluster", "/api/complete",
        "/api/runs/{name}/restart", "/api/runs/{name}/funnels", "/api/events/count",
    } == {path for path in described["paths"] if path.startswith("/api")}  # fmt: skip
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            answer = one["responses"]["200"]["content"].get("application/json", {"schema": {"type": "string"}})
            assert one.get("description") or one.get("summary"), (path, method)
            assert answer["schema"], (path, method)  # what comes back is typed
    assert {"Tried", "Explanation", "Completion", "RunDetail", "Overview"} <= set(described["components"]["schemas"])


def test_every_address_needs_the_token_and_no_other_site(client: TestClient) -> None:
    described = client.get("/api/openapi.json", headers=OWN).json()
    for path, methods in described["paths"].items():
        for method in methods:
            asked = path.replace("{name}", "pairs")
            foreign = client.request(method, asked, headers={**OWN, "Origin": "http://evil.example"})
            assert foreign.status_code == 403, (method, path)
            if path != "/health":
                assert client.request(method, asked).status_code == 401, (method, path)
    assert client.get("/api/runs", headers=OWN).json() == []


def test_mistakes_come_as_json_with_their_places(client: TestClient) -> None:
    asked = {"program": {"text": "SELECT * FROM S WHERE"}, "events": {"rows": "{}"}}
    answer = client.post("/api/try", json=asked, headers=OWN)
    assert answer.status_code == 400
    assert answer.json()["findings"][0]["line"] == 1
    why = {"program": {"text": PAIR}, "events": {"rows": '{"type": "A", "ts": 1}'}, "positions": [9]}
    assert "no event at position 9" in client.post("/api/why", json=why, headers=OWN).json()["problem"]


def test_runs_are_started_fed_and_stopped_over_http(client: TestClient) -> None:
    rows = "\n".join(json.dumps({"type": kind, "ts": n}) for n, kind in enumerate("AAB"))
    new = {"program": {"text": PAIR}, "events": {"rows": rows}, "name": "pairs", "rate": 1000}
    assert client.post("/api/runs", json=new, headers=OWN).json()["where"] == "here"
    assert client.post("/api/runs", json={**new, "name": "../x"}, headers=OWN).status_code == 400
    assert client.get("/api/runs/pairs", headers=OWN).json()["info"]["name"] == "pairs"
    assert client.delete("/api/runs/pairs", headers=OWN).json()["state"] == "ended"
    assert client.delete("/api/runs/none", headers=OWN).status_code == 400
