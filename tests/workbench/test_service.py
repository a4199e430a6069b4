"""What the workbench does, asked without a browser: programs, trying, why, tests, runs."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.errors import InputError, ProgramError, UsageError
from weft.running.registry import Registration
from weft.runtime.watching.triggers import OperatorStats, Standing, Trigger
from weft.workbench import trying
from weft.workbench.in_process import InProcess
from weft.workbench.run_info import last_hour
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 100 EVENTS"
ROWS = "\n".join(json.dumps({"type": "AB"[n % 2], "ts": n, "x": n // 4}) for n in range(8))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    shutil.copytree(EXAMPLES / "fire", tmp_path / "project" / "fire")
    found = Workbench(tmp_path / "project")
    yield found
    found.close()


def test_programs_are_listed_read_and_stored(bench: Workbench) -> None:
    assert [file.path for file in bench.programs()] == ["fire/fire.ceql", "fire/heating.ceql"]
    assert bench.program("fire/fire.ceql").language == "ceql"
    assert bench.save("new/pair.ceql", PAIR).text == PAIR
    assert "new/pair.ceql" in [file.path for file in bench.programs()]


@pytest.mark.parametrize(
    "path", ["../outside.ceql", "/etc/passwd", "fire/../../x.ceql", "fire/sensors.jsonl", "", "a\0.ceql", "."]
)
def test_paths_outside_the_project_and_other_files_are_refused(bench: Workbench, path: str) -> None:
    for ask in (bench.program, lambda path: bench.save(path, "x")):
        with pytest.raises((UsageError, InputError)):
            ask(path)


def test_a_link_that_leads_out_of_the_project_is_refused(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "secret.ceql").write_text("SELECT * FROM S WHERE A")
    (bench.project.folder / "link.ceql").symlink_to(tmp_path / "secret.ceql")
    (bench.project.folder / "fire" / "link.jsonl").symlink_to("/etc/hostname")
    assert "link.ceql" not in [file.path for file in bench.programs()]
    assert bench.event_files() == ["fire/sensors.jsonl"]
    assert bench.complete(ProgramSource("SEL", "ceql", "fire/fire.ceql"), 3).words
    with pytest.raises(UsageError, match="not in the project"):
        bench.program("link.ceql")
    with pytest.raises(UsageError, match="not in the project"):
        bench.try_program(ProgramSource(PAIR, "ceql"), Sample(file="../secret.jsonl"))


def test_a_wrong_text_has_marks_at_their_places(bench: Workbench) -> None:
    text = "SELECT * FROM S WHERE A AS a FILTER b[x] > 1"
    checked = bench.check(ProgramSource(text, "ceql"))
    assert not checked.is_right
    assert any(text[finding.start : finding.end].startswith("b") for finding in checked.findings)
    assert bench.plan(ProgramSource(text, "ceql")).svg == ""


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", PAIR),
        ("eql", "SELECT a.x FROM A a ; B b WHERE a.x = b.x"),
        ("step", 'topology "t" external A(x: real) < "a" [1.0] external B(x: real) < "b" [1.0] Q(A.x): A ; B'),
        ("tesla", "define X(x: int) from B() and last A() within 5 min from B where x = A.x"),
        ("epn", "pattern P\n  sequence(A a, B b)\n"),
    ],
)
def test_all_languages_are_checked_planned_tried_and_explained(bench: Workbench, language: str, text: str) -> None:
    source = ProgramSource(text, language)
    checked = bench.check(source)
    assert checked.is_right, checked.findings
    assert "<svg" in bench.plan(source).svg
    assert {colour.kind for colour in checked.colours} >= {"keyword"}
    tried = bench.try_program(source, Sample(rows=ROWS))
    assert tried.total > 0
    assert "<svg" in tried.timeline
    assert bench.why(source, Sample(rows=ROWS), tried.matches[0]["positions"])[0].matched


def test_samples_are_json_lines_csv_or_a_file(bench: Workbench) -> None:
    fire = bench.program("fire/fire.ceql")
    assert bench.try_program(fire, Sample(file="fire/sensors.jsonl")).total == 2
    rows = "type,ts,x\nA,1,5\nB,2,5\nB,3,6\n"
    assert bench.try_program(ProgramSource(PAIR, "ceql"), Sample(rows=rows)).total == 1
    with pytest.raises(InputError, match="line 1"):
        bench.try_program(ProgramSource(PAIR, "ceql"), Sample(rows="{nonsense"))
    with pytest.raises(UsageError, match="no events"):
        bench.try_program(ProgramSource(PAIR, "ceql"), Sample())
    with pytest.raises(ProgramError):
        bench.try_program(ProgramSource("SELECT", "ceql"), Sample(rows=ROWS))


def test_a_kept_test_has_the_columns_of_the_sample(bench: Workbench) -> None:
    bench.save("pair.ceql", PAIR)
    source = bench.program("pair.ceql")
    rows = "kind,at,x\nA,1,5\nB,2,5\nB,3,6\n"
    assert bench.keep_as_test(source, Sample(rows=rows, time="at", type="kind"), "a pair") == "pair.test.toml"
    (case,) = bench.tests(["pair.test.toml"]).cases
    assert (case.name, case.passed) == ("a pair", True)
    with pytest.raises(UsageError, match="have the time in 'at', and this sample in 'ts'"):
        bench.keep_as_test(source, Sample(rows=ROWS), "other columns")


def test_what_is_found_is_kept_as_a_test_that_passes_until_the_program_changes(bench: Workbench) -> None:
    bench.save("pair.ceql", PAIR)
    source = bench.program("pair.ceql")
    rows = ROWS + '\n{"type": "A", "ts": 9, "x": 7, "note": "it\'s <b>\\"quoted\\"</b>"}'
    assert bench.keep_as_test(source, Sample(rows=rows), 'the "first"') == "pair.test.toml"
    assert bench.keep_as_test(source, Sample(rows='{"type": "A", "ts": 1}'), "nothing") == "pair.test.toml"
    bench.keep_as_test(source, Sample(rows='{"type": "A", "ts": 1}'), "a 🧵\n\x7f")
    report = bench.tests(["pair.test.toml"])
    names = ['the "first"', "nothing", "a 🧵\n?"]
    assert [(case.name, case.passed) for case in report.cases] == [(name, True) for name in names]
    assert report.passed
    bench.save("pair.ceql", PAIR.replace("=", "<>"))
    changed = bench.tests(["pair.test.toml"])
    assert not changed.passed
    assert changed.cases[0].missing


def test_an_attribute_called_position_does_not_hide_positions(bench: Workbench) -> None:
    rows = '{"type": "A", "ts": 1, "position": "left"}\n{"type": "B", "ts": 2}'
    tried = bench.try_program(ProgramSource(PAIR, "ceql"), Sample(rows=rows))
    assert [(event["position"], event.get("position_")) for event in tried.events] == [(0, "left"), (1, None)]


def wait_for(true: object) -> None:
    deadline = time.monotonic() + 30
    assert callable(true)
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_program_runs_here_changes_and_stops(bench: Workbench) -> None:
    bench.submit(ProgramSource(PAIR, "ceql"), Sample(rows=ROWS), "pairs", rate=1000)
    wait_for(lambda: bench.run("pairs").info.summary.events == 8)
    assert bench.run("pairs").info.summary.matches == 6
    wait_for(lambda: bench.run("pairs").info.state == "finished")
    assert bench.run("pairs").funnels == {"q": [("a", 4), ("match", 6)]}
    summary = bench.run("pairs").info.summary
    assert [(one.received, one.emitted) for one in summary.operators] == [(8, 6)]
    assert (summary.waiting > 0, summary.behind, summary.state_bytes > 0, summary.lag) == (True, 8, True, 0)
    assert [lane.load for lane in summary.lanes] == [1.0]
    assert bench.push("pairs", '{"type": "B", "ts": 20, "x": 1}') == 2
    assert "weft_matches_total" in bench.metrics()
    other = ProgramSource("SELECT * FROM S WHERE C AS c WITHIN 9 EVENTS", "ceql", "c.ceql")
    bench.change("pairs", other)
    assert bench.push("pairs", '{"type": "C", "ts": 30}\n{"type": "B", "ts": 31, "x": 1}') == 1
    assert bench.push("pairs", '{"type": "C", "ts": 3}') == 0
    assert bench.run("pairs").info.summary.late == 1
    with pytest.raises(UsageError, match="is running"):
        bench.submit(ProgramSource(PAIR, "ceql"), Sample(rows=ROWS), "pairs")
    assert bench.run("pairs").funnels == {"c": [("match", 1)]}
    assert bench.stop("pairs").state == "ended"
    with pytest.raises(UsageError, match="has ended"):
        bench.push("pairs", ROWS)
    assert bench.run("pairs").log
    assert bench.restart("pairs").state in ("running", "finished")
    wait_for(lambda: bench.run("pairs").info.summary.events == 8)


def test_a_program_without_events_waits_for_some(bench: Workbench) -> None:
    assert bench.submit(ProgramSource(PAIR, "ceql"), Sample(), "waiting").state == "running"
    assert bench.push("waiting", ROWS) == 6
    assert bench.stop("waiting").state == "ended"


def test_programs_are_renamed_and_deleted(bench: Workbench) -> None:
    bench.save("old.ceql", PAIR)
    bench.save("taken.ceql", PAIR)
    with pytest.raises(UsageError, match="exists already"):
        bench.rename("old.ceql", "taken.ceql")
    with pytest.raises(UsageError, match="not in the project"):
        bench.rename("old.ceql", "../new.ceql")
    assert bench.rename("old.ceql", "more/new.ceql").text == PAIR
    assert bench.delete("more/new.ceql") == "more/new.ceql"
    assert not {"old.ceql", "more/new.ceql"} & {file.path for file in bench.programs()}
    with pytest.raises(InputError, match="cannot delete"):
        bench.delete("old.ceql")


def test_the_lag_of_a_replay_is_the_time_that_waiting_events_span() -> None:
    events = [{"type": "A", "ts": 10 * number} for number in range(20)]
    program = trying.program_of(PAIR, "ceql", "q")
    run = InProcess("slow", program, events, 1.0, ("ts", "type"))
    run._began = time.monotonic() - 10.5  # so that eleven events should have come
    run._replayed = 4
    run.push(events[:4])
    last = run.activity.history[-1]
    assert (last.held, last.lag) == (7, 70)
    run._replayed = 20
    run.push(events[4:])
    assert (run.activity.history[-1].held, run.activity.history[-1].lag) == (0, 0)
    texts = [{**event, "ts": f"2026-01-01T00:00:{number:02}"} for number, event in enumerate(events)]
    dated = InProcess("dated", program, texts, 1.0, ("ts", "type"))
    dated._began = time.monotonic() - 10.5
    dated.push(texts[:1])
    assert dated.activity.history[-1].lag is None  # it is not known in ticks


def test_runs_of_others_are_listed_and_unknown_ones_are_told(bench: Workbench) -> None:
    Registration("night", {"programs": ["fire.ceql"]})
    assert [(run.name, run.where, run.state) for run in bench.runs()] == [("night", "spark", "running")]
    assert bench.cluster().unknown == ["night"]
    with pytest.raises(UsageError, match="no run called"):
        bench.run("day")
    with pytest.raises(UsageError, match="needs a source"):
        bench.submit_to_spark(bench.program("fire/fire.ceql"), {}, "day")
    with pytest.raises(UsageError, match="not in the project"):
        bench.submit_to_spark(bench.program("fire/fire.ceql"), {"warehouse": "../.."}, "day")


def test_a_run_on_spark_is_told_like_one_here(bench: Workbench, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "fire" / "sensors.jsonl", tmp_path)
    about = {"programs": ["fire.ceql"], "sources": [f"warehouse={tmp_path}"], "folder": str(EXAMPLES / "fire")}
    night = Registration("night", about)
    executor = {"id": "driver", "host": "here:1", "cores": 2, "memory": 400, "memory_used": 3, "active_tasks": 1}
    night.tell(executors=[executor])
    operator = OperatorStats("automaton 0: fire", 30, 1, 5)
    lanes = (Standing(0, 30, 4, 7, 100, 20, (operator,)), Standing(1, 10, 0, 0, 50, None, (operator,)))
    night.add(Trigger(0, time.time(), 0.5, 40, 2, 1, {"fire": 1}, lanes))
    found = bench.run("night")
    summary = found.info.summary
    assert (summary.events, summary.matches, summary.late, summary.unreadable, summary.lag) == (40, 1, 2, 1, 20)
    assert (summary.waiting, summary.behind, summary.state_bytes, summary.held) == (10, 7, 150, 4)
    assert [(lane.lane, lane.load, lane.waiting) for lane in summary.lanes] == [(0, 0.75, 5), (1, 0.25, 5)]
    assert [(one.received, one.emitted) for one in summary.operators] == [(60, 2)]
    assert [(point.waiting, point.lag, point.late) for point in found.history] == [(10, 20, 2)]
    with pytest.raises(UsageError, match="start it with `weft run … --watch`"):
        bench.change("night", bench.program("fire/fire.ceql"))
    with pytest.raises(UsageError, match="folders of its sources"):
        bench.push("night", ROWS)
    assert bench.funnels("night") == {"fire": [("t1", 2), ("h1", 2), ("match", 2)]}
    cluster = bench.cluster()
    assert 0 < cluster.memory_free <= cluster.memory
    (told,) = cluster.executors
    assert (told.run, told.id, told.cores, told.memory_used, told.failed_tasks) == ("night", "driver", 2, 3, 0)


def test_the_last_hour_has_few_points_whatever_the_triggers_are() -> None:
    shared = {"late": 0, "seconds": 0.5, "lag": None, "waiting": 1, "behind": 2, "state_bytes": 3}
    triggers = [{"at": 1000.0 + n, "events": 10, "matches": {"q": 2}, **shared} for n in range(5000)]
    points = last_hour(triggers)
    assert 100 < len(points) <= 122
    assert points[0].at > 5999.0 - 3600
    assert {round(point.rate) for point in points[1:]} == {10}
    assert {round(point.matches) for point in points[1:]} == {2}
    assert last_hour([]) == []
    quick = [{"at": n / 5, "events": 1, "matches": {}, **shared, "seconds": 0.001} for n in range(20)]
    assert {round(point.rate) for point in last_hour(quick)} == {5}  # also in the first point


def test_rows_are_drawn_from_files(bench: Workbench, tmp_path: Path) -> None:
    rows = [{"type": "AB"[n % 2], "ts": n, "x": n} for n in range(5000)]
    folder = bench.project.folder
    pq.write_table(pa.Table.from_pylist(rows), folder / "many.parquet", row_group_size=700)
    (folder / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "many.csv").write_text("type,ts,x\n" + "".join(f"{r['type']},{r['ts']},{r['x']}\n" for r in rows))
    for file in ("many.parquet", "many.jsonl", "many.csv"):
        assert bench.event_count(file) == 5000
        tried = bench.try_program(ProgramSource(PAIR.replace("=", "<"), "ceql"), Sample(file=file, skip=2101, take=4))
        assert [event["x"] for event in tried.events] == [2101, 2102, 2103, 2104]
        assert tried.total == 1
    (folder / "bad.parquet").write_text("no")
    with pytest.raises(InputError, match="cannot read"):
        bench.try_program(ProgramSource(PAIR, "ceql"), Sample(file="bad.parquet", take=3))


def test_a_thousand_programs_and_ten_thousand_matches_are_listed(bench: Workbench) -> None:
    for number in range(1000):
        (bench.project.folder / f"q{number:04}.ceql").write_text(PAIR)
    assert len(bench.programs()) == 1002
    rows = "\n".join(json.dumps({"type": "AB"[n >= 110], "ts": n, "x": 1}) for n in range(220))
    found = bench.try_program(ProgramSource(PAIR.replace("100", "300"), "ceql"), Sample(rows=rows))
    assert (found.total, len(found.matches)) == (12_100, 10_000)
