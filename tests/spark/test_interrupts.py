"""Ctrl-C on Spark: commands and Python end soon, also while a worker looks for matches that will never be found.

`WEFT_CTRL_C=1` tries all ways to run; how long each takes is printed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.chaos.killing import await_end, below, end_all

# Nothing but listing can tell how many matches satisfy this, and none does.
SLOW = "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER SUM(a[x]) + COUNT(a) < b[x] WITHIN 1 DAY"
EVENTS = [{"type": "AB"[n // 70], "ts": n, "x": 0} for n in range(71)]
LATER = {"type": "B", "ts": 200, "x": 0}
PATIENCE = 120.0  # seconds for a worker to be at work: machines may be busy
AT_WORK = 1.0  # seconds of its time, more than it takes to begin

SHELL = """
import sys, weft
from weft.runtime.spark.session import spark_session
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    sys.exit(130)
"""
STREAM = f"""
    frame = spark_session().readStream.schema("type string, ts long, x long").json("in")
    found = weft.match(frame, {SLOW!r}, delay=0).writeStream.foreachBatch(lambda rows, _: rows.collect())
    found.option("checkpointLocation", "state").start().awaitTermination()
"""
PYTHON = [sys.executable, "-W", "ignore"]
RUN = ["run", "-q", SLOW, "--source", "S=in", "--sink", "out", "--checkpoint", "state", "--until", "complete"]
MATCH = ["match", "-q", SLOW, "--events", "in/events.jsonl", "--engine", "spark"]
WAYS = {
    "run": [*PYTHON, "-m", "weft", *RUN],
    "detect": [*PYTHON, "-c", SHELL.format(work=f"list(weft.detect('in/events.jsonl', {SLOW!r}, engine='spark'))")],
    "stream": [*PYTHON, "-c", SHELL.format(work=STREAM.strip())],
    "match": [*PYTHON, "-m", "weft", *MATCH],
    "count": [*PYTHON, "-m", "weft", *MATCH, "--count"],
}
IN_SUITE = ("run", "detect")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@pytest.mark.parametrize("way", WAYS if os.environ.get("WEFT_CTRL_C") else IN_SUITE)
def test_ctrl_c_ends_it_while_a_worker_is_at_work(way: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [json.dumps(event) + "\n" for event in (*EVENTS, LATER)]
    (tmp_path / "in" / "events.jsonl").write_text("".join(lines))
    with (tmp_path / "told").open("w") as told:
        process = subprocess.Popen(WAYS[way], cwd=tmp_path, stderr=told)
    try:
        await_work(process)
        own = [one.id for one in below(process.pid)]
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        ended = time.monotonic() - began
        assert await_end(own, 60), "processes live on"
        print(f"{way}: it ended after {ended:.2f} s, all that it had started after {time.monotonic() - began:.2f} s")
    finally:
        end_all(process.pid)
        process.wait()
    said = (tmp_path / "told").read_text()
    assert process.returncode == 130, said
    assert "interrupted" in said
    if "-m" in WAYS[way]:  # in Python, Spark logs what it likes
        assert "Traceback" not in said


def await_work(process: subprocess.Popen[bytes]) -> None:
    """Wait until a worker of Spark's has been at work for a while. The parent of workers is not meant."""
    limit = time.monotonic() + PATIENCE
    before: dict[int, float] = {}
    while time.monotonic() < limit and process.poll() is None:
        workers = {one.id: one.parent for one in below(process.pid) if one.kind == "worker"}
        for worker in (one for one, parent in workers.items() if parent in workers):
            if seconds(worker) - before.setdefault(worker, seconds(worker)) > AT_WORK:
                return
        time.sleep(0.05)
    raise AssertionError(f"no worker is at work; it ended with {process.poll()}")


def seconds(process: int) -> float:
    """The time that a process has worked."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
