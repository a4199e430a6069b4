"""Threads that nobody asked for: where the plan expects a gain, and nowhere else."""

from __future__ import annotations

import pytest

import weft
from weft import engines
from weft.algebra.analysis.feeding import feeders
from weft.optimizer.cost import Costs
from weft.plan.partitioning.here import gain_of, may_gain
from weft.plan.planner import plan
from weft.runtime import local
from weft.runtime.execution import threaded_matcher as crew
from weft.runtime.execution.matcher import Matcher
from weft.statistics import Statistics


def test_threads_are_used_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_THREADS", "2")
    monkeypatch.setattr(local, "MANY", 400)
    events = [{"type": "AB"[n % 2], "ts": n, "x": n * 7 % 50} for n in range(2000)]
    dear = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > b[x] + 45 WITHIN 100 MILLISECONDS"
    cheap = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > 45 AND b[x] > 45 WITHIN 10 MILLISECONDS"
    many = "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER a[x] > 48 WITHIN 20 MILLISECONDS"
    for program, lanes in ((dear, 2), (cheap, 0), (many, 0)):
        run = engines.start(events, weft.compile(program), "local")
        found = [row["id"] for rows in run.rows() for row in rows.to_pylist()]
        assert isinstance(run, local.LocalRun)
        assert len(run._lanes) == lanes
        assert found == [match.id for match in weft.detect(events, program, strategy="one")]


def gain(text: str, language: str, rates: dict[str, float], threads: int = 2) -> float:
    program = weft.compile(text, language=language)
    return gain_of(program.queries, feeders(program.queries), Costs(Statistics(rates)), threads)


@pytest.mark.parametrize("slots", [2, 8, 16])
def test_sequences_by_key_cost_less_than_to_share_them_out(slots: int) -> None:
    names = [f"E{n}" for n in range(slots)]
    tied = " and ".join(f"e{n}.k = e{n + 1}.k" for n in range(slots - 1))
    places = ", ".join(f"{name} {name.lower()}" for name in names)
    text = f"pattern P sequence({places}) where {tied} context fixed 100"
    assert gain(text, "epn", dict.fromkeys(names, 10.0)) < engines.GAIN
    assert not may_gain(weft.compile(text, language="epn").queries, 2)


SEARCHED = "pattern P all(A a, B b) where a.k = b.k and a.x < b.x context fixed 100"
RULE = "define X() from A() as a and each B(x > a.x) as b within {} from a"
COMPARED = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] > b[x] WITHIN 1 SECOND"


@pytest.mark.parametrize(
    ("text", "language", "pays"),
    [
        (COMPARED, "ceql", True),
        (COMPARED.replace("a[x] > b[x]", "a[x] > 1"), "ceql", False),
        (SEARCHED, "epn", True),
        (RULE.format(100), "tesla", True),
        (RULE.format(1), "tesla", False),
    ],
)
def test_what_is_compared_with_many_is_shared_out(text: str, language: str, pays: bool) -> None:
    rates = {"A": 500.0, "B": 500.0}
    assert (gain(text, language, rates) > engines.GAIN) is pays
    assert gain(text, language, rates, threads=1) < 1.0
    assert may_gain(weft.compile(text, language=language).queries, 2) or not pays


def test_events_that_nobody_reads_are_read_and_given_to_lanes_too() -> None:
    rates = {"A": 500.0, "B": 500.0}
    assert gain(SEARCHED, "epn", rates) > engines.GAIN > gain(SEARCHED, "epn", {**rates, "C": 9000.0})


def test_one_thread_shares_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_THREADS", "1")
    monkeypatch.setattr(local, "MANY", 1)
    monkeypatch.setattr(engines, "GAIN", 0.0)
    program = weft.compile("SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS")
    run = engines.start([{"type": "A", "ts": 1}], program, "local")
    assert list(run.rows()) == []
    assert isinstance(run, local.LocalRun)
    assert run._lanes == ()


@pytest.mark.parametrize("fields", [("x: int", "x: int"), ("x: int", "y: int")])
def test_rules_of_lanes_tell_their_firings_as_they_come(
    fields: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [
        f"define F{pair}({field}) from A{pair}() as a and each B{pair}(v > {limit}) as b within 50 from a "
        f"where {field[0]} = b.v;"
        for pair, field in enumerate(fields)
        for limit in range(5)
    ]
    program = weft.compile("\n".join(rules), language="tesla")
    monkeypatch.setattr(crew, "WAVE", 50)
    events = [{"type": f"{'AB'[n % 3 > 0]}{n % 2}", "ts": n, "v": n % 7} for n in range(400)]
    found = list(weft.detect(events, program, strategy="query", lanes=2, threads=2))
    assert found == list(weft.detect(events, program, engine="meaning")) != []
    # By end, whatever rule: unless fields differ, when those with the same come together.
    assert Matcher(plan(program)).emits_several_queries == (len(set(fields)) > 1)
