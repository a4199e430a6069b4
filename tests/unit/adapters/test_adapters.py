"""Adapters: URIs, the registry, real sockets and a real HTTP server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import weft
from weft import engines, inputs
from weft.connectors.adapters import Adapter, Incoming, as_uri, known_adapters, register
from weft.connectors.adapters.checking import check_adapters
from weft.connectors.adapters.registry import _REGISTERED, open_sink, open_source, problem_of

PAIRS = "SELECT * FROM S WHERE (A AS a ; B AS b) WITHIN 10 SECONDS"
EVENTS = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}, {"type": "B", "ts": 3}]
LINES = "".join(json.dumps(event) + "\n" for event in EVENTS).encode()


def test_uris_are_told_from_paths(tmp_path: Path) -> None:
    uri = as_uri("tcp://127.0.0.1:9000?listen=1&type=Trade")
    assert uri is not None
    assert (uri.scheme, uri.host, uri.port, uri.type) == ("tcp", "127.0.0.1", 9000, "Trade")
    assert as_uri("events.jsonl") is None
    assert as_uri("a:b.jsonl") is None
    assert as_uri("C:/events.jsonl") is None
    ipv6 = as_uri("tcp://[::1]:9000")
    assert ipv6 is not None
    assert (ipv6.host, ipv6.port) == ("::1", 9000)


def test_files_are_read_by_uri_and_get_a_type(tmp_path: Path) -> None:
    plain = tmp_path / "a.csv"
    plain.write_text("ts,x\n1,1\n2,2\n")
    query = "SELECT * FROM S WHERE (T AS a ; T AS b)"
    assert weft.count(f"file:{plain}?type=T", query) == {"q": 1}
    assert weft.count(f"file://{plain}?type=T", query) == {"q": 1}
    assert weft.count(f"folder:{tmp_path}?type=T", query) == {"q": 1}
    lines = tmp_path / "b.jsonl"
    lines.write_bytes(LINES)
    assert weft.count(f"file:{lines}", PAIRS) == {"q": 2}
    assert weft.count({"S": f"file:{lines}"}, PAIRS) == {"q": 2}


@contextmanager
def sender(data: bytes) -> Iterator[int]:
    """A server that sends some bytes to the first who connects, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def test_tcp_source_connects_and_reads_lines_to_the_end() -> None:
    with sender(LINES) as port:
        found = list(weft.detect(f"tcp://127.0.0.1:{port}", PAIRS))
    assert [match.positions for match in found] == [(0, 1), (0, 2)]


def test_tcp_source_rejects_lines_that_are_no_events() -> None:
    rejects: list[Any] = []
    with sender(b'{"type": "A", "ts": 1}\nnonsense\n[1]\n' + LINES.split(b"\n")[1] + b"\n") as port:
        found = list(weft.detect(f"tcp://127.0.0.1:{port}", PAIRS, rejects=rejects))
    assert len(found) == 1
    assert [(one.line, one.reason.split(":")[0]) for one in rejects] == [(2, "not JSON"), (3, "not an event")]


def test_a_listening_tcp_source_takes_several_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    uri = as_uri(f"tcp://127.0.0.1:{port}?listen=1")
    assert uri is not None
    items = open_source(uri).items
    assert items is not None
    coming = iter(items)
    taken = []
    for data in (LINES, b'{"type": "C", "ts": 9}'):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(data)
        thread = threading.Thread(target=lambda: taken.append(next(coming)), daemon=True)
        thread.start()
        thread.join(10)
    assert [len(text) for text in taken] == [3, 1]
    coming.close()  # type: ignore[attr-defined]


def test_matches_go_through_a_socket() -> None:
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def receive() -> None:
            connection, _ = server.accept()
            with connection:
                while piece := connection.recv(4096):
                    came.append(piece)

        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        running = weft.live(PAIRS)
        sink = running.subscribe("*", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        running.push(EVENTS)
        sink.cancel()
        thread.join(10)
    assert [json.loads(line)["positions"] for line in b"".join(came).splitlines()] == [[0, 1], [0, 2]]


class Handler(BaseHTTPRequestHandler):
    """Answers with what `answers` says; keeps what was posted."""

    answers: ClassVar[list[tuple[int, bytes]]] = []
    asked: ClassVar[list[tuple[str, dict[str, str], bytes]]] = []

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        Handler.asked.append((self.path, dict(self.headers), body))
        status, text = Handler.answers.pop(0) if Handler.answers else (200, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.asked, Handler.answers = [], []
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_address_is_read_once_and_put_into_order(web: str) -> None:
    Handler.answers = [(503, b""), (200, json.dumps(list(reversed(EVENTS))).encode())]
    assert weft.count(f"{web}/events?type=X&page=2&token=secret", PAIRS) == {"q": 2}
    path, headers, _ = Handler.asked[-1]
    assert path == "/events?page=2"
    assert headers["Authorization"] == "Bearer secret"


def test_polling_tells_each_event_once_and_sends_the_cursor(web: str) -> None:
    first, second, third = LINES.splitlines(keepends=True)
    Handler.answers = [(200, first), (200, first + second), (200, first + second + third)]
    uri = as_uri(f"{web}/log?every=0&cursor=ts")
    assert uri is not None
    came = iter(open_source(uri).items or ())
    events = [event for _ in range(3) for chunk in next(came).chunks("ms") for event in map(chunk.row, [0])]
    assert events == EVENTS
    assert [path for path, _, _ in Handler.asked] == ["/log", "/log?after=1", "/log?after=2"]


def test_matches_are_posted_again_with_the_same_key(web: str) -> None:
    Handler.answers = [(503, b""), (200, b"")]
    running = weft.live(PAIRS)
    sink = running.subscribe("*", f"{web}/hook")
    running.push(EVENTS)
    assert (sink.delivered, sink.failed) == (2, 0)
    (_, first, body), (_, second, again) = Handler.asked
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert body == again
    assert [json.loads(line)["positions"] for line in body.splitlines()] == [[0, 1], [0, 2]]


def test_an_answer_that_does_not_pass_is_told(web: str) -> None:
    Handler.answers = [(404, b"")]
    with pytest.raises(weft.InputError, match="404"):
        weft.count(f"{web}/nothing", PAIRS)
    assert len(Handler.asked) == 1


def test_functions_give_events_and_take_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_events.py").write_text(
        "TAKEN = []\n"
        "def events(count):\n"
        "    yield from [{'type': 'A' if at == 0 else 'B', 'ts': at} for at in range(int(count))]\n"
        "def take(match, into):\n"
        "    TAKEN.append((into, match.positions))\n"
        "def broken():\n"
        "    yield {'type': 'A', 'ts': 1}\n"
        "    raise OSError('no more')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert weft.count("python:my_events.events?count=4", PAIRS) == {"q": 3}
    running = weft.live(PAIRS)
    running.subscribe("*", "python:my_events.take?into=here")
    running.push(EVENTS)
    import my_events  # type: ignore[import-not-found]

    assert my_events.TAKEN == [("here", (0, 1)), ("here", (0, 2))]
    with pytest.raises(weft.InputError, match="no more"):
        weft.count("python:my_events.broken", PAIRS)


@pytest.mark.parametrize(
    ("text", "role", "said"),
    [
        ("ftp://host/file", "source", "there is no adapter for 'ftp'"),
        ("htp://host/file", "source", "did you mean 'http'?"),
        ("tcp://host", "source", "write tcp://HOST:PORT"),
        ("tcp://host:9000?lisen=1", "source", "no option 'lisen' as a source; did you mean 'listen'?"),
        ("tcp://host:9000?type=A", "sink", "no option 'type' as a sink"),
        ("folder:nowhere-at-all", "source", "no such folder"),
        ("python:nothing", "source", "write python:MODULE.FUNCTION"),
        ("python:no_such_module.f", "sink", "'no_such_module' cannot be imported"),
        ("python:json.nothing", "sink", "has no function 'nothing'"),
        ("http://host/x?every=often", "source", "every is a number"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, role: Any, said: str) -> None:
    uri = as_uri(text)
    assert uri is not None
    assert said in str(problem_of(uri, role))


def test_check_reports_adapters_with_their_places() -> None:
    program = weft.compile(
        "SOURCE A (x int) FROM 'gopher://x'\nSOURCE B (x int) FROM 'tcp://x'\nSELECT * FROM A ; B", "eql"
    )
    text = "SOURCE A (x int) FROM 'gopher://x'\nSOURCE B (x int) FROM 'tcp://x'\nSELECT * FROM A ; B"
    unknown, lacking = check_adapters(program, text)
    assert (unknown.code, unknown.severity, unknown.line, unknown.column) == ("unknown-adapter", "error", 1, 24)
    assert (lacking.code, lacking.severity, lacking.line) == ("adapter", "warning", 2)


def test_weft_check_ends_with_1_for_an_unknown_adapter(tmp_path: Path) -> None:
    file = tmp_path / "p.eql"
    file.write_text("SOURCE A (x int) FROM 'gopher://x'\nSELECT * FROM A")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "check", str(file)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "unknown-adapter" in done.stderr


def test_a_program_reads_and_writes_the_places_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out.jsonl"
    with sender(b'{"ts": 1, "x": 1}\n') as a, sender(b'{"ts": 2, "x": 2}\n') as b:
        program = tmp_path / "p.eql"
        program.write_text(
            f"SOURCE A (x int) FROM 'tcp://127.0.0.1:{a}'\nSOURCE B (x int) FROM 'tcp://127.0.0.1:{b}'\n"
            f"SINK found TO 'file:{out}'\nSELECT * FROM A ; B INTO found"
        )
        command = [sys.executable, "-m", "weft", "match", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["positions"] for line in out.read_text().splitlines()] == [[0, 1]]


def test_sinks_elsewhere_need_permission(tmp_path: Path) -> None:
    program = tmp_path / "p.eql"
    program.write_text(
        "SOURCE A (x int) FROM 'a.jsonl'\nSINK found TO 'http://127.0.0.1:1/x'\nSELECT * FROM A INTO found"
    )
    command = [sys.executable, "-m", "weft", "match", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2
    assert "--allow-sinks" in done.stderr


def test_a_program_calls_no_function_unasked(tmp_path: Path) -> None:
    (tmp_path / "p.eql").write_text("SOURCE A (x int) FROM 'python:os.getcwd'\nSELECT * FROM A")
    command = [sys.executable, "-m", "weft", "match", "p.eql"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2
    assert "calls python:os.getcwd" in done.stderr


def test_adapters_can_be_registered() -> None:
    register(Adapter("numbers", "for this test", lambda uri: Incoming(items=[{"type": "A", "ts": 1}], is_live=False)))
    try:
        assert "numbers" in known_adapters()
        assert weft.count("numbers://x", "SELECT * FROM S WHERE A AS a") == {"q": 1}
        uri = as_uri("numbers://x")
        assert uri is not None
        with pytest.raises(weft.UsageError, match="cannot be a sink"):
            open_sink(uri)
        with pytest.raises(weft.UsageError, match="give each a name"):
            inputs.placed(["numbers://x", "numbers://y"])
    finally:
        del _REGISTERED["numbers"]


def test_weft_run_takes_folders_by_uri_and_says_what_it_cannot_take(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    program = weft.compile(PAIRS, "ceql")
    places = {"sink": f"folder:{tmp_path}/out", "checkpoint": str(tmp_path / "state")}
    run = engines.continuous(program, [("a", f"folder:{tmp_path}/in?type=A")], **places)
    assert run.options.sink == f"{tmp_path}/out"
    for uri, said in (("tcp://h:1", "tcp cannot be a source of weft run"), ("gopher://h", "there is no adapter")):
        with pytest.raises(weft.UsageError, match=said):
            engines.continuous(program, [("a", uri)], **places)
    with pytest.raises(weft.UsageError, match="tcp cannot be a sink of weft run"):
        engines.continuous(program, [("a", str(tmp_path / "in"))], **{**places, "sink": "tcp://h:1"})


def test_weft_match_waits_for_events_of_a_socket_that_are_late() -> None:
    late = [{"type": "B", "ts": 20}, {"type": "A", "ts": 15}, {"type": "B", "ts": 25}]
    with sender("".join(json.dumps(event) + "\n" for event in late).encode()) as port:
        place = f"tcp://127.0.0.1:{port}"
        command = [sys.executable, "-m", "weft", "match", "-q", PAIRS, "--events", place, "--delay", "10", "--count"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"query": "q", "count": 2}
