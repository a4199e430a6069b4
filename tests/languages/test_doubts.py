"""Warnings about programs that are allowed and usually not meant, each with the usual cure."""

from __future__ import annotations

import pytest

from weft.languages import compile_text

DOUBTFUL = [
    (
        "ceql",
        "SELECT * WHERE A AS a ; NOT(B) ; C AS c WITHIN 1 HOUR",
        "negation-with-gaps",
        "A : NOT(B):+ : C OR A : C",
    ),
    ("ceql", "SELECT * WHERE A AS a ; (NOT(B) ; C AS c) WITHIN 1 HOUR", "negation-with-gaps", "NOT(B):+"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 1 HOUR", "exponential", "SELECT MAX"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 601 SECONDS", "exponential", ":+"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 21 EVENTS", "exponential", "LIMIT"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 5 [x]", "exponential", "LIMIT"),
    ("epn", "pattern p absence(Beat b) context from Beat for 10 minutes", "absence-of-opener", "context sliding"),
]
GOOD = [
    ("ceql", "SELECT * WHERE A AS a : NOT(B):+ : C AS c WITHIN 1 HOUR"),
    ("ceql", "SELECT MAX * WHERE A AS a ; B+ AS b WITHIN 1 HOUR"),
    ("ceql", "SELECT * WHERE A AS a ; B:+ AS b WITHIN 1 HOUR"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 1 HOUR LIMIT 5"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 10 MINUTES"),
    ("ceql", "SELECT * WHERE A AS a ; B+ AS b WITHIN 20 EVENTS"),
    ("epn", "pattern p absence(Beat b) context from Start for 10 minutes"),
    ("epn", "pattern p absence(Beat b) context sliding 10 minutes every 1 minute by host"),
]


@pytest.mark.parametrize(("language", "text", "code", "cure"), DOUBTFUL)
def test_doubtful_programs_are_warned_of_with_a_cure(language: str, text: str, code: str, cure: str) -> None:
    _, findings = compile_text(text, language=language)
    (found,) = findings
    assert (found.code, found.severity) == (code, "warning")
    assert cure in (found.hint or "")


@pytest.mark.parametrize(("language", "text"), GOOD)
def test_the_cures_are_not_warned_of(language: str, text: str) -> None:
    assert compile_text(text, language=language)[1] == ()
