"""Calls that cannot work are told in a sentence of weft's, not by an error of Python's."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import InputError, ProgramError, UsageError

QUERY = "SELECT * WHERE A AS a ; B AS b WITHIN 10 EVENTS"
EVENTS = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}]
CALLS: dict[str, Callable[[Any], object]] = {
    "compile": weft.compile,
    "detect": lambda program: list(weft.detect(EVENTS, program)),
    "deploy": lambda program: weft.live().deploy(program),
}
TEXTS = {
    "ceql": "SELECT * WHERE A AS a FILTER a[x = '\udcff'] WITHIN 1 EVENT",
    "eql": "SELECT * FROM A a WHERE a.x = '\ud800'",
    "step": 'topology "T"\nexternal A(x: string) < "a.jsonl" [1.0]\nQ(*): A/a[a.x = \'\ud800\']',
    "tesla": 'define T() from A(x = "\ud800")',
    "epn": "pattern P sequence(A a[a.x = '\ud800'], B b)",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("given", [None, 5, b"SELECT", [None], [QUERY, 5]], ids=str)
def test_what_is_no_program_is_named(call: str, given: object) -> None:
    with pytest.raises(UsageError, match="a program is a text"):
        CALLS[call](given)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "compile": lambda **given: weft.compile(QUERY, **given),
    "detect": lambda **given: weft.detect(EVENTS, QUERY, **given),
    "count": lambda **given: weft.count(EVENTS, QUERY, **given),
    "match": lambda **given: weft.match("nowhere.jsonl", QUERY, **given),
    "explain": lambda **given: weft.explain(QUERY, **given),
    "measure": lambda **given: weft.measure(EVENTS, QUERY, **given),
    "live": lambda **given: weft.live(**given),
    "live.load": lambda **given: weft.live.load("nowhere", **given),  # type: ignore[attr-defined]
    "deploy": lambda **given: weft.live().deploy(QUERY, **given),
    "why": lambda **given: weft.why(EVENTS, QUERY, [0, 1], **given),
    "funnel": lambda **given: weft.funnel(EVENTS, QUERY, **given),
}
READ = {"time": 5, "type": 5}
ORDERED = {**READ, "order": 5, "key": [5], "rejects": 5}
SHARED = {"strategy": 5, "lanes": "many", "statistics": 5}
FOUND = {**ORDERED, **SHARED, "engine": 5, "delay": "x", "idle_after": "x", "threads": "x"}
LIMITED = {"statistics": 5, "budget": 5, "shed": 5}
WRONG: dict[str, dict[str, object]] = {
    "compile": {"language": 5, "schema": 5, "time_unit": 5},
    "detect": {**FOUND, **LIMITED},
    "count": FOUND,
    "match": {**ORDERED, **SHARED, **LIMITED, "delay": "x"},
    "explain": {**SHARED, "stage": 5, "format": 5, "model": 5, "nodes": 1.5},
    "measure": {**READ, "sample": -1},
    "live": {**ORDERED, **LIMITED, "queue": "x"},
    "live.load": {"rejects": 5, **LIMITED},
    "deploy": {"language": 5, "schema": {"A": 5}, "name": 5},
    "why": {**READ, "order": {"ts": 1}},
    "funnel": {**READ, "order": b"ts"},
}


@pytest.mark.parametrize(
    ("function", "name", "given"),
    [(function, name, given) for function, own in WRONG.items() for name, given in own.items()],
)
def test_an_argument_of_the_wrong_kind_is_told_with_what_is_expected(function: str, name: str, given: object) -> None:
    with pytest.raises(UsageError) as refused:
        FUNCTIONS[function](**{name: given})
    told = str(refused.value)
    shown = "a dict" if isinstance(given, dict) else repr(given)
    assert told.startswith(f"{name} is ")
    assert told.endswith(f", not {shown}")


@pytest.mark.parametrize("name", ["lanes", "threads"])
def test_there_is_at_least_one_lane_and_thread(name: str) -> None:
    for function in ("detect", "count"):
        with pytest.raises(UsageError, match=r"at least one .*, not -1$"):
            FUNCTIONS[function](**{name: -1})
        with pytest.raises(UsageError, match=f"{name} is a number of {name}"):
            FUNCTIONS[function](**{name: 2**70})


def test_what_is_large_is_not_shown_whole() -> None:
    with pytest.raises(UsageError, match=r"a DataFrame$"):
        weft.detect(EVENTS, QUERY, order=type("DataFrame", (), {})())
    with pytest.raises(UsageError) as refused:
        weft.compile(QUERY, language=b"x" * 10_000)  # type: ignore[arg-type]
    assert len(str(refused.value)) < 200


def test_arguments_of_other_right_kinds_are_taken() -> None:
    whole: Any = np.int64(1)
    names: Any = np.array(["ts"])
    assert len(list(weft.detect(EVENTS, QUERY, order=names, lanes=whole, threads=whole, rejects=[]))) == 1
    assert weft.count({"s": EVENTS}, QUERY, order=("ts",), statistics=None) == {"q": 1}


@pytest.mark.parametrize("language", TEXTS)
def test_a_program_that_is_not_unicode_is_refused_with_its_place(language: str) -> None:
    with pytest.raises(ProgramError, match="not Unicode") as raised:
        weft.compile(TEXTS[language], language)
    assert "\ud800" not in str(raised.value).encode("utf-8", "replace").decode()


@pytest.mark.parametrize("time", ["x", 1.5, float("nan"), None, 2**63])
def test_time_advances_to_a_number_of_ticks(time: Any) -> None:
    with pytest.raises(UsageError, match="a number of ticks"):
        weft.live(QUERY).advance(time)


def test_what_to_do_when_full_needs_a_queue() -> None:
    with pytest.raises(UsageError, match="queue="):
        weft.live(QUERY, when_full="drop")


def test_a_saved_program_with_another_query_than_its_state_is_damaged(tmp_path: Path) -> None:
    path, other = tmp_path / "saved", tmp_path / "other"
    running = weft.live(QUERY)
    running.push(EVENTS)
    running.save(path)
    with zipfile.ZipFile(path) as saved, zipfile.ZipFile(other, "w") as changed:
        for name in saved.namelist():
            page = saved.read(name)
            if name == "weft.json":
                about = json.loads(page)
                about["program"]["queries"][0]["name"] = "another"
                page = json.dumps(about).encode()
            changed.writestr(name, page)
    with pytest.raises(InputError, match="is damaged"):
        weft.live.load(other)  # type: ignore[attr-defined]
