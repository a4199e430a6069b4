"""The examples of clients against a real server: in Python, with curl, and a page in a real browser."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.serving import ServerProcess

import weft

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EXAMPLES = Path(__file__).parents[3] / "examples" / "service"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    """The folder of examples, served as another site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(EXAMPLES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(pages: str) -> Iterator[ServerProcess]:
    with ServerProcess("--origin", pages) as running:
        yield running


def test_the_client_in_python(server: ServerProcess) -> None:
    command = [sys.executable, str(EXAMPLES / "client.py"), server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Published(accepted=4, rejected=0" in done.stdout, done.stderr
    assert "{'area': 'hall', 'temp': 60.0}" in done.stdout


def test_three_processes_deploy_publish_and_subscribe(server: ServerProcess) -> None:
    """T-Rex's own scenario: each is a process that knows nothing but the address."""
    command = ["bash", str(EXAMPLES / "three_processes.sh"), server.url]
    environment = {**os.environ, "WEFT": f"{sys.executable} -m weft"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert "deployed Fire" in done.stderr
    assert "4 accepted, 0 rejected" in done.stderr
    assert json.loads(done.stdout)["event"] == {"area": "hall", "temp": 60.0}


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_client_with_curl(server: ServerProcess) -> None:
    command = ["bash", str(EXAMPLES / "curl.sh"), server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert '{"accepted":4,"rejected":[],"late":0}' in done.stdout
    assert done.stdout.count('"event": {"area": "hall", "temp": 60.0}') == 1


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt-get install chromium)")
def test_the_page_in_a_browser(server: ServerProcess, pages: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as tools, weft.connect(server.url) as client:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        client.deploy(EXAMPLES / "fire.tesla")
        page = browser.new_page()
        page.goto(f"{pages}/page.html?server=127.0.0.1:{server.port}")
        page.get_by_text("connected", exact=True).wait_for()
        client.publish_place(str(EXAMPLES / "events.jsonl"))
        client.flush()
        page.get_by_text("hall: 60").wait_for()
        browser.close()
