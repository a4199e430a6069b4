"""Runs on a real Spark whose processes are killed lose nothing and double nothing.

`make chaos-spark`: KILLS=100 says how many, SEED=… which. The matches of `detect` on this machine, which knows
no failure, are the expectation.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest
from tests.chaos.killing import MASTERS, Kill, kills, table
from tests.chaos.lives import Lives
from tests.spark.standalone import cluster

from weft import api

KILLS = int(os.environ.get("WEFT_KILLS", "0"))
SEED = int(os.environ.get("WEFT_SEED", "1"))
MINUTES = float(os.environ.get("WEFT_MINUTES", "5"))  # of killing; then the runs may end in peace
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
Found = Counter[tuple[object, object]]


def test_nothing_is_lost_or_doubled_whoever_is_killed(tmp_path: Path) -> None:
    planned, done = kills(SEED, KILLS), list[Kill]()
    wrong: list[str] = []
    for master in MASTERS:
        mine = [kill for kill in planned if kill.master == master]
        if mine:
            wrong += killed_along(tmp_path / master, mine, done)
    print(f"\nseed {SEED}: {len(done)} of {len(planned)} kills\n{table(planned, done)}")
    assert not wrong, wrong
    assert done


def killed_along(folder: Path, planned: Sequence[Kill], done: list[Kill]) -> list[str]:
    """Kill a run again and again, and let it come to its end; what is wrong with the matches then."""
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    with master_of(planned[0].master, folder) as master:
        lives = Lives(folder, master, tuple(PROGRAMS), Random(SEED))
        try:
            lives.prepared()
            limit = time.monotonic() + 60 * MINUTES * len(planned) / KILLS
            for kill in planned:
                death = lives.suffer(kill, limit) if time.monotonic() < limit else None
                how = "not reached"
                if death is not None:
                    done.append(kill)
                    how = f"process {death.process}, {death.awaited:.1f} s to the sign, {death.ending:.1f} s to the end"
                print(f"{kill.master}: {kill.victim} in {kill.place}: {how}", flush=True)
            lives.finish()
        finally:
            lives.end()
    expected, found = expectation(lives.events, folder), written(folder)
    print(f"{planned[0].master}: {found.total()} matches of {len(lives.events)} events", flush=True)
    differences = [
        f"{what}: {sorted(some)[:5]}"
        for what, some in (("lost", expected - found), ("doubled", found - expected))
        if some
    ]
    return [f"{planned[0].master}: {wrong}" for wrong in (*differences, *lives.complaints())]


@contextmanager
def master_of(kind: str, folder: Path) -> Iterator[str]:
    with nullcontext("local[2]") if kind == "local" else cluster(folder / "cluster") as url:
        yield url


def expectation(events: list[dict[str, object]], folder: Path) -> Found:
    """What is to be found."""
    program = api.merge_programs([api.compile(folder / name) for name in PROGRAMS])
    found = Counter((match.query, match.id) for match in api.detect(events, program))
    assert {query for query, _ in found} == {"pairs", "alone", "Last", "both"}
    return found


def written(folder: Path) -> Found:
    """What was found."""
    lines = [line for path in sorted((folder / "out").glob("*.jsonl")) for line in path.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    assert not list((folder / "out" / "rejects").glob("*.jsonl"))
    return Counter((row["query"], row["id"]) for row in rows)
