"""What there is to follow of a run: newest matches, checkpoint, how busy it is; and the events of a program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.drawing.scene import scene_of
from weft.drawing.timeline import timeline_svg
from weft.running.registry import Registration
from weft.workbench.following import KEPT, busy_share
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample

pytest.importorskip("nicegui", reason="the workbench needs weft[workbench]")

from weft.workbench.pages.run_texts import checkpoint_text, match_row, pressure_text

PAIR = "SELECT b[x] FROM S WHERE A AS a ; B AS b WITHIN 100 EVENTS"
ROWS = '{"type": "A", "ts": 1, "x": 1}\n{"type": "B", "ts": 2, "x": 2}'


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    (tmp_path / "project").mkdir()
    return Workbench(tmp_path / "project")


def test_the_newest_matches_of_a_run_here_come_first(bench: Workbench) -> None:
    bench.submit(ProgramSource(PAIR, "ceql"), Sample(), "here")
    bench.push("here", ROWS)
    for number in range(3, 200):
        bench.push("here", json.dumps({"type": "B", "ts": number, "x": number}))
    found = bench.run("here")
    assert len(found.matches) == KEPT
    assert [match.event["x"] for match in found.matches[:2]] == [101, 100]
    assert (found.checkpoint, found.sink, found.replayed) == (None, "", None)
    assert 0 < found.busy <= 1
    assert match_row(0, found.matches[0])["event"] == "x=101"
    bench.stop("here")


def test_the_matches_and_the_checkpoint_of_a_run_on_spark_are_read_from_their_folders(
    bench: Workbench, tmp_path: Path
) -> None:
    sink, commits = tmp_path / "found", tmp_path / "state" / "spark" / "commits"
    sink.mkdir()
    commits.mkdir(parents=True)
    run = Registration("night", {"sink": "found", "checkpoint": "state", "folder": str(tmp_path)})
    assert checkpoint_text(bench.run("night").checkpoint) == "checkpoint state: nothing is committed yet"
    line = {"query": "q", "id": "1", "start": 1, "end": 2, "positions": [0], "bindings": {"a": [0]}, "event": {"x": 7}}
    (sink / "0.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, "end": 3}) + "\n")
    pq.write_table(pa.Table.from_pylist([{"query": "q", "id": "3", "start": 1, "end": 5, "x": 9}]), sink / "1.parquet")
    (sink / "2.jsonl").write_text("{half")
    (sink / ".3.unfinished.jsonl").write_text(json.dumps(line))
    for number in range(3):
        os.utime(next(sink.glob(f"{number}.*")), (1000 + number, 1000 + number))
    for number in (0, 1):
        (commits / str(number)).write_text("v1\n{}")
        os.utime(commits / str(number), (1000 + number, 1000 + number))
    found = bench.run("night")
    assert [(match.end, match.event) for match in found.matches] == [(5, {"x": 9}), (3, {"x": 7}), (2, {"x": 7})]
    assert found.checkpoint is not None
    assert (found.checkpoint.trigger, found.checkpoint.at, found.checkpoint.size) == (1, 1001.0, 10)
    assert "trigger 1 committed" in checkpoint_text(found.checkpoint)
    assert pressure_text(found) == "it keeps up with its input"
    run.tell(sink="kafka://localhost:9092/fires", checkpoint="s3://bucket/state")
    elsewhere = bench.run("night")
    assert (elsewhere.matches, elsewhere.sink) == ([], "kafka://localhost:9092/fires")
    assert checkpoint_text(elsewhere.checkpoint) == "checkpoint s3://bucket/state: it is not on this machine"


def test_the_newest_matches_of_a_run_into_a_delta_table_are_those_of_its_commits(
    bench: Workbench, tmp_path: Path
) -> None:
    log = tmp_path / "found" / "_delta_log"
    log.mkdir(parents=True)
    for number in range(3):
        name = f"part {number}.parquet"
        row = {"query": "q", "id": str(number), "start": 1, "end": number, "event": {"x": number}}
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / "found" / name)
        add = {"path": name.replace(" ", "%20"), "dataChange": number < 2, "modificationTime": 1000 * number}
        commit = log / f"{number:020}.json"
        commit.write_text("\n".join(json.dumps(action) for action in ({"commitInfo": {}}, {"add": add})))
        os.utime(commit, (1000 + number, 1000 + number))
    Registration("tables", {"sink": "delta:found", "folder": str(tmp_path)})
    found = bench.run("tables")
    assert [(match.at, match.end, match.event) for match in found.matches] == [(1, 1, {"x": 1}), (0, 0, {"x": 0})]
    assert found.sink == ""


def test_a_run_is_busy_for_the_share_of_the_last_minute_that_triggers_took() -> None:
    triggers = [{"at": 100.0 + 10 * number, "seconds": 8.0} for number in range(10)]
    assert busy_share(triggers, 100.0, 190.0) == pytest.approx(48 / 60)
    assert busy_share(triggers, 170.0, 190.0) == pytest.approx(16 / 20)
    assert busy_share(triggers * 3, 100.0, 190.0) == 1.0


def test_the_events_of_a_program_are_of_its_name_or_have_its_types(bench: Workbench) -> None:
    folder = bench.project.folder
    bench.save("shop/pair.ceql", PAIR)
    assert bench.events_for("shop/pair.ceql") == ""
    (folder / "elsewhere.jsonl").write_text(ROWS)
    (folder / "shop" / "a.jsonl").write_text('{"type": "C", "ts": 1}')
    assert bench.events_for("shop/pair.ceql") == "shop/a.jsonl"
    (folder / "shop" / "events.jsonl").write_text(ROWS)
    assert bench.events_for("shop/pair.ceql") == "shop/events.jsonl"
    (folder / "shop" / "pair.csv").write_text("type,ts\nC,1\n")
    assert bench.events_for("shop/pair.ceql") == "shop/pair.csv"


def test_a_timeline_has_the_width_that_is_asked_for(bench: Workbench) -> None:
    tried = bench.try_program(ProgramSource(PAIR, "ceql"), Sample(rows=ROWS), width=1214)
    assert 'width="1214"' in tried.timeline
    assert 'width="880"' in timeline_svg(scene_of([], 0))
