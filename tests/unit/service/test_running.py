"""Runs that are watched: activity, log lines, metrics, the registry and its commands. No Spark is needed."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import UsageError
from weft.live_programs.program import LiveProgram
from weft.running import registry
from weft.running.activity import Activity
from weft.running.logs import JsonFormatter, TextLines, log_trigger
from weft.running.metrics import health, metrics_text, serve
from weft.runtime.spark.runs.warning import Unreadable
from weft.runtime.watching.standstill import Standstill
from weft.runtime.watching.triggers import OperatorStats, Standing, Trigger


def trigger(number: int, at: float, events: int = 10, **matches: int) -> Trigger:
    lanes = (Standing(0, events, 3, 7, 1000, 20), Standing(1, events, 2, 0, 500, None))
    return Trigger(number, at, 0.5, events, 1, 0, matches or {"fire": 2}, lanes)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_an_activity_adds_up_and_keeps_an_hour() -> None:
    activity = Activity(started=0.0, clock=lambda: 5000.0)
    for at in (100.0, 4000.0, 4990.0):
        activity.add(trigger(1, at))
    told = activity.summary()
    assert (told["events"], told["matches"], told["late"], told["triggers"]) == (30, 6, 3, 3)
    assert [one.at for one in activity.history] == [4000.0, 4990.0]
    assert told["last_trigger"]["state_bytes"] == 1500  # type: ignore[index]


def test_operators_add_up_over_lanes_and_triggers() -> None:
    activity = Activity(started=0.0, clock=lambda: 30.0)
    for at, waiting in ((10.0, 5), (20.0, 4)):
        lanes = tuple(
            Standing(lane, 10, 0, 0, 0, None, (OperatorStats("automaton 0: fire", 10, 1, waiting),)) for lane in (0, 1)
        )
        activity.add(Trigger(1, at, 0.5, 20, 0, 0, {"fire": 2}, lanes))
    assert activity.summary()["operators"] == [
        {"name": "automaton 0: fire", "received": 40, "emitted": 4, "waiting": 8}
    ]
    text = metrics_text({"night": activity}).decode()
    assert 'weft_operator_received_total{operator="automaton 0: fire",run="night"} 40.0' in text
    assert 'weft_lane_taken{lane="1",run="night"} 10.0' in text
    assert 'weft_waiting{run="night"} 8.0' in text


def test_steps_add_up_and_are_shown() -> None:
    run = registry.Registration("night", {"steps": {"fire": [("t1", "fire/1"), ("h1", "fire/2")]}})
    for number in (1, 2):
        run.add(replace(trigger(number, time.time(), fire=2), steps={"fire/1": 5, "fire/2": 3}))
    assert run.activity.summary()["steps"] == {"fire/1": 10, "fire/2": 6}
    text = metrics_text({"night": run.activity}).decode()
    assert 'weft_step_total{query="fire",run="night",step="1"} 10.0' in text
    assert "  fire: t1 10, h1 6, 4 matches" in CliRunner().invoke(app, ["show", "night"]).stdout


def test_what_an_operator_did_since_is_the_difference_or_all_if_it_began_anew() -> None:
    before, now = OperatorStats("a", 10, 2, 3), OperatorStats("a", 15, 2, 1)
    assert now.since(before) == OperatorStats("a", 5, 0, 1)
    assert before.since(now) == before
    assert Standing.from_json({"lane": 0, "taken": 1, "held": 0, "behind": 0, "state_bytes": 9,
                               "operators": [["a", 5, 0, 1]]}).waiting == 1  # fmt: skip


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 100 EVENTS"),
        ("eql", "SELECT a.x FROM A a ; B b WHERE a.x < b.y"),
        ("eql", "SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x)"),
        ("tesla", "define X(x: int) from B() and each A() within 5 min from B where x = A.x"),
        ("epn", "pattern P sequence(A a, B b) context fixed 1 hours"),
    ],
)
@pytest.mark.filterwarnings("ignore::weft.ProgramWarning")
def test_operators_of_every_kind_say_what_they_received_and_emitted(language: str, text: str) -> None:
    live = LiveProgram()
    live.deploy(weft.compile(text, language))
    found = live.push([{"type": "BA"[n % 2], "ts": n, "x": 1, "y": 2} for n in range(6)])
    *sources, operator = live.operators()
    assert [(source.received, source.emitted) for source in sources] == [(6, 3)] * len(sources)  # operators of joins
    assert (operator.received, operator.emitted) == (6, len(found))
    assert operator.waiting > 0
    assert live.state_bytes > 0


def test_a_query_that_is_silent_longer_than_ever_is_marked() -> None:
    now = 100.0
    activity = Activity(started=0.0, clock=lambda: now)
    for at in (10.0, 20.0, 50.0):
        activity.add(trigger(1, at, fire=1, heat=1 if at < 20 else 0))
    assert activity.queries["fire"].silent_for(70.0) is None
    assert activity.queries["fire"].silent_for(81.0) == 31.0
    assert activity.queries["heat"].silent_for(99.0) is None  # one match says nothing of how often they come


def test_a_log_line_is_text_or_json_and_stays_one_line() -> None:
    lines: list[logging.LogRecord] = []
    logger = logging.getLogger("weft.run")
    handler = logging.Handler()
    handler.emit = lines.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        log_trigger(trigger(3, 0.0, **{"fi\nre\x1b[2J": 2}))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    text = TextLines().format(lines[0])
    assert "trigger 3: 10 events, 2 matches" in text
    assert "\n" not in text
    assert "\x1b" not in text
    told = json.loads(JsonFormatter().format(lines[0]))
    assert (told["number"], told["events"], told["lag"], told["held"], told["behind"]) == (3, 10, 20, 3, 7)


def test_metrics_and_health_are_served() -> None:
    activity = Activity()
    activity.add(trigger(1, activity.started))
    text = metrics_text({"night": activity}).decode()
    assert 'weft_events_total{run="night"} 10.0' in text
    assert 'weft_matches_total{query="fire",run="night"} 2.0' in text
    assert 'weft_state_bytes{run="night"} 1500.0' in text
    assert health(activity)["status"] == "ok"
    assert health(activity, activity.started + 1000)["status"] == "stalled"
    server = serve("0", {"night": activity})
    try:
        port = server.server_address[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert json.load(answer)["status"] == "ok"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(UsageError, match="cannot listen"):
        serve("nowhere", {})


def test_a_run_is_registered_listed_shown_and_stopped() -> None:
    code = (
        "import time, sys\nfrom weft.running.registry import Registration\n"
        "Registration('night', {'programs': ['fire.ceql'], 'sources': [], 'queries': ['fire']})\n"
        "print('there', flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert "running" in CliRunner().invoke(app, ["list"]).output
        assert "fire.ceql" in CliRunner().invoke(app, ["show", "night"]).output
        with pytest.raises(UsageError, match="is running already"):
            registry.Registration("night", {})
        with pytest.raises(UsageError, match="stop it first"):
            registry.forget("night")
        # Ended processes wait for their parent, which here is this one.
        found = registry.entry("night")
        assert found.about["pid"] == process.pid
        stopped = CliRunner().invoke(app, ["stop", "night"])
        assert stopped.exit_code == 0, stopped.output
    finally:
        process.kill()
        process.wait()
    assert registry.entry("night").state == "died"
    registry.forget("night")
    assert registry.entries() == []


def test_what_a_run_did_is_kept() -> None:
    mine = registry.Registration("day", {"programs": ["a.ceql"], "sources": ["s=in"], "queries": ["fire"]})
    mine.add(trigger(0, mine.activity.started))
    mine.add(trigger(1, mine.activity.started + 1))
    entry = registry.entry("day")
    assert entry.state == "running"
    assert [one["number"] for one in entry.history()] == [0, 1]
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).output)
    assert listed[0]["status"]["events"] == 20
    mine.end()
    assert registry.entry("day").status["problem"] is None
    assert (registry.runs_folder() / "day").stat().st_mode & 0o077 == 0


def test_a_process_of_the_same_number_is_not_taken_for_the_run() -> None:
    mine = registry.Registration("old", {})
    about = json.loads((mine.folder / "run.json").read_text())
    (mine.folder / "run.json").write_text(json.dumps({**about, "birth": "1"}))
    assert registry.entry("old").state == "died"
    assert registry.stop("old")  # and nothing is killed: this test goes on


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 80])
def test_names_that_are_no_folder_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        registry.entry(name)


def test_a_run_is_restarted_by_the_command_that_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = registry.Registration("day", {"command": ["run", "a.ceql", "--name", "day", "--detach"], "folder": "/"})
    about = json.loads((mine.folder / "run.json").read_text())
    (mine.folder / "run.json").write_text(json.dumps({**about, "birth": "1"}))
    asked: list[object] = []
    monkeypatch.setattr(registry, "detach", lambda *told, **more: asked.append((told, more)))
    registry.restart("day")
    assert asked == [(("day", ["run", "a.ceql", "--name", "day"]), {"folder": "/"})]
    registry.Registration("other", {})
    with pytest.raises(UsageError, match="not known how"):
        registry.restart("other")


def test_an_unknown_run_is_told_with_what_is_meant() -> None:
    registry.Registration("night", {})
    told = CliRunner().invoke(app, ["show", "nigth"])
    assert told.exit_code == 2
    assert "night" in told.output


def test_detach_needs_a_name_and_says_why_it_did_not_start(tmp_path: Path) -> None:
    asked = ["run", "x.ceql", "--source", "s=in", "--sink", "out", "--checkpoint", "c", "--detach"]
    assert "--name" in CliRunner().invoke(app, asked).output
    with pytest.raises(UsageError, match="did not start"):
        registry.detach(
            "night", ["run", str(tmp_path / "x.ceql"), "--source", "s=in", "--sink", "o", "--checkpoint", "c"]
        )


# ---------------------------------------------------------------- standing still


def stands(at: float, reached: dict[str, int], watermark: int | None, *, events: int = 5, held: int = 3) -> Trigger:
    lane = Standing(0, 10, held, 0, 0, watermark=watermark, reached=reached)
    return Trigger(1, at, 0.1, events, 0, 0, {}, (lane,))


def test_a_silent_source_that_holds_others_back_is_told_once() -> None:
    watch = Standstill(["quick", "slow"])
    assert watch.look(stands(0.0, {"0": 10}, None)) == []
    assert watch.look(stands(50.0, {"0": 20}, None)) == []
    (told,) = watch.look(stands(70.0, {"0": 30}, None))
    assert "the source slow has sent nothing new for 70 s, and 3 events of others wait" in told
    assert "--idle-after" in told
    assert watch.look(stands(90.0, {"0": 40}, None)) == []
    assert watch.look(stands(95.0, {"0": 40, "1": 35}, 35)) == []
    assert watch.look(stands(140.0, {"0": 50, "1": 35}, 35)) == []
    assert len(watch.look(stands(160.0, {"0": 60, "1": 35}, 35))) == 1


def test_a_silent_source_is_not_told_when_nothing_waits_for_it() -> None:
    watch = Standstill(["one", "two"])
    for at in range(0, 300, 30):
        assert watch.look(stands(float(at), {"0": 10, "1": 10}, 10, events=0)) == []
        assert watch.look(stands(float(at), {"0": 20, "1": 10}, 10, held=0)) == []


def test_time_that_stands_still_is_told_once() -> None:
    watch = Standstill(["one"])
    found = [line for at in range(0, 200, 20) for line in watch.look(stands(float(at), {"0": 7}, 7))]
    assert len(found) == 1
    assert "time stands still: events have come for 60 s, none of them later than 7" in found[0]
    assert watch.look(stands(210.0, {"0": 8}, 8)) == []


def test_what_cannot_be_read_is_logged_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    reasons = ["no column 'type'", "late: it ended at 1", "no column 'type'", "no time"]
    unreadable = Unreadable()
    for _ in range(2):
        unreadable.look(pa.table({"id": [f"a.csv:{row}" for row in range(4)], "reason": reasons}))
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(" (")[0] for line in told] == [
        "a.csv:0 could not be read: no column 'type'",
        "a.csv:3 could not be read: no time",
    ]
