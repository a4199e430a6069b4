"""What lanes count of the events that pass, how it adds up, and how one gets it from a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.driving import event_batches
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.running import registry
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.ownership import counts_own, own_events
from weft.runtime.lanes.routing import shares
from weft.runtime.watching.tallies import Tallies, Tallying
from weft.runtime.watching.triggers import Standing, Trigger
from weft.statistics import Statistics

TEXT = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 2] AND b[x < 1] AND a[x] < b[x] WITHIN 5 seconds"
EVENTS: list[dict[str, object]] = [{"type": "AAB"[n % 3], "ts": 100 * n, "x": n % 5} for n in range(300)]


def tallying(apart: bool = True) -> tuple[Tallying, list[dict[str, object]]]:
    """A lane that counts three batches, of which two are told of together."""
    program, _ = compile_text(TEXT)
    counting, told = Tallying(program, apart=apart), []
    for number, batch in enumerate(event_batches([EVENTS[:100], EVENTS[100:250], EVENTS[250:]], plan(program))):
        counting.look(batch)
        told += [counting.told()] if number else []
    assert counting.told() is None
    return counting, told


def added(*triggers: list[dict[str, object]]) -> Statistics:
    tallies = Tallies()
    for lanes in triggers:
        tallies.add(lanes)
    return tallies.statistics()


def test_counts_add_up_to_what_is_measured_in_all_events() -> None:
    _, told = tallying()
    found, whole = added(*([one] for one in told)), weft.measure(EVENTS, TEXT)
    assert found.rates == pytest.approx(whole.rates)
    assert found.selectivity == {text: whole.selectivity[text] for text in found.selectivity}
    assert set(found.selectivity.values()) == {0.4, 0.2}
    assert found.rate("A").origin == "measured"


def test_lanes_with_events_of_their_own_add_up_and_copies_do_not() -> None:
    (_, own), (_, copies) = tallying(), tallying(apart=False)
    alone = added(*([one] for one in own))
    assert added(*([one, one] for one in own)).rates == {type_: 2 * rate for type_, rate in alone.rates.items()}
    assert added(*([one, one] for one in copies)).rates == alone.rates
    assert added(*([one, one] for one in copies)).selectivity == alone.selectivity


@pytest.mark.parametrize("strategy", ["key", "slice", "replicate", "rank"])
def test_all_lanes_together_count_each_event_once(strategy: str) -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[x] = b[x] PARTITION BY [x] WITHIN 1 second"
    if strategy == "replicate":
        text = 'topology "t" external A(x: int) < "a" [1.0] external B(x: int) < "b" [1.0] q(*): A/a ;?[dur < 9] B/b'
    program, _ = compile_text(text, language="step" if strategy == "replicate" else "ceql")
    chosen = plan(program, strategy=strategy)
    (batch,) = event_batches([EVENTS], chosen)
    crew = ThreadedMatcher(chosen, chosen.lanes_for(3))
    crew.gather(batch)  # slices are as long as the events say
    told = []
    for lane, events in zip(crew.lanes, shares(batch, crew.lanes), strict=True):
        counting = Tallying(program, apart=counts_own(lane))
        counting.look(events, own_events(events, lane))
        told.append(counting.told())
    seconds = (EVENTS[-1]["ts"] - EVENTS[0]["ts"]) / 1000
    assert added(told).rates == {"A": pytest.approx(200 / seconds), "B": pytest.approx(100 / seconds)}


def test_a_run_writes_what_it_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    registration = registry.Registration("night", {})
    runner = CliRunner()
    assert "no event" in runner.invoke(app, ["measure", "--run", "night"]).output
    _, told = tallying()
    for number, counted in enumerate(told):
        lane = Standing.from_json({"lane": 0, "taken": 1, "held": 0, "behind": 0, "state_bytes": 0, "counted": counted})
        registration.add(Trigger(number, 1.0, 0.5, 100, 0, 0, {"q": 1}, (lane,)))
    file = tmp_path / "rates.json"
    assert not runner.invoke(app, ["measure", "--run", "night", "--out", str(file)]).exit_code
    assert Statistics.read(file).rates == pytest.approx(weft.measure(EVENTS, TEXT).rates)
    assert json.loads(runner.invoke(app, ["measure", "--run", "night"]).stdout) == json.loads(file.read_text())
    assert "A: 6.6" in runner.invoke(app, ["show", "night"]).stdout
    refused = runner.invoke(app, ["measure", "--run", "night", "--events", "x.jsonl"])
    assert "omit PROGRAM" in refused.output


def test_types_are_counted_in_all_events() -> None:
    _, told = tallying()
    types = Counter[str]()
    for one in told:
        types.update(one["types"])
    assert types == Counter(str(event["type"]) for event in EVENTS)
