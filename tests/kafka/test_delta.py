"""`weft run` with Delta tables: each match once, also when a trigger is tried again; a table as a source."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kafka.broker import Unavailable, delta_jars
from tests.kafka.conftest import Command, expected

TOGETHER = True
QUERY = "SELECT a[k], b[v] WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 6 MILLISECONDS"
TO_DELTA = ["--source", "s=in", "--sink", "delta:found", "--positions"]
READ = """
import json, sys
from weft.runtime.spark.session import spark_session
from weft.runtime.spark.connections.addresses import DeltaAddress
from weft.runtime.spark.connections.packages import connection_settings
session = spark_session("local[1]", connection_settings([DeltaAddress("")], (), sys.argv[2:]))
rows = session.read.format("delta").load(sys.argv[1]).collect()
print(json.dumps([[row.id, list(row.positions), row.event.k, row.event.v] for row in rows]))
"""


@pytest.fixture(scope="module")
def jars() -> list[str]:
    import pyspark

    try:
        return delta_jars(pyspark.__version__)
    except Unavailable as reason:
        pytest.skip(f"no Delta here: {reason}")


def events(count: int) -> list[dict[str, object]]:
    return [{"type": "AB"[i % 3 == 0], "ts": i, "k": i % 5, "v": f"v{i}"} for i in range(count)]


def put(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def rows_of(table: Path, jars: list[str]) -> list[list[object]]:
    """The rows of a table, read in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(table), *jars], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_a_trigger_that_is_tried_again_is_not_appended_again(jars: list[str], tmp_path: Path) -> None:
    given = events(120)
    put(tmp_path / "in", "a.jsonl", given[:60])
    run = Command(tmp_path, QUERY, jars, [*TO_DELTA, "--until", "read"])
    run.finish()
    first = rows_of(tmp_path / "found", jars)
    commits = tmp_path / "state" / "spark" / "commits"
    last = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
    for left in commits.glob(f"*{last}*"):  # as if the process had died before it could note the end of the trigger
        left.unlink()
    run.finish()
    assert rows_of(tmp_path / "found", jars) == first
    assert first
    put(tmp_path / "in", "b.jsonl", given[60:])
    run.arguments = [*run.arguments[:-1], "complete"]
    run.finish()
    found = rows_of(tmp_path / "found", jars)
    wanted = expected(given, QUERY)
    assert len(found) == len(wanted)
    assert {one[0]: one[1] for one in found} == wanted
    assert os.listdir(tmp_path / "state" / "weft" / "staged") in ([".weft-run"], [])


def test_a_table_is_a_source(jars: list[str], tmp_path: Path) -> None:
    """The matches of one run are the events of another."""
    given = events(60)
    put(tmp_path / "in", "a.jsonl", given)
    run = Command(tmp_path, QUERY, jars, [*TO_DELTA, "--until", "complete"])
    run.finish()
    matches = len(expected(given, QUERY))
    shutil.rmtree(tmp_path / "state")
    again = ["--source", "s=delta:found?type=Pair", "--sink", "out", "--until", "complete"]
    Command(tmp_path, "SELECT m[id] WHERE Pair AS m", jars, again, "again").finish()
    lines = [line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert len(lines) == matches
    assert {json.loads(line)["event"]["id"] for line in lines} == expected(given, QUERY).keys()
