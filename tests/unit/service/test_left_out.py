"""What limits leave out is told by query: in log lines, metrics, `weft show`, and of what waited for the end."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.pipeline import Stream
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import BudgetError
from weft.plan.planner import plan
from weft.running import registry
from weft.running.logs import JsonFormatter, TextLines
from weft.running.metrics import metrics_text
from weft.runtime.limits.guarding import Limits
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.job import job_of, limited
from weft.runtime.watching.left_out import LeftOut, by_query, counter_name, of_these
from weft.runtime.watching.triggers import Trigger
from weft.workbench.pages.readings import query_text
from weft.workbench.run_info import summary_of

COUNTERS = {
    "shed": 5,
    "shed fire.t1": 3,
    "shed fire.v2.t1": 4,
    "shed fire/1.t1": 3,
    "sampled": 1200,
    "sampled out of fire": 1200,
    "dropped": 7,
    "dropped of fire.v2": 7,
    "dropped of gone": 1,
    "steps": 9,
}
QUERIES = {"fire": 2, "fire.v2": 0}
DEFERRED = (
    "pattern P all(A a, B b) policies evaluation deferred, cardinality unrestricted, repeated every, consumption reuse"
)
EVENTS = [{"type": type_, "ts": at} for at, type_ in enumerate("AABAAB")]  # 8 pairs, known at the end
FEW = weft.Budget(matches_per_batch=3, action="sample")


def test_counters_are_told_apart_by_query_whatever_names_have_dots() -> None:
    assert list(by_query(COUNTERS, QUERIES)) == [
        LeftOut("shed", "fire", "t1", 3),
        LeftOut("shed", "fire.v2", "t1", 4),
        LeftOut("sampled", "fire", "", 1200),
        LeftOut("dropped", "fire.v2", "", 7),
    ]
    assert of_these(COUNTERS, QUERIES).keys() == COUNTERS.keys() - {"steps", "shed fire/1.t1", "dropped of gone"}
    assert of_these({"events": 3, "shed": 0}, QUERIES) == {}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Registration:
    """A run with two triggers in which something was left out."""
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    run = registry.Registration("night", {})
    left_out, at = of_these(COUNTERS, QUERIES), time.time()
    for number in (1, 2):
        run.add(Trigger(number, at, 0.5, 10, 0, 0, QUERIES, left_out=left_out))
    return run


def test_the_line_of_a_trigger_says_it_as_text_and_as_json(run: registry.Registration) -> None:
    trigger = run.activity.history[-1]
    record = logging.makeLogRecord({"msg": "%s", "args": (trigger,), "trigger": trigger.to_json()})
    words = "5 shed (fire.t1 3, fire.v2.t1 4), 1,200 sampled out (fire 1,200), 7 dropped (fire.v2 7)"
    assert f"2 matches (fire 2), {words}, 0.50 s" in TextLines().format(record)
    assert json.loads(JsonFormatter().format(record))["left_out"] == of_these(COUNTERS, QUERIES)
    assert "shed" not in str(Trigger(1, 0.0, 0.5, 10, 0, 0, QUERIES))


def test_metrics_have_it_by_query_and_step(run: registry.Registration) -> None:
    text = metrics_text({"night": run.activity}).decode()
    for line in (
        'weft_shed_total{run="night"} 10.0',
        'weft_sampled_total{run="night"} 2400.0',
        'weft_dropped_total{run="night"} 14.0',
        'weft_left_out_total{query="fire",run="night",step="t1",way="shed"} 6.0',
        'weft_left_out_total{query="fire.v2",run="night",step="t1",way="shed"} 8.0',
        'weft_left_out_total{query="fire",run="night",step="",way="sampled"} 2400.0',
        'weft_left_out_total{query="fire.v2",run="night",step="",way="dropped"} 14.0',
    ):
        assert line in text


def test_a_run_shows_it(run: registry.Registration) -> None:
    shown = CliRunner().invoke(app, ["show", "night"]).stdout
    assert "sampled out  2,400\n" in shown
    assert "  fire: 4 matches, 6 shed as t1, 2,400 sampled out\n" in shown
    assert "  fire.v2: 0 matches, 8 shed as t1, 14 dropped\n" in shown


def test_matches_that_waited_for_the_end_are_within_the_limits_and_counted() -> None:
    program = weft.compile(DEFERRED, "epn")
    running = weft.live(program, budget=FEW)
    assert len(running.push(EVENTS)) == 0
    assert len(running.finish()) == 3
    assert running.counters["sampled out of P"] == 5
    assert len(list(weft.detect(EVENTS, program, budget=FEW))) == 3
    stopping = weft.Budget(matches_per_batch=3)
    with pytest.raises(BudgetError, match="more than the 3 matches"):
        list(weft.detect(EVENTS, program, budget=stopping))
    running = weft.live(program, budget=stopping)
    running.push(EVENTS)
    with pytest.raises(BudgetError, match="more than the 3 matches"):
        running.finish()


def test_a_lane_tells_what_was_left_out_at_the_end() -> None:
    job = limited(job_of(plan(weft.compile(DEFERRED, "epn")), Reading(), 1, streaming=True), Limits(FEW))
    assert job.left_out == ["sampled out of P"]
    stream = Stream(job, 0)
    stream.trigger([EVENTS])
    stream.end()
    output = stream.table()
    told = output.filter(pa.compute.and_(pa.compute.is_null(output["query"]), pa.compute.is_null(output["reason"])))
    counted = [json.loads(text) for text in told["event"].to_pylist()]
    assert {"sampled": 5, "sampled out of P": 5} in counted


def test_pages_of_the_workbench_show_it_by_query() -> None:
    told = {
        "queries": {"fire": {"matches": 7}, "other": {"matches": 1}},
        "left_out": {"shed fire.t1": 3, "dropped of fire": 2},
    }
    fire, other = summary_of(told).queries
    assert fire.left_out == ("3 shed as t1", "2 dropped")
    assert query_text(fire) == "7 matches; 3 shed as t1; 2 dropped"
    assert query_text(other) == "1 match"


def test_a_guard_counts_by_the_names_that_it_gives() -> None:
    program = weft.compile("SELECT * FROM S WHERE (A+ AS a ; B AS b) WITHIN 100 EVENTS")
    limits = Limits(weft.Budget(matches_per_event=2, action="sample"), weft.Shed(above=5))
    names = limits.guard(program.queries).counter_names
    assert set(names) == {
        counter_name(one.way, one.query, one.step) for one in by_query(dict.fromkeys(names, 1), ["q"])
    }
    assert counter_name("sampled", "q") in names
    running = weft.live(program, budget=weft.Budget(matches_per_event=2, action="sample"))
    running.push([{"type": "AAAAB"[n % 5], "ts": n} for n in range(10)])
    counted = {name for name in running.counters if " of " in name}
    assert counted == {counter_name("sampled", "q")}
