"""Runs on a real Spark whose processes are killed lose nothing and double nothing.

`make chaos-spark`: KILLS=100 says how many, SEED=… which. The matches of `detect` on this machine, which knows
no failure, are the expectation.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest
from tests.chaos.killing import PLACES, await_sign, end, end_all, kills, names_in
from tests.spark.standalone import SOURCE, cluster, environment

from weft import api

KILLS = int(os.environ.get("WEFT_KILLS", "0"))
SEED = int(os.environ.get("WEFT_SEED", "1"))
MINUTES = float(os.environ.get("WEFT_MINUTES", "5"))  # of killing, on each master; then the run may end in peace
pytestmark = [
    pytest.mark.skipif(not KILLS, reason="real kills take minutes: make chaos-spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]
PROGRAMS = {
    "pairs.ceql": "SELECT a, b[x] WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 90 MILLISECONDS",
    "alone.eql": "SELECT * FROM (A a @ 9 msec) \\ C c WHERE c.k = a.k",
    "last.tesla": "define Last(x: int) from C(k = $k) and last B(k = $k) within 50 from C where x = B.x consuming B",
    "both.epn": "pattern both all(A a, C c) where a.k = c.k context fixed 40",
}
PER_FILE = 40
LOCAL, CLUSTER = ("driver", "jvm", "worker"), ("driver", "jvm", "worker", "executor")
Found = Counter[tuple[object, object]]


def prepare(folder: Path, files: int) -> Found:
    """Write programs and files of events; what is to be found."""
    chance = Random(SEED)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    (folder / "in").mkdir()
    events: list[dict[str, object]] = []
    for number in range(files):
        part = [
            {
                "type": chance.choice("AABC"),
                "ts": 3 * n + chance.randrange(9),
                "k": "uvw"[n % 3],
                "x": chance.randrange(8),
            }
            for n in range(number * PER_FILE, (number + 1) * PER_FILE)
        ]
        path = folder / "in" / f"{number:04d}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in part))
        os.utime(path, (1000 + number, 1000 + number))
        events += part
    program = api.together([api.compile(folder / name) for name in PROGRAMS])
    found = Counter((match.query, match.id) for match in api.detect(events, program))
    assert {query for query, _ in found} == {"pairs", "alone", "Last", "both"}
    return found


def written(folder: Path) -> Found:
    lines = [line for path in sorted((folder / "out").glob("*.jsonl")) for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    assert not list((folder / "out" / "rejects").glob("*.jsonl"))
    return Counter((row["query"], row["id"]) for row in rows)


def start(folder: Path, master: str, *more: str) -> subprocess.Popen[bytes]:
    options = ["--source", "in=in", "--sink", "out", "--checkpoint", "state", "--until", "complete", "--delay", "9"]
    command = [sys.executable, "-W", "ignore", "-m", "tests.chaos.killed_run", master, "run", *PROGRAMS, *options]
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(Path(__file__).parents[2])])
    with (folder / "told").open("ab") as told:
        return subprocess.Popen(
            [*command, "--files-per-trigger", "1", "--lanes", "2", *more],
            cwd=folder,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=told,
        )


def kill_along(folder: Path, master: str, number: int, victims: tuple[str, ...]) -> Counter[str]:
    """Kill a run again and again, start it again when that ended it, and let it come to its end; who was killed."""
    chance, limit = Random(SEED), time.monotonic() + 60 * MINUTES
    done: Counter[str] = Counter()
    process: subprocess.Popen[bytes] | None = None
    try:
        for kill in kills(SEED, number, victims):
            before = names_in(folder / PLACES[kill.place])
            if process is None or process.poll() is not None:
                check_end(folder, process)
                process = start(folder, master)
            if not await_sign(
                kill, folder, before, lambda own=process: own.poll() is None and time.monotonic() < limit
            ):
                continue
            if end(kill, process.pid, chance) is None:
                continue
            done[f"{kill.victim} at {kill.place}"] += 1
            if kill.victim in ("driver", "jvm"):
                process.wait(120)
        finish(folder, master, process)
    finally:
        if process is not None:
            end_all([process.pid])
            process.wait()
    return done


def finish(folder: Path, master: str, process: subprocess.Popen[bytes] | None) -> None:
    """Let the run come to its end, started again if the last kills have ended it."""
    for _ in range(3):
        if process is None or process.poll() not in (None, 0):
            check_end(folder, process)
            process = start(folder, master)
        try:
            if process.wait(300) == 0:
                return
        finally:
            if process.poll() is None:
                end_all([process.pid])
    raise AssertionError((folder / "told").read_text()[-3000:])


def check_end(folder: Path, process: subprocess.Popen[bytes] | None) -> None:
    """Whoever was killed: what the process said of it is no stack trace."""
    told = (folder / "told").read_text(errors="replace") if process is not None else ""
    assert "Traceback" not in told, told[-3000:]
    assert process is None or process.returncode in (0, 1, 2, -signal.SIGKILL), (process.returncode, told[-3000:])


@contextmanager
def master_of(kind: str, folder: Path) -> Iterator[str]:
    with nullcontext("local[2]") if kind == "local" else cluster(folder / "cluster") as url:
        yield url


@pytest.mark.parametrize(("kind", "victims"), [("local", LOCAL), ("cluster", CLUSTER)])
def test_nothing_is_lost_or_doubled_whoever_is_killed(kind: str, victims: tuple[str, ...], tmp_path: Path) -> None:
    number = (KILLS + (kind == "local")) // 2
    expected = prepare(tmp_path, 2 * number + 3)
    with master_of(kind, tmp_path) as master:
        done = kill_along(tmp_path, master, number, victims)
    found = written(tmp_path)
    print(f"{kind}: {done.total()} kills, {found.total()} matches; {dict(sorted(done.items()))}")
    assert found == expected, {"lost": sorted(expected - found)[:5], "doubled": sorted(found - expected)[:5]}
    assert done  # how many were in time is for the reader
