"""Texts whose language is named, and texts that are not in the language they were taken for."""

from __future__ import annotations

import pytest

import weft
from weft.errors import ProgramError, UsageError

EVENTS = [{"type": "A", "ts": 1, "x": 1}, {"type": "B", "ts": 2, "x": 1}]
EQL = "SELECT * FROM A a ; B b WHERE FILTER((a, b) OCCURS WITHIN 9)"


def test_a_text_is_in_the_language_that_is_named() -> None:
    assert [m.positions for m in weft.detect(EVENTS, EQL, language="eql")] == [(0, 1)]
    assert weft.count(EVENTS, EQL, language="EQL") == {"q": 1}
    text = "pattern P sequence(A a, B b) context sliding 9 every 3"
    assert {m.query for m in weft.detect(EVENTS, text, language="epn")} == {"P"}
    with pytest.raises(UsageError, match="no language 'sparql'"):
        weft.count(EVENTS, EQL, language="sparql")


def test_a_text_of_another_language_is_recognised() -> None:
    with pytest.raises(ProgramError, match="this looks like EQL: name the language, as in language='eql'"):
        weft.compile(EQL)


def test_a_text_that_is_wrong_in_every_language_keeps_its_hint() -> None:
    with pytest.raises(ProgramError) as found:
        weft.compile("SELECT * FROM S WHERE A ; ; B")
    assert "looks like" not in str(found.value)


def test_a_text_that_parses_and_means_nothing_keeps_its_hint() -> None:
    with pytest.raises(ProgramError) as found:
        weft.compile("SELECT b FROM S WHERE A AS a")
    assert "looks like" not in str(found.value)
