"""The code of docs/kafka.md and docs/delta.md runs, and prints what they show.

Blocks marked `kafka` or `delta` run in their order. Broker and packages are those of the tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kafka.broker import Unavailable, delta_jars, iceberg_jars
from tests.kafka.conftest import Kafka

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Runs in a process of its own: a session has the jars that it began with.
RUNNER = """
import subprocess, sys
from contextlib import redirect_stdout
from io import StringIO
namespace = {"__name__": "document"}
for kind, text, shown in BLOCKS:
    out = StringIO()
    if kind == "console":
        for line in text.splitlines():
            command = [sys.executable, "-m", *line.removeprefix("$ ").split()]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, (line, done.stdout + done.stderr)
            out.write(done.stdout)
    else:
        with redirect_stdout(out):
            exec(compile(text, "document", "exec"), namespace)
    if shown is not None:
        assert out.getvalue() == shown, f"printed:\\n{out.getvalue()}\\nshown:\\n{shown}"
print("all blocks ran", len(BLOCKS))
"""


def blocks(page: str, mark: str) -> list[tuple[str, str, str | None]]:
    """The blocks with a mark: their kind, their text, and what a block of text right after them shows."""
    found = FENCE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    marked = []
    for at, (info, text) in enumerate(found):
        if info in (f"python {mark}", f"console {mark}"):
            after = found[at + 1] if at + 1 < len(found) else ("", "")
            marked.append((info.split()[0], text, after[1] if after[0] == "text" else None))
    return marked


def run_page(folder: Path, page: str, mark: str, jars: list[str], replaced: dict[str, str]) -> None:
    """Run a page's blocks in a folder, with these jars for the packages that it names."""
    made = []
    for kind, text, shown in blocks(page, mark):
        for before, after in replaced.items():
            text = text.replace(before, after)
        text = re.sub(r"--packages \S+", f"--jars {','.join(jars)}", text)
        text = re.sub(r'"spark\.jars\.packages", "[^"]+"', f'"spark.jars", "{",".join(jars)}"', text)
        made.append((kind, text, shown))
    assert made
    script = folder / "page.py"
    script.write_text(f"BLOCKS = {made!r}\n{RUNNER}")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert f"all blocks ran {len(made)}" in done.stdout


def test_the_page_about_kafka_is_true(kafka: Kafka, tmp_path: Path) -> None:
    run_page(tmp_path, "kafka.md", "kafka", kafka.jars, {"localhost:9092": kafka.address})


def test_the_page_about_delta_is_true(tmp_path: Path) -> None:
    import pyspark

    try:
        jars = delta_jars(pyspark.__version__)
    except Unavailable as reason:
        pytest.skip(f"no Delta here: {reason}")
    run_page(tmp_path, "delta.md", "delta", jars, {})


def test_the_page_about_tables_is_true_without_delta(tmp_path: Path) -> None:
    """The recipes that need no package: JDBC, with the database that Spark brings."""
    run_page(tmp_path, "delta.md", "jdbc", [], {})


def test_the_page_about_iceberg_is_true(tmp_path: Path) -> None:
    import pyspark

    try:
        jars = iceberg_jars(pyspark.__version__)
    except Unavailable as reason:
        pytest.skip(f"no Iceberg here: {reason}")
    run_page(tmp_path, "delta.md", "iceberg", jars, {})
