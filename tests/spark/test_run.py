"""Continuous runs over growing folders: exactly once, also when the process is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.pipeline import local

from weft import api
from weft.connectors.files import ENDINGS, READERS
from weft.errors import UsageError
from weft.optimizer.pipeline import optimize
from weft.runtime.data.matches import Match
from weft.runtime.limits.budgets import Budget
from weft.runtime.limits.guarding import Limits
from weft.runtime.spark.runs.options import RunOptions
from weft.runtime.spark.runs.run import ContinuousRun
from weft.runtime.store.pages import FOREIGN
from weft.runtime.watching.triggers import Trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERY = "SELECT a, b[x] FROM S, T WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 50 EVENTS"
EVENTS: list[dict[str, object]] = [
    {"type": "ABC"[i * 5 % 7 % 3], "ts": 3 * i + i * 7 % 10, "k": "uvw"[i % 3], "x": i * 3 % 8} for i in range(120)
]


FAR = 10**15  # long after any clock


def options(folder: Path, **more: object) -> RunOptions:
    usual = {"delay": 10, "lanes": 2, "files_per_trigger": 1, "positions": True}
    return RunOptions(str(folder / "out"), str(folder / "checkpoint"), **{**usual, **more})  # type: ignore


def run_of(folder: Path, sources: tuple[str, ...] = ("in",), query: str = QUERY, **more: object) -> ContinuousRun:
    named = [(name, str(folder / name)) for name in sources]
    return ContinuousRun(optimize(api.compile(query)), named, options(folder, **more), ENDINGS, READERS)


def write(folder: Path, number: int, events: list[dict[str, object]]) -> None:
    """A file that appears when it is whole, younger than those before it."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{number}.jsonl"
    hidden.write_text("".join(json.dumps(event) + "\n" for event in events))
    os.utime(hidden, (1000 + number, 1000 + number))
    hidden.rename(folder / f"{number}.jsonl")


def written(folder: Path) -> list[dict[str, object]]:
    lines = [line for path in sorted((folder / "out").glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def as_json(matches: list[Match]) -> list[dict[str, object]]:
    return sorted((match.to_json() for match in matches), key=repr)


def test_a_killed_run_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "in", number, EVENTS[number * 30 : number * 30 + 30])
    first = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.test_run", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 240
        while not written(tmp_path) and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    before = len(written(tmp_path))
    wanted = as_json(local(api.compile(QUERY), EVENTS))
    assert 0 < before < len(wanted)
    run = run_of(tmp_path, until="complete")
    run.start(spark)
    run.wait()
    assert sorted(written(tmp_path), key=repr) == wanted


def test_a_run_that_died_when_it_noted_its_first_trigger_begins(spark: SparkSession, tmp_path: Path) -> None:
    """Spark wants its logs to be empty then, and a half-written entry is in the way."""
    write(tmp_path / "in", 0, EVENTS[:30])
    offsets = tmp_path / "checkpoint" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for left in (".0.90ddfaab-3e78-4312-8dde-b53bcb523013.tmp", "..0.90ddfaab-3e78-4312-8dde-b53bcb523013.tmp.crc"):
        (offsets / left).touch()
    run = run_of(tmp_path, until="complete")
    run.start(spark)
    run.wait()
    assert run.counters["events"] == 30


def test_a_run_stops_and_goes_on_and_ends(spark: SparkSession, tmp_path: Path) -> None:
    """Files come in while it runs; it is stopped; the rest is read later; in the end the stream is complete."""
    write(tmp_path / "in", 0, [*EVENTS[:40], {"type": "A", "k": "u"}])
    first = run_of(tmp_path, every="0 seconds")
    first.start(spark)
    deadline = time.monotonic() + 120
    while not written(tmp_path) and not first.wait(0.05) and time.monotonic() < deadline:
        pass
    first.stop()
    assert first.counters == {"events": 40, "matches": len(written(tmp_path)), "late": 0, "unreadable": 1}
    late, ahead = {"type": "B", "ts": 0, "k": "u", "x": 9, "unread": 1}, {"type": "B", "ts": FAR, "k": "u"}
    write(tmp_path / "in", 1, [late, ahead, *EVENTS[40:]])
    second = run_of(tmp_path, until="complete")
    second.start(spark)
    second.wait()
    assert sorted(written(tmp_path), key=repr) == as_json(local(api.compile(QUERY), EVENTS))
    assert second.counters["late"] == 1
    files = sorted((tmp_path / "out" / "rejects").glob("*.jsonl"))
    rejects = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert [(reject["event"], reject["reason"].partition(":")[0]) for reject in rejects] == [
        ({"type": "A", "k": "u"}, "no time"),
        (ahead, "ahead"),
        (late, "late"),
    ]
    places = [f"{tmp_path}/in/0.jsonl:41", f"{tmp_path}/in/1.jsonl:2", f"{tmp_path}/in/1.jsonl:1"]
    assert [reject["place"] for reject in rejects] == places


RULES = """
define Pair(k: string, x: int) from B(k = $k) and last A(k = $k, x < B.x) within 60 from B
    where k = B.k, x = A.x consuming A
define Pairs(n: int) from Pair(k = $k) and each Pair(k = $k) as Before within 90 from Pair
    and not C(k = $k, x > 5) between Before and Pair where n = Count(A(k = $k) within 50 from Pair)
define Any(x: int) from C() and 2-last B() within 19 from C where x = C.x
"""


def test_each_trigger_is_told_with_its_numbers(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / "in", number, EVENTS[number * 60 : number * 60 + 60])
    told: list[Trigger] = []
    run = run_of(tmp_path, until="complete")
    run.watch(told.append)
    run.start(spark)
    run.wait()
    assert sum(trigger.events for trigger in told) == len(EVENTS)
    assert sum(trigger.matches["q"] for trigger in told) == run.counters["matches"] > 0
    assert len(told[0].lanes) == 2
    assert told[0].state_bytes > 0
    assert told[0].held > 0
    assert told[0].lag == 10
    assert told[-1].held == 0


def test_ids_of_a_run_can_be_made_of_a_key(spark: SparkSession, tmp_path: Path) -> None:
    named: list[dict[str, object]] = [{**event, "id": f"e{number}"} for number, event in enumerate(EVENTS)]
    relevant = [event for event in named if event["type"] != "C"]
    write(tmp_path / "in", 0, named[:60])
    write(tmp_path / "in", 1, named[60:])
    query = QUERY.replace("50 EVENTS", "60 MILLISECONDS")
    run = run_of(tmp_path, query=query, until="complete", key=("id",))
    run.start(spark)
    run.wait()
    found = {match["id"] for match in written(tmp_path)}
    assert found == {match.id for match in api.detect(relevant, query, key="id")}
    assert len(found) > 10
    with pytest.raises(UsageError, match="belongs to a run with other columns"):
        run_of(tmp_path, query=query, until="complete").start(spark)


def test_rules_go_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Two by key and fed by each other, one in a lane of its own; what they keep is read from the checkpoint again."""
    half = len(EVENTS) // 2
    write(tmp_path / "in", 0, EVENTS[:half])
    first = run_of(tmp_path, query=RULES, until="read")
    first.start(spark)
    first.wait()
    before = len(written(tmp_path))
    write(tmp_path / "in", 1, EVENTS[half:])
    second = run_of(tmp_path, query=RULES, until="complete")
    second.start(spark)
    second.wait()
    wanted = as_json(local(api.compile(RULES), EVENTS))
    assert {match["query"] for match in wanted} == {"Pair", "Pairs", "Any"}
    assert 0 < before < len(wanted)
    assert sorted(written(tmp_path), key=repr) == wanted


def test_several_sources_are_streams(spark: SparkSession, tmp_path: Path) -> None:
    """Events are told apart by source; formats may differ; matches are written as Parquet."""
    write(tmp_path / "S", 0, [{"type": "A", "ts": 1, "x": 0}, {"type": "B", "ts": 2, "x": 1}])
    (tmp_path / "T").mkdir()
    pq.write_table(pa.table({"type": ["B", "B"], "ts": [2, 3], "x": [2, 3]}), tmp_path / "T" / "b.parquet")
    (tmp_path / "T" / "c.parquet").write_text("something else")
    program = optimize(api.compile("SELECT * FROM S, T WHERE S>A AS a ; T>B AS b WITHIN 9 EVENTS"))
    sources = [(name, str(tmp_path / name)) for name in ("S", "T")]
    run = ContinuousRun(program, sources, options(tmp_path, until="complete", format="parquet"), ENDINGS, READERS)
    run.start(spark)
    run.wait()
    matches = [row for path in sorted((tmp_path / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    # Of the two events at 2 that of S comes first: it is the source named first.
    assert [match["positions"] for match in matches] == [[0, 2], [0, 3]]
    # They have the columns of other results: the events themselves.
    assert [event["x"] for match in matches for event in match["variables"]["b"]] == [2, 3]
    assert (run.counters["events"], run.counters["unreadable"]) == (4, 1)
    (reject,) = (tmp_path / "out" / "rejects").glob("*")
    assert "c.parquet is not a Parquet file" in reject.read_text()


def test_mistakes_are_explained(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS[:1])
    with pytest.raises(UsageError, match="no such folder"):
        run_of(tmp_path, ("nowhere",))
    with pytest.raises(UsageError, match="ftp is none of a folder"):
        ContinuousRun(api.compile(QUERY), [("k", "ftp://host/topic")], options(tmp_path), ENDINGS, READERS)
    with pytest.raises(UsageError, match="runs that go on until they are stopped"):
        run_of(tmp_path, until="read", idle_after=1)
    run_of(tmp_path)._job(spark)
    with pytest.raises(UsageError, match="belongs to a run with other columns or sources"):
        run_of(tmp_path, time="at").start(spark)


def test_a_checkpoint_of_another_version_is_refused_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS[:30])
    first = run_of(tmp_path, until="read")
    first.start(spark)
    first.wait()
    note = tmp_path / "checkpoint" / "weft" / "run.json"
    ours = note.read_text()
    for foreign in ("{}", "[]", json.dumps({**json.loads(ours), "format": 0})):
        note.write_text(foreign)
        with pytest.raises(UsageError, match="was made by another version of weft"):
            run_of(tmp_path, until="read").start(spark)
    # As if the note fitted, and only the state did not: that is found out in a task.
    other = QUERY.replace("<", ">")
    note.unlink()
    with pytest.raises(UsageError, match="matches of another run"):
        run_of(tmp_path, query=other)._job(spark)
    note.unlink()
    for path in (tmp_path / "out" / ".weft-run", *(tmp_path / "out").glob("matches-*")):
        path.unlink()
    run_of(tmp_path, query=other)._job(spark)
    write(tmp_path / "in", 1, EVENTS[30:60])
    second = run_of(tmp_path, query=other, until="read")
    second.start(spark)
    with pytest.raises(UsageError) as failure:
        second.wait()
    assert str(failure.value) == FOREIGN


# ---------------------------------------------------------------- another program

OTHER = "SELECT * FROM S WHERE B AS b ; C AS c FILTER b[x] > 3 WITHIN 30 EVENTS"


def programs(**texts: str) -> api.Program:
    return api.merge_programs([api.compile_with_findings(text, stem=name)[0] for name, text in texts.items()])


def changing(folder: Path, program: api.Program, **more: object) -> ContinuousRun:
    given = [("in", str(folder / "in"))]
    return ContinuousRun(optimize(program), given, options(folder, **more), ENDINGS, READERS, program)


def test_a_changed_program_keeps_the_state_of_what_did_not_change(spark: SparkSession, tmp_path: Path) -> None:
    """The first program reads two files; then one query is renamed, one changed, one is new; then one ends."""
    versions = [
        programs(stays=QUERY, moves=OTHER, ends=OTHER.replace("> 3", "> 4")),
        programs(stays=QUERY, moved=OTHER, late=OTHER.replace("> 3", "> 2")),
        programs(late=OTHER.replace("> 3", "> 2"), stays=QUERY),
    ]
    for number, program in enumerate(versions):
        write(tmp_path / "in", number, EVENTS[number * 40 : number * 40 + 40])
        run = changing(tmp_path, program, until="complete" if number == 2 else "read")
        if number == 1:
            assert run.kept().splitlines() == [
                "stays: keeps its state",
                "moved: keeps its state (it was called moves)",
                "late: begins anew, it is new",
                "ends: ends",
            ]
        run.start(spark)
        assert run.wait(240)
    found = {(row["query"], row["id"]) for row in written(tmp_path)}
    assert len(found) == len(written(tmp_path))
    assert {row for row in found if row[0] == "stays"} == ids("stays", QUERY, EVENTS)
    whole = {id_ for _, id_ in ids("moves", OTHER, EVENTS)} | {id_ for _, id_ in ids("moved", OTHER, EVENTS)}
    assert {id_ for name, id_ in found if name in ("moves", "moved")} <= whole
    positions = [row["positions"] for row in written(tmp_path) if row["query"] in ("moves", "moved")]
    expected = [match.positions for match in local(programs(moves=OTHER), EVENTS[:80])]
    told = {tuple(own) for own in positions}  # type: ignore[arg-type]
    assert len(positions) == len(told)
    assert told <= set(expected)
    assert {own for own in expected if max(own) < 70} <= told  # the last ones wait when it ends
    late = {tuple(row["positions"]) for row in written(tmp_path) if row["query"] == "late"}  # type: ignore[arg-type]
    of_all = {match.positions for match in local(programs(late=OTHER.replace("> 3", "> 2")), EVENTS)}
    assert late <= of_all
    assert {own for own in of_all if min(own) > 50} <= late
    assert not {own for own in late if min(own) < 30}


def test_a_run_is_started_again_with_other_lanes(spark: SparkSession, tmp_path: Path) -> None:
    """Queries with windows go over, one by events and one by time; a session has no bound, and stays."""
    texts = {
        "pairs": QUERY.replace("50 EVENTS", "20 EVENTS"),
        "timed": OTHER.replace("30 EVENTS", "40 MILLISECONDS"),
        "visits": "SELECT * FROM S WHERE A AS a ; C AS c PARTITION BY [k] SESSION 20 MILLISECONDS",
    }
    program = programs(**texts)
    ways = [("auto", 2), ("auto", 3), ("one", 3), ("auto", 1)]
    for number, (strategy, lanes) in enumerate(ways):
        write(tmp_path / "in", number, EVENTS[number * 30 : number * 30 + 15])
        write(tmp_path / "in", number + 100, EVENTS[number * 30 + 15 : number * 30 + 30])
        run = changing(tmp_path, program, until="complete" if number == 3 else "read", partitions=3)
        run.options = replace(run.options, strategy=strategy, lanes=lanes)
        if number == 1:
            told = run.kept().splitlines()
            assert [line for line in told if "other lanes" in line]
            assert [line for line in told if "stays in the lanes" in line and line.startswith("visits")]
        run.start(spark)
        assert run.wait(240)
    found = [(row["query"], row["id"]) for row in written(tmp_path)]
    assert len(found) == len(set(found))
    assert set(found) == {(match.query, match.id) for match in local(program, EVENTS)}


def ids(name: str, text: str, events: list[dict[str, object]]) -> set[tuple[object, object]]:
    return {(match.query, match.id) for match in local(programs(**{name: text}), events)}


def test_another_program_takes_over_at_a_trigger_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    first = programs(stays=QUERY)
    both = programs(stays=QUERY, late=OTHER)
    write(tmp_path / "in", 0, EVENTS[:60])
    run = changing(tmp_path, first)
    triggers: list[Trigger] = []
    run.watch(triggers.append)
    run.start(spark)
    try:
        wait_for(lambda: sum(trigger.events for trigger in triggers) == 60, run)
        run.options = replace(run.options, limits=Limits({"nobody": Budget(matches_per_batch=5)}))
        with pytest.raises(UsageError, match="no such query"):
            run.become(optimize(both), both)
        run.options = replace(run.options, limits=Limits())
        foreign = replace(both, time_unit="s")
        with pytest.raises(UsageError, match="other columns"):  # which shows when the query has been stopped
            run.become(optimize(foreign), foreign)
        assert run.is_running(first)
        assert not run.is_running(both)
        kept = run.become(optimize(both), both)
        assert run.is_running(both)
        assert kept.splitlines() == ["stays: keeps its state", "late: begins anew, it is new"]
        write(tmp_path / "in", 1, EVENTS[60:])
        wait_for(lambda: sum(trigger.events for trigger in triggers) == 120, run)
    finally:
        run.stop()
    assert run.counters["events"] == 120
    found = {tuple(row["positions"]) for row in written(tmp_path) if row["query"] == "stays"}  # type: ignore[arg-type]
    expected = {match.positions for match in local(first, EVENTS)}
    assert found <= expected
    assert {own for own in expected if max(own) < 110} <= found
    late = {tuple(row["positions"]) for row in written(tmp_path) if row["query"] == "late"}  # type: ignore[arg-type]
    assert late
    assert late <= {match.positions for match in local(programs(late=OTHER), EVENTS)}


def wait_for(done: Callable[[], bool], run: ContinuousRun) -> None:
    deadline = time.monotonic() + 240
    while not done() and time.monotonic() < deadline:
        run.wait(0.1)
    assert done()


if __name__ == "__main__":  # the process that is killed
    from tests.conftest import SETTINGS

    from weft.runtime.spark.session import spark_session

    killed = run_of(Path(sys.argv[1]), until="complete")
    killed.start(spark_session("local[2]", SETTINGS))
    killed.wait()
