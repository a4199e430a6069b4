"""From the workbench to Spark and back: a program is deployed, watched and stopped, in a process of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.errors import ProgramError
from weft.workbench.service import ProgramSource, Workbench

EXAMPLES = Path(__file__).parents[2] / "examples"
HOT = "QUERY hot AS SELECT * FROM warehouse WHERE T AS t FILTER t[val > 80] WITHIN 1 EVENT"
PATIENCE = 240.0  # seconds: machines may be busy


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.spark
def test_a_program_is_deployed_on_spark_watched_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    shutil.copytree(EXAMPLES / "fire", tmp_path / "project" / "fire")
    incoming = tmp_path / "project" / "incoming"
    incoming.mkdir()
    shutil.copy(EXAMPLES / "fire" / "sensors.jsonl", incoming)
    bench = Workbench(tmp_path / "project")
    started = bench.submit_to_spark(bench.program("fire/fire.ceql"), {"warehouse": "incoming"}, "fire")
    try:
        assert (started.name, started.where, started.state) == ("fire", "spark", "running")
        wait_for(lambda: bench.run("fire").info.summary.events == 9 or bench.run("fire").info.state != "running")
        found = bench.run("fire")
        assert found.info.state == "running", found.info.problem
        assert sum(operator.received for operator in found.info.summary.operators) > 0
        assert found.info.summary.waiting > 0
        assert sum(lane.load for lane in found.info.summary.lanes) == pytest.approx(1.0)
        assert [point.lag for point in found.history] == [0]
        assert any("9 events" in line for line in found.log)
        # The last event, which makes two matches, waits for the watermark.
        assert 0 < found.busy <= 1
        wait_for(lambda: (told := bench.run("fire").checkpoint) is not None and told.trigger is not None)
        assert found.funnels == bench.funnels("fire") == {"fire": [("t1", 2), ("h1", 2), ("match", 0)]}
        wait_for(lambda: bool(bench.cluster().executors))
        assert bench.cluster().executors[0].cores > 0
        change_it(bench, incoming)
    finally:
        assert bench.stop("fire").state == "ended"


def change_it(bench: Workbench, incoming: Path) -> None:
    """Other programs are taken over while it runs, or refused, and the one before goes on."""
    fire = bench.program("fire/fire.ceql")
    assert [file.path for file in bench.programs()] == ["fire/fire.ceql", "fire/heating.ceql"]
    with pytest.raises(ProgramError):
        bench.change("fire", ProgramSource("SELECT * FROM", "ceql", "fire/fire.ceql"))
    (bench.project.folder / "runs/fire/program/fire.ceql").write_text("SELECT * FROM")
    wait_for(lambda: bench.run("fire").info.change is not None)
    refused = bench.run("fire").info.change
    assert refused is not None
    assert refused.refused
    changed = bench.change("fire", ProgramSource(f"{fire.text}\n{HOT}", "ceql", "fire/fire.ceql")).change
    assert changed is not None
    assert changed.told.splitlines() == ["fire: keeps its state", "hot: begins anew, it is new"]
    unfinished = bench.project.folder / ".more.jsonl"
    unfinished.write_text('{"type": "T", "ts": 100, "id": 1, "val": 90}\n{"type": "T", "ts": 900, "id": 1, "val": 1}\n')
    unfinished.rename(incoming / "more.jsonl")
    wait_for(lambda: bench.run("fire").info.summary.events == 11 or bench.run("fire").info.state != "running")
    found = {query.name: query.matches for query in bench.run("fire").info.summary.queries}
    assert found == {"fire": 4, "hot": 1}  # partial matches are not among them
    newest = [(match.query, match.end, match.event) for match in bench.run("fire").matches]
    assert sorted(newest, key=lambda one: one[:2]) == [
        *[("fire", 8, {"id": 1})] * 2,
        *[("fire", 100, {"id": 1})] * 2,
        ("hot", 100, {}),
    ]
    assert bench.funnels("fire") == {"fire": [("t1", 2), ("h1", 2), ("match", 4)], "hot": [("match", 1)]}
    assert any("the program has changed" in line for line in bench.run("fire").log)
