"""Calls that cannot work are told in a sentence of weft's, not by an error of Python's."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
