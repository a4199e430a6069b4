"""Step's model of rates and tasks: the document's numbers, and what weft makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import InputError, UsageError
from weft.plan.parallel.model import STEP2012, Model, TaskModel, model_of
from weft.plan.parallel.rates import components_of
from weft.plan.parallel.tasks import lanes_for, tasks_of

STOCK = 'topology "T" external Stock(name: string, price: int) < "s" [500000.0] '
SPIKE = (
    STOCK + "Spike(S1.name): (Stock/S1+[prev(S1.price) < S1.price && len > 75 && len < 200]) "
    ";[S1.name = S2.name && dur < 7200] (Stock/S2+[prev(S2.price) > S2.price && len > 100 && len < 300])"
)
FRAUD = (
    'topology "T" external Call(fromNo: string, toNo: string, kind: string) < "c" [180000.0] '
    'Fraud(Eve.fromNo): (Call/Eve[Eve.kind = "secret"] ;[Eve.fromNo = Alice.toNo && dur < 3600] Call/Alice) '
    "+[prev(Eve.fromNo) = Eve.fromNo && len > 10 && len < 50]"
)


def compiled(text: str) -> weft.Program:
    return weft.compile(text, language="step")


def by_kind(text: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for component in components_of(compiled(text)):
        found.setdefault(component.kind, []).append((component.rate_in, component.rate_out))
    return found


def test_rates_of_the_spike() -> None:
    rates = by_kind(SPIKE)
    assert rates["greedy iteration"] == [
        (500_000, pytest.approx(500_000 / 75)),
        (500_000, pytest.approx(500_000 / 100)),
    ]
    assert rates["greedy next"] == [(pytest.approx(11_666.67), pytest.approx(6_666.67))]
    assert rates["projection"] == [(pytest.approx(6_666.67), pytest.approx(6_666.67))]


def test_rates_of_the_fraud() -> None:
    rates = by_kind(FRAUD)
    assert rates["greedy next"] == [(360_000, 180_000)]
    assert rates["greedy iteration"] == [(180_000, 18_000)]
    assert rates["projection"] == [(18_000, 18_000)]


@pytest.mark.parametrize(
    ("pattern", "kind", "rate_in", "rate_out"),
    [
        ("A/a | B/b", "union", 30.0, 30.0),
        ("A/a , B/b", "conjunction", 30.0, 30.0),
        ("A/a ; !C/c ; B/b", "exception", 13.0, 10.0),
        ("A/a ; B/b", "greedy next", 30.0, 10.0),
        ("A/a ;?[dur < 500] B/b", "any next", 30.0, 100.0),
        ("A/a ;?[dur <= 500] B/b", "any next", 30.0, 100.0),
        ("A/a ;?[500 >= dur && dur < 900] B/b", "any next", 30.0, 100.0),
        ("A/a ;? B/b", "any next", 30.0, 200.0),
        ("A/a +?[len < 9]", "any iteration", 10.0, 80.0),
        ("A/a +?", "any iteration", 10.0, 640.0),
        ("A/a +", "greedy iteration", 10.0, 10.0),
    ],
)
def test_rates_of_each_operator(pattern: str, kind: str, rate_in: float, rate_out: float) -> None:
    sources = " ".join(
        f'external {name}(x: int) < "{name}" [{rate}]' for name, rate in zip("ABC", (10, 20, 3), strict=True)
    )
    assert by_kind(f'topology "T" {sources} Q(*): {pattern}')[kind] == [(rate_in, rate_out)]


def test_tasks_of_the_fraud() -> None:
    tasks = tasks_of(components_of(compiled(FRAUD)), STEP2012)
    found = {task.component.kind: (round(task.exact, 3), task.count) for task in tasks}
    assert found == {
        "source": (0.424, 1),
        "greedy next": (5.242, 6),
        "greedy iteration": (1.0, 1),
        "projection": (0.0, 1),
    }
    assert lanes_for(compiled(FRAUD), STEP2012) == 7


def test_tasks_of_the_spike() -> None:
    tasks = tasks_of(components_of(compiled(SPIKE)), STEP2012)
    exact = {task.component.kind: round(task.exact, 3) for task in tasks}
    assert exact == {"source": 0.081, "greedy iteration": 1.0, "greedy next": 1.157, "projection": 0.0}
    assert [task.count for task in tasks if task.component.kind == "greedy next"] == [1]
    assert lanes_for(compiled(SPIKE), STEP2012) == 4


def test_greedy_next_by_its_window() -> None:
    form = STEP2012.forms["greedy next"]
    assert form.scaled(360_000, 3_600) == pytest.approx(330_700, abs=10)
    assert form.scaled(360_000, 5_000) == 360_000
    # It falls to five tasks at 174,587 calls, of which it gets twice as many.
    assert form.tasks(2 * 174_587, 1.1, 3_600) == pytest.approx(5.0, abs=1e-3)


def test_the_law_of_replication() -> None:
    form = TaskModel("replication", 1e-6, 1e-10)
    copied, shared, lanes = 100_000.0, 400_000.0, 8.0
    busy = 1e-6 * (copied + shared / lanes) + 1e-10 * copied * shared / lanes
    assert form.tasks(copied + shared, 1 / busy, replicated=copied) == pytest.approx(lanes)
    assert form.tasks(2e9, 1.1, replicated=1e9) == float("inf")


def test_a_model_in_a_file(tmp_path: Path) -> None:
    STEP2012.write(tmp_path / "m.json")
    assert Model.read(tmp_path / "m.json") == STEP2012
    assert model_of(str(tmp_path / "m.json")) == model_of("step2012")
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(InputError, match="is no model"):
        model_of(str(tmp_path / "m.json"))
    with pytest.raises(InputError, match="cannot read the model"):
        model_of(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * WHERE A ; B WITHIN 5 EVENTS"),
        ("tesla", "define X() from B() as b and first A() as a within 2 from b"),
        ("epn", "pattern P sequence(A a, B b) context fixed 10"),
        ("eql", "SELECT a.x FROM A a ; B b WHERE (a, b) OCCURS WITHIN 5"),
    ],
)
def test_lanes_grow_with_rates_in_every_language(language: str, text: str) -> None:
    program = weft.compile(text, language=language)
    few, many = (weft.Statistics({"A": rate, "B": rate}) for rate in (10.0, 1e8))
    assert lanes_for(program, model_of("usual"), few) == 1
    assert lanes_for(program, model_of("usual"), many) > 2


def test_explain_shows_rates_and_tasks(tmp_path: Path) -> None:
    shown = weft.explain(compiled(FRAUD), rates=True, model="step2012")
    assert "7 lanes" in shown
    (tmp_path / "f.step").write_text(FRAUD)
    command = ["explain", str(tmp_path / "f.step"), "--tasks", "--model", "step2012"]
    assert CliRunner().invoke(app, command).stdout.strip() == shown.strip()


def test_lanes_may_be_left_to_the_model() -> None:
    events = [{"type": "AB"[n % 2], "ts": n} for n in range(50)]
    program = "SELECT * WHERE A ; B WITHIN 5 EVENTS"
    assert list(weft.detect(events, program, lanes="auto")) == list(weft.detect(events, program))


def test_explain_places_operators_on_nodes() -> None:
    text = 'topology "T" external A(x: int) < "A" [64.0] external B(x: int) < "B" [8.0] '
    shown = weft.explain(compiled(text + "Q(*): A/a ; B/b R(*): A/c ; B/d S(*): B/b | A/a"), nodes=2)
    assert "2 lanes on 2 nodes, in 1 stage" in shown  # Q and R are one
    assert shown.count("stage 0: sequence first") == shown.count("stage 0: union") == 1
    with pytest.raises(UsageError, match="--stage plan"):
        weft.explain(compiled(text + "Q(*): A/a"), "algebra", nodes=2)
