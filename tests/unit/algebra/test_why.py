"""Why chosen events are a match or not: one example of each kind of failure, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.harness import event, stream
from typer.testing import CliRunner

import weft
from weft.cli.main import app

A_THEN_B = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 3 EVENTS"


def failures(text: str, language: str, events: list[dict[str, object]], at: list[int]) -> list[tuple[str, str]]:
    (found,) = weft.why(events, weft.compile(text, language), at)
    return [(failure.kind, str(failure)) for failure in found.failures]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * FROM S WHERE A AS a ; B AS b ; A AS c FILTER b[x = 1] WITHIN 9 EVENTS"),
        ("eql", "SELECT a.x FROM A a ; B b ; A c WHERE b.x = 1"),
    ],
)
def test_an_event_is_taken_for_what_it_is_and_each_step_that_is_missing_is_named(language: str, text: str) -> None:
    assert sorted(failures(text, language, stream("A1", "B2", "A1"), [1])) == [
        ("condition", "b: x = 1, but x is 2" if language == "ceql" else "b: b[x] = 1, but b[x] is 2"),
        ("missing", "a: an event A a, but none of these events is"),
        ("missing", "c: an event A c, but none of these events is"),
    ]


STEP = """topology "T" external A(x: int, y: int) < "A.jsonl" [1.0] external B(x: int) < "B.jsonl" [1.0]
Q(*): A/a ;[a.x <= a.y] B/b
"""


@pytest.mark.parametrize(
    ("language", "text", "events", "at"),
    [
        ("ceql", "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER a[x <= 1] WITHIN 9 EVENTS LIMIT 2", "A2 A0 B0", [0, 2]),
        ("step", STEP, "A1 B0 B0", [0, 2]),
    ],
)
def test_a_choice_is_named_that_would_fall_otherwise_if_the_condition_held(
    language: str, text: str, events: str, at: list[int]
) -> None:
    rows = [{**row, "y": 0} for row in stream(*events.split())]
    assert [kind for kind, _ in failures(text, language, rows, at)] == ["condition", "choice"]


def test_of_alternatives_one_step_is_missing() -> None:
    text = "SELECT * FROM S WHERE A AS a ; (B AS b OR C AS c) WITHIN 9 EVENTS"
    assert failures(text, "ceql", stream("A1", "D1"), [0]) == [
        ("missing", "b c: an event B b or C c, but none of these events is")
    ]


def test_a_match_fails_nothing() -> None:
    (found,) = weft.why(stream("A1", "B1"), A_THEN_B, [0, 1])
    assert found.matched
    assert found.bindings == {"a": (0,), "b": (1,)}


@pytest.mark.parametrize(
    ("events", "at", "expected"),
    [
        (("A1", "B2"), [0, 1], [("condition", "a b: a[x] = b[x], but a[x] is 1, b[x] is 2")]),
        (("B1", "A1"), [0, 1], [("order", "a, b: a before b")]),
        (("A1", "C", "C", "C", "B1"), [0, 4], [("bound", "within: within 3 events, but from first to last it is 4")]),
        (("A1", "C1"), [0, 1], [("type", "b: an event B, but it is C")]),
        (("A1", "C"), [0], [("missing", "b: an event B b")]),
        (("A1", "C1", "B1"), [0, 1, 2], [("extra", "every chosen event takes part, but no step takes 1")]),
    ],
)
def test_each_kind_of_failure_in_ceql(events: tuple[str, ...], at: list[int], expected: list[tuple[str, str]]) -> None:
    found = failures(A_THEN_B, "ceql", stream(*events), at)
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    for (_, text), (_, begins) in zip(found, expected, strict=True):
        assert begins.split(":")[-1] in text


def test_contiguity_names_what_comes_between() -> None:
    (found,) = weft.why(stream("A", "C", "B"), "SELECT * FROM S WHERE A : B", [0, 2])
    assert [(failure.kind, failure.others) for failure in found.failures] == [("gap", (1,))]


def test_a_strategy_says_what_is_found_instead() -> None:
    (found,) = weft.why(stream("A", "A", "B"), "SELECT LAST * FROM S WHERE A ; B", [0, 2])
    assert [(failure.kind, failure.step, failure.others) for failure in found.failures] == [
        ("choice", "strategy", (1, 2))
    ]


def test_partitions_say_the_keys() -> None:
    text = "SELECT * FROM S WHERE A ; B PARTITION BY [x]"
    assert failures(text, "ceql", stream("A1", "B2"), [0, 1]) == [("key", "PARTITION BY: the same x, but it is 1, 2")]


def test_eql_says_which_event_came_next_and_what_stands_between() -> None:
    events = stream("A1", "B2", "C", "B1")
    kinds = failures(r"SELECT a.x FROM (A a ; B b) \ C c WHERE a.x = b.x", "eql", events, [0, 3])
    assert [kind for kind, _ in kinds] == ["choice", "unwanted"]
    assert kinds[0][1] == "b: the next b after a, but that is 1"


def test_step_says_the_longest_run() -> None:
    events = [event("A", 0, v=1), event("A", 1, v=2), event("A", 2, v=3)]
    text = 'topology "T" external A(v: real) < "a" [1.0] Rise(A.v): A + [A.v > prev(A.v)]'
    assert [kind for kind, _ in failures(text, "step", events, [0, 1])] == ["choice"]
    assert failures(text, "step", events, [0, 2]) == []


def test_epn_says_the_policy() -> None:
    text = "pattern P\n  sequence(A a, B b)\n  policies repeated first\n"
    found = failures(text, "epn", stream("A", "A", "B"), [1, 2])
    assert found == [("choice", "a: repeated first, but another event fills the slot")]


def test_an_absence_is_kept_from_being_by_what_is_there() -> None:
    text = "pattern P\n  absence(A a)\n  context fixed 10\n"
    assert [kind for kind, _ in failures(text, "epn", stream("A", "B"), [0])] == ["unwanted"]


def test_queries_over_derived_events_are_explained_by_input_positions() -> None:
    pairs = weft.compile("SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS")
    over = "pattern Two\n  sequence(q one, C c)\n  where c.x > 1\n"
    found = weft.why(stream("A", "B", "C1"), [pairs, weft.compile(over, "epn")], [0, 1, 2])
    assert [failure.kind for failure in found.of("Two").failures] == ["condition"]


def test_patterns_built_in_python_are_explained() -> None:
    pattern = weft.Pattern.begin("a").where(weft.e.type == "A").next("b").where(weft.e.type == "B")
    (found,) = weft.why(stream("A", "C", "B"), pattern, [0, 2])
    assert [failure.kind for failure in found.failures] == ["gap"]


def test_positions_that_are_not_there_are_refused() -> None:
    with pytest.raises(weft.UsageError, match="no event at position 7"):
        weft.why(stream("A"), A_THEN_B, 7)
    with pytest.raises(weft.UsageError, match="which events"):
        weft.why(stream("A"), A_THEN_B, [])


def test_the_command_prints_text_and_json(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps(one) + "\n" for one in stream("A1", "B2")))
    asked = ["why", "-q", A_THEN_B, "--events", str(events), "--at", "0,1"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0
    assert "a[x] = b[x], but a[x] is 1, b[x] is 2" in shown.output
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert told[0]["failures"][0]["kind"] == "condition"
    assert CliRunner().invoke(app, [*asked[:-1], "zero"]).exit_code == 2


THREE = "SELECT LAST * FROM S WHERE A AS a ; B AS b ; C AS c FILTER a[x] = b[x] AND b[x] = c[x] WITHIN 9 EVENTS"
RULE = """define F(x: int)
from C() and each B() within 5 min from C and each A(x = 1) within 5 min from B
where x = A.x"""
PATTERN = "pattern P\n  sequence(A a, B b, C c)\n  where a.x = b.x\n  policies cardinality single\n"


@pytest.mark.parametrize(
    ("language", "text", "steps"),
    [
        ("ceql", THREE, [("a", 3), ("b", 2), ("match", 1)]),
        ("eql", "SELECT a.x FROM A a ; B b ; C c WHERE a.x = b.x", [("a", 3), ("b", 2), ("match", 2)]),
        ("tesla", RULE, [("C", 1), ("B", 2), ("match", 4)]),
        ("epn", PATTERN, [("a", 3), ("b", 2), ("match", 1)]),
    ],
)
def test_a_funnel_says_how_many_partial_matches_reached_each_step(
    language: str, text: str, steps: list[tuple[str, int]]
) -> None:
    events = stream("A1", "A1", "B1", "A2", "B3", "C1")
    assert list(weft.funnel(events, weft.compile(text, language)).values()) == [steps]


def test_a_step_of_a_funnel_is_what_the_steps_alone_would_find() -> None:
    events = stream("A1", "B1", "A2", "C1", "B2", "C2", "C1")
    whole = "SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER a[x] = b[x] AND b[x] = c[x] WITHIN 4 EVENTS"
    two = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 4 EVENTS"
    found = dict(weft.funnel(events, whole)["q"])
    assert found["b"] == weft.count(events, two)["q"]
    assert found["match"] == weft.count(events, whole)["q"]
