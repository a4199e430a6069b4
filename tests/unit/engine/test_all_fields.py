"""`SELECT *` of EQL and `(*)` of Step: all fields of all events of a match, on every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft.plan.planner import plan
from weft.runtime.reading.order import read_events

EQL = "SELECT * FROM B b+ ; A a WHERE FILTER(b.k > 0), (b, a) OCCURS WITHIN 1 min"
STEP = """topology "T"
external A(x: int) < "a" [1.0]
external B(x: int) < "b" [1.0]
Q(*): B +?[B.x > 0] ;?[dur < 100] A > "out"
"""
EVENTS: list[dict[str, Any]] = [
    {"type": "B", "ts": 2, "x": 2, "y": 1.5, "k": 1},
    {"type": "B", "ts": 3, "x": 3, "y": "text", "k": 2, "yes": True},
    {"type": "A", "ts": 4, "x": 1, "name": "u", "none": None, "list": [1]},
]
ENGINES = ("local", "meaning")


def events_of(program: weft.Program | list[weft.Program], engine: str, events: Any = EVENTS) -> list[dict[str, object]]:
    return [match.event for match in weft.detect(events, program, engine)]


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_are_named_by_variable_and_those_of_runs_are_lists(engine: str) -> None:
    end = {"a.x": 1, "a.name": "u"}
    both = {"b.x": [2, 3], "b.y": [1.5, "text"], "b.k": [1, 2], "b.yes": [None, True]}
    first = {"b.x": [2], "b.y": [1.5], "b.k": [1]}
    last = {"b.x": [3], "b.y": ["text"], "b.k": [2], "b.yes": [True]}
    assert events_of(weft.compile(EQL, language="eql"), engine) == [{**own, **end} for own in (both, first, last)]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_iteration_of_step_shows_its_first_and_last_member(engine: str) -> None:
    found = events_of(weft.compile(STEP, language="step"), engine)
    assert [event["B.x"] for event in found] == [[2, 3], [2], [3]]
    assert all(event["A.x"] == 1 for event in found)


@pytest.mark.parametrize("engine", ENGINES)
def test_types_and_times_are_no_fields_whatever_they_are_called(engine: str) -> None:
    events = [{"kind": "A", "at": 1, "type": "t", "ts": 5}, {"kind": "A", "start": 2, "end": 3, "ts": 6}]
    program = weft.compile("SELECT * FROM A a WHERE a.at < 9 OR a.ts > 0", language="eql")
    found = [match.event for match in weft.detect(events, program, engine, time="at", type="kind")]
    assert found == [{"a.type": "t", "a.ts": 5}, {"a.ts": 6}]


@pytest.mark.parametrize("engine", ENGINES)
def test_other_queries_read_them(engine: str, tmp_path: Path) -> None:
    (tmp_path / "pair.eql").write_text("SELECT * FROM B b ; B c WHERE (b, c) OCCURS WITHIN 1 min")
    (tmp_path / "over.eql").write_text("SELECT * FROM pair p ; A a WHERE (p, a) OCCURS WITHIN 1 min")
    paths = [tmp_path / "pair.eql", tmp_path / "over.eql"]
    (_, found) = [match.event for match in weft.detect(EVENTS, paths, engine)]
    first = {"p.b.x": 2, "p.b.y": 1.5, "p.b.k": 1}
    second = {"p.c.x": 3, "p.c.y": "text", "p.c.k": 2, "p.c.yes": True}
    assert found == {**first, **second, "a.x": 1, "a.name": "u"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rows", [1, 3])
def test_what_no_event_has_is_left_out(engine: str, rows: int) -> None:
    events = [{"type": "A", "ts": ts, **({"x": ts} if ts else {})} for ts in range(rows)]
    found = [{"a.x": ts} if ts else {} for ts in range(rows)]
    assert events_of(weft.compile("SELECT * FROM A a", language="eql"), engine, events) == found


def test_ids_do_not_depend_on_what_is_shown() -> None:
    named = weft.compile(EQL.replace("*", "b.k"), language="eql")
    shown = weft.compile(EQL, language="eql")
    assert [m.id for m in weft.detect(EVENTS, named)] == [m.id for m in weft.detect(EVENTS, shown)]


def test_a_table_has_them_as_a_struct() -> None:
    table = pa.table({"type": ["B", "B", "A"], "ts": [1, 2, 3], "x": [2, None, 1], "k": pa.array([1, 2, 0], pa.int8())})
    event = weft.detect(table, weft.compile(EQL, language="eql")).to_arrow()["event"]
    kinds = {"a.x": pa.int64(), "a.k": pa.int8(), "b.x": pa.list_(pa.int64()), "b.k": pa.list_(pa.int8())}
    assert {field.name: field.type for field in event.type} == kinds
    assert event.to_pylist()[0] == {"a.x": 1, "a.k": 0, "b.x": [2, None], "b.k": [1, 2]}


def test_queries_that_differ_have_them_as_text(tmp_path: Path) -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "x": [1, None]})
    (tmp_path / "a.eql").write_text("SELECT * FROM A a")
    (tmp_path / "b.eql").write_text("SELECT b.x FROM B b")
    programs = [tmp_path / "a.eql", tmp_path / "b.eql"]
    texts = weft.detect(table, programs).to_arrow()["event"].to_pylist()
    assert list(map(json.loads, texts)) == [{"a.x": 1}, {"b.x": None}]


def test_counting_reads_what_conditions_need() -> None:
    program = weft.compile(EQL, language="eql")
    assert weft.count(EVENTS, program) == {"q": 3}
    (batch,) = read_events(EVENTS, columns={"k"})
    assert set(batch.columns) == {"k"}
    (batch,) = read_events(EVENTS, columns=plan(program).columns)
    assert set(batch.columns) == {"k", *(f"\0.{name}" for name in ("x", "name", "none", "list", "y", "k", "yes"))}


def test_a_live_program_shows_them_to_subscribers() -> None:
    live = weft.live(weft.compile(EQL, language="eql"))
    heard: list[object] = []
    live.subscribe("q", lambda match: heard.append(match.event))
    for event in EVENTS:
        live.push([event])
    live.finish()
    assert [event["b.x"] for event in heard] == [[2, 3], [2], [3]]  # type: ignore[index]
