"""The examples of clients against a real server: in Python, with curl, and a page in a real browser."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.serving import ServerProcess

import weft

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EXAMPLES = Path(__file__).parents[3] / "examples" / "service"
DOCUMENT = Path(__file__).parents[3] / "docs" / "serve.md"
ADDRESS = "http://127.0.0.1:8787"  # in the document


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of another site: a copy of the examples."""
    return Path(shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("site") / "service"))


@pytest.fixture(scope="module")
def pages(site: Path) -> Iterator[str]:
    """The address of that site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
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


def documented(language: str, containing: str) -> str:
    """The block of docs/serve.md that has this text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return next(block for block in blocks if containing in block)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_lines_with_curl_in_the_document(server: ServerProcess) -> None:
    lines = documented("sh", "curl ").replace(ADDRESS, server.url).splitlines()
    answers = [
        subprocess.run(["bash", "-c", f"{line} --silent --max-time {at}"], cwd=EXAMPLES, capture_output=True, text=True)
        for line, at in zip(lines, (60, 60, 3), strict=True)
    ]
    assert json.loads(answers[0].stdout) == {"names": ["Heat"], "warnings": []}
    assert json.loads(answers[1].stdout) == {"accepted": 4, "rejected": [], "late": 0}
    assert '"event": {"area": "hall"}' in answers[2].stdout


@pytest.fixture
def open_page() -> Iterator[Callable[[str], Any]]:
    """Opens pages in a browser."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()

        def opened(address: str) -> Any:
            page.goto(address)
            return page

        yield opened
        browser.close()


def test_the_page_in_a_browser(server: ServerProcess, pages: str, open_page: Callable[[str], Any]) -> None:
    with weft.connect(server.url) as client:
        client.deploy(EXAMPLES / "fire.tesla")
        page = open_page(f"{pages}/page.html?server=127.0.0.1:{server.port}")
        page.get_by_text("connected", exact=True).wait_for()
        client.publish_place(str(EXAMPLES / "events.jsonl"))
        client.flush()
        page.get_by_text("hall: 60").wait_for()


def test_the_page_in_the_document(
    server: ServerProcess, site: Path, pages: str, open_page: Callable[[str], Any]
) -> None:
    with weft.connect(server.url) as client:
        client.deploy(EXAMPLES / "fire.tesla")
        (site / "own.html").write_text(documented("html", "EventSource").replace(ADDRESS, server.url))
        page = open_page(f"{pages}/own.html")
        while client.stats()["subscribers"] == 0:
            time.sleep(0.05)
        client.publish_place(str(EXAMPLES / "events.jsonl"))
        client.flush()
        page.get_by_text("hall", exact=True).wait_for()
