"""User work in the workbench: within limits of time and memory, ended when nobody waits, paths inside the project."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from weft.errors import ProgramError, UsageError
from weft.workbench import guard, isolation, jobs
from weft.workbench.isolation import CancelledError, CrowdedError, Workers, WorkLimits
from weft.workbench.server import Address, free_port, workbench_app
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample

# 2^40 matches: each of 40 events is in a match or not.
MANY = "SELECT * FROM S WHERE A+ AS a"
EVENTS = "\n".join(json.dumps({"type": "A", "ts": ts}) for ts in range(40))
SQL = json.dumps("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS x PATTERN (A) DEFINE A AS TRUE)")
FEW = "SELECT * FROM S WHERE A ; A WITHIN 1 EVENTS"


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(WorkLimits(seconds=3.0, memory=1 << 30, at_once=2, waiting=2))
    yield made
    made.close()


def test_work_is_done_in_another_process_which_is_used_again(workers: Workers) -> None:
    first = workers.run(os.getpid)
    assert first != os.getpid()
    assert workers.run(os.getpid) == first


def test_work_that_takes_long_is_stopped_and_its_process_is_gone(workers: Workers) -> None:
    first = workers.run(os.getpid)
    with pytest.raises(UsageError, match="longer than 3 seconds"):
        workers.run(time.sleep, 600)
    assert not Path(f"/proc/{first}").exists()
    assert workers.run(os.getpid) != first


def test_work_that_needs_much_memory_is_stopped(workers: Workers) -> None:
    with pytest.raises(UsageError, match="more than 1 GiB"):
        workers.run(bytearray, 4 << 30)
    assert workers.run(os.getpid)


def test_work_that_nobody_waits_for_is_stopped(workers: Workers) -> None:
    gone = threading.Event()
    answer = workers.submit(gone, time.sleep, 600)
    gone.set()
    with pytest.raises(CancelledError):
        answer.result(timeout=60)


def test_more_work_than_may_wait_is_refused(workers: Workers) -> None:
    gone = threading.Event()
    answers = [workers.submit(gone, time.sleep, 600) for _ in range(4)]
    with pytest.raises(CrowdedError):
        workers.submit(gone, time.sleep, 600)
    gone.set()
    for answer in answers:
        with pytest.raises(CancelledError):
            answer.result(timeout=60)


def test_mistakes_in_programs_come_back_with_all_findings(workers: Workers) -> None:
    from weft.workbench.trying import program_of

    with pytest.raises(ProgramError) as raised:
        workers.run(program_of, "SELECT FROM WHERE", "ceql", "q")
    assert raised.value.diagnostics


# ---------------------------------------------------------------- over HTTP


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Workers) -> Iterator[Address]:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    (tmp_path / "project").mkdir()
    (tmp_path / "secret.ceql").write_text("SELECT * FROM S WHERE Secret")
    bench = Workbench(tmp_path / "project", workers)
    found = Address("127.0.0.1", free_port(), "t")
    config = uvicorn.Config(
        workbench_app(bench, found, pages=False), host=found.host, port=found.port, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield found
    server.should_exit = True
    thread.join(timeout=20)
    bench.close()


def _client(address: Address) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://{address.host}:{address.port}", headers={"authorization": "Bearer t"}, timeout=60
    )


def _trial(text: str) -> dict[str, object]:
    return {"program": {"text": text}, "events": {"rows": EVENTS}}


def test_a_program_with_too_many_matches_is_stopped(address: Address) -> None:
    with _client(address) as client:
        answer = client.post("/api/try", json=_trial(MANY))
        assert answer.status_code == 400
        assert "longer than 3 seconds" in answer.json()["problem"]
        assert client.get("/health").json() == {"status": "ok"}


def test_work_ends_when_the_client_goes_away(address: Address, workers: Workers) -> None:
    body = json.dumps(_trial(MANY)).encode()
    head = f"POST /api/try HTTP/1.1\r\nhost: {address.host}:{address.port}\r\nauthorization: Bearer t\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    workers.limits = WorkLimits(seconds=600.0, at_once=2, waiting=2)
    with socket.create_connection((address.host, address.port)) as client:
        client.sendall(head.encode() + body)
        while not workers.pids:
            time.sleep(0.01)
        (pid,) = workers.pids
    while Path(f"/proc/{pid}").exists() or workers.pids:
        time.sleep(0.05)
    with _client(address) as again:
        assert again.get("/api/programs").json() == []


def test_large_bodies_are_refused(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LARGEST_BODY", 1 << 16)
    with _client(address) as client:
        assert client.post("/api/try", content=b"x" * (1 << 17)).status_code == 413
        chunks = (b"x" * 1024 for _ in range(128))
        assert client.post("/api/try", content=chunks).status_code == 413
        assert client.post("/api/check", json={"text": FEW}).status_code == 200


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff x"])
def test_half_of_a_pair_of_surrogates_is_told(address: Address, half: str) -> None:
    headers = {"content-type": "application/json"}
    with _client(address) as client:
        for method, path, body in (
            ("PUT", "/api/program?path=a.ceql", f'{{"text": "{half}"}}'),
            ("POST", "/api/check", f'{{"text": "SELECT {half}"}}'),
            ("POST", "/api/plan", f'{{"text": "SELECT {half}"}}'),
            ("POST", "/api/complete", f'{{"text": "SELECT {half}", "position": 3}}'),
            ("POST", "/api/try", f'{{"program": {{"text": "{half}"}}, "events": {{"rows": "{half}"}}}}'),
            (
                "POST",
                "/api/try",
                f'{{"program": {{"text": {SQL}, "language": "sql"}}, "events": {{"rows": "{half}"}}}}',
            ),
            ("POST", "/api/check", f'{{"text": 5, "language": "{half}"}}'),
            ("POST", "/api/check", f'{{"text": "x", "language": "{half}"}}'),
        ):
            answer = client.request(method, path, content=body, headers=headers)
            assert answer.status_code < 500, (path, answer.text)
        assert client.get("/api/programs").json() == []


@pytest.mark.parametrize("path", ["x" * 300 + ".ceql", "d/" * 2000 + "x.ceql", "d/" * 200 + "x.ceql"])
def test_paths_that_no_file_can_have_are_refused(address: Address, path: str) -> None:
    with _client(address) as client:
        client.put("/api/program", params={"path": "a.ceql"}, json={"text": FEW})
        for method, place, named in (
            ("PUT", "/api/program", {"path": path}),
            ("GET", "/api/program", {"path": path}),
            ("GET", "/api/events/count", {"file": path.replace("ceql", "csv")}),
            ("POST", "/api/program/rename", {"path": "a.ceql", "to": path}),
        ):
            answer = client.request(method, place, params=named, json={"text": FEW})
            assert answer.status_code == 400, (method, place, answer.text)
            assert "too long" in answer.json()["problem"]
        assert [one["path"] for one in client.get("/api/programs").json()] == ["a.ceql"]


@pytest.mark.parametrize("field", ["program", "events_file"])
def test_tests_name_files_of_the_project_only(address: Address, tmp_path: Path, field: str) -> None:
    named = {"program": "SELECT * FROM S WHERE A", "events_file": "e.jsonl"}
    named[field] = "../secret.ceql"
    project = tmp_path / "project"
    (project / "e.jsonl").write_text(EVENTS)
    (project / "x.test.toml").write_text(
        f"program = {named['program']!r}\n[[case]]\nevents_file = {named['events_file']!r}\nexpected_count = 1\n"
    )
    with _client(address) as client:
        report = client.get("/api/tests").json()
    assert report["cases"] == []
    assert "not in the project" in report["problems"][0]
    assert "Secret" not in json.dumps(report)


def test_programs_that_run_here_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    bench = Workbench(tmp_path)
    try:
        bench.submit(ProgramSource(MANY, "ceql"), Sample(rows=EVENTS), "many", rate=1e6)
        while bench.run("many").info.state == "running":
            time.sleep(0.05)
        assert "budget" in str(bench.run("many").info.problem)
    finally:
        bench.close()


def test_large_files_are_not_replayed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_REPLAYED", 39)
    with pytest.raises(UsageError, match=r"these are 40 events, and at most 39 are replayed here"):
        jobs.replayed(ProgramSource(FEW, "ceql").job, Sample(rows=EVENTS), None)
    monkeypatch.setattr(jobs, "MOST_REPLAYED", 40)
    assert len(jobs.replayed(ProgramSource(FEW, "ceql").job, Sample(rows=EVENTS), None)) == 40


def test_what_texts_and_files_decide_about_is_done_elsewhere(tmp_path: Path) -> None:
    asked: list[str] = []

    class Told(Workers):
        def submit(self, cancelled: threading.Event, work: Any, *arguments: object) -> Any:
            asked.append(work.__name__)
            raise CrowdedError("not now")

    (tmp_path / "e.jsonl").write_text(EVENTS)
    bench = Workbench(tmp_path, Told())
    small, large = (ProgramSource(f"{FEW} -- {'x' * size}", "ceql") for size in (9, 30_000))
    assert bench.check(small).is_right  # soon done, at every stroke of a key
    assert bench.complete(small, 3).words
    for ask in (
        lambda: bench.check(large),
        lambda: bench.complete(large, 3),
        lambda: bench.plan(small),
        lambda: bench.event_count("e.jsonl"),
        lambda: bench.submit(large, Sample(), "run"),
        lambda: bench.submit(small, Sample(file="e.jsonl"), "run"),
    ):
        with pytest.raises(CrowdedError):
            ask()
    assert asked == ["check", "complete", "planned", "row_count", "check", "replayed"]
    with pytest.raises(UsageError, match="at most 2,000,000 characters"):
        bench.check(ProgramSource("x" * 2_000_001, "ceql"))
    bench.close()


def test_there_is_one_set_of_workers_for_all() -> None:
    assert isolation.shared_workers() is isolation.shared_workers()
