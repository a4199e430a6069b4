"""The strategy `placed` for users: which plan runs, what `explain` says of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft import engines
from weft.cli.main import app
from weft.errors import UsageError
from weft.optimizer.pipeline import DEFAULT
from weft.plan.parallel.model import STEP2012
from weft.plan.planner import plan
from weft.runtime.lanes.sharing import Sharing

TOPOLOGY = 'topology "t" external A(x: int) < "A" [90000.0] external B(x: int) < "B" [90000.0] '
NEXT = "A/a ;[dur < 3600 && a.x < b.x] B/b"
RUNS = f"{TOPOLOGY}Q(a.x): ({NEXT}) +[prev(a.x) != a.x && len < 4]"
EVENTS = [{"type": "AB"[at % 2], "ts": at, "x": at * 7 % 5} for at in range(60)]


def program(text: str) -> weft.Program:
    return weft.compile(text, language="step")


def test_explain_shows_the_lanes_that_run() -> None:
    found = json.loads(weft.explain(program(RUNS), format="json", nodes=3, rates=True, model="step2012"))
    told = [(lane["stage"], node["node"]) for node in found["placed"]["nodes"] for lane in node["lanes"]]
    run = plan(program(RUNS), strategy="placed", lanes=3)
    assert sorted(told) == sorted((group.stage, node) for group in run.lanes for node in group.nodes)
    assert found["placed"]["lanes"] == len(run.lanes_for(3)) == len(told)
    lanes = [lane for node in found["placed"]["nodes"] for lane in node["lanes"]]
    assert {channel for lane in lanes for channel in lane["sends"]} == {0}
    assert [lane["queries"] for lane in lanes if lane["receives"] == [0]] == [["Q"]]
    assert found["rates"]["model"] == "step2012"
    assert [own["kind"] for own in found["rates"]["components"]][:2] == ["source", "source"]


def test_lanes_by_rates_place_what_cannot_be_split_as_a_whole() -> None:
    automatic = Sharing(lanes="auto")
    runs = engines.counted(automatic, program(RUNS), DEFAULT, STEP2012)
    assert runs.strategy == "placed"
    assert runs.number == json.loads(weft.explain(program(RUNS), format="json", model="step2012"))["rates"]["lanes"]
    assert engines.counted(automatic, program(f"{TOPOLOGY}Q(*): {NEXT}"), DEFAULT, STEP2012).strategy is None
    assert engines.counted(automatic, program(RUNS), DEFAULT, STEP2012, places=False).strategy is None
    assert engines.counted(Sharing("one", "auto"), program(RUNS), DEFAULT, STEP2012).strategy == "one"


def test_queries_that_have_operators_in_common_run_them_once() -> None:
    text = f"{RUNS} R(*): ({NEXT}) | A/c"
    lanes = plan(program(text), strategy="placed", lanes=4).lanes
    finding = [group for group in lanes if group.stage == 0 and len(group.queries) == 1 and group.queries[0] > 1]
    assert len(finding) == 1
    alone = list(weft.detect(EVENTS, program(text)))
    assert list(weft.detect(EVENTS, program(text), strategy="placed", lanes=4)) == alone


def test_the_command_line_places_operators(tmp_path: Path) -> None:
    (tmp_path / "runs.step").write_text(RUNS)
    events = tmp_path / "events.jsonl"
    events.write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    command = ["match", str(tmp_path / "runs.step"), "--events", str(events)]
    alone = CliRunner().invoke(app, command)
    assert len(alone.stdout.splitlines()) > 3
    for more in (["--nodes", "3"], ["--strategy", "placed", "--lanes", "2"], ["--lanes", "auto"]):
        assert CliRunner().invoke(app, [*command, *more]).stdout == alone.stdout
    wrong = CliRunner().invoke(app, [*command, "--nodes", "3", "--lanes", "2"])
    assert (wrong.exit_code, "leave out --strategy and --lanes" in wrong.stderr) == (2, True)


def test_nodes_have_work_by_their_capacities() -> None:
    text = " ".join(f"Q{n}(a.x): (A/a ;[dur < {n + 9}] B/b) ; A/c" for n in range(12))
    apart = program(f"{TOPOLOGY}{text}")
    made = plan(apart, strategy="placed:6,1,1", lanes=9)
    loads = [own.load for own in made.placed]
    assert [own.capacity for own in made.placed] == [6, 1, 1]
    assert loads[0] > 3 * max(loads[1:])
    assert min(loads) > 0
    equal = [own.load for own in plan(apart, strategy="placed", lanes=3).placed]
    assert max(own.load / own.capacity for own in made.placed) < max(equal) / 1.5
    shown = weft.explain(apart, strategy="placed:6,1,1")
    assert f"0: load {loads[0]:,.1f}, capacity 6" in shown
    assert ", capacity" not in weft.explain(apart, nodes=3)
    found = list(weft.detect(EVENTS, apart, strategy="placed:6,1,1"))
    assert found == list(weft.detect(EVENTS, apart))


def test_what_is_divided_has_more_shares_on_a_larger_node() -> None:
    text = f"{TOPOLOGY}Q(*): A/a ;[dur < 3600 && a.x = b.x] B/b"
    lanes = plan(program(text), strategy="placed:2,1,1").lanes
    assert sorted(lanes[0].nodes) == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("strategy", "lanes", "message"),
    [
        ("placed:2,x", None, "capacities of nodes are numbers above 0, as in placed:2,1,1, not '2,x'"),
        ("placed:2,0", None, "numbers above 0"),
        ("placed:", None, "numbers above 0"),
        ("placed:2,1", 3, "has 2 nodes, not 3"),
    ],
)
def test_wrong_capacities_are_refused(strategy: str, lanes: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        weft.detect(EVENTS, program(RUNS), strategy=strategy, lanes=lanes)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="leave out the strategy 'placed'"):
        weft.detect(EVENTS, program(RUNS), strategy="placed", budget="state=1MB")
    with pytest.raises(UsageError, match="did you mean 'placed'"):
        weft.detect(EVENTS, program(RUNS), strategy="plced")
    with pytest.raises(UsageError, match="leave out 'key'"):
        weft.explain(program(RUNS), strategy="key", nodes=2)
