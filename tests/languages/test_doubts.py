"""Warnings about programs that are allowed and usually not meant, each with the usual cure."""

from __future__ import annotations

import pytest

from weft.languages import compile_text

STEP = 'topology "T" ' + " ".join(f'external {name}(k: int) < "{name}.jsonl" [1.0]' for name in "ABC") + " "
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
    ("eql", "SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k)", "no-bound", "(a, b) OCCURS WITHIN"),
    ("eql", "SELECT * FROM A a+", "no-bound", "(a, a) OCCURS WITHIN"),
    ("eql", "SELECT * FROM (A a ; B b) \\ C c WHERE c.x > b.x", "no-bound", "(a, b) OCCURS WITHIN"),
    ("step", STEP + "Q(*): A ;? B", "no-bound", "dur <"),
    ("step", STEP + "Q(*): A ;[A.k = B.k] B", "no-bound", "dur <"),
    ("step", STEP + "Q(*): A , B", "no-bound", "dur <"),
    ("step", STEP + "Q(*): A +?", "no-bound", "dur <"),
    ("step", STEP + "Q(*): A ; !B ; C", "no-bound", "dur <"),
    ("step", STEP + "Q(*): !A[A.k = B.k] ; B", "no-bound", "X ; !Q ;[dur <"),
    ("epn", "pattern p sequence(A a, B b)", "no-context", "context sliding"),
    ("epn", "pattern p all(A a, B b) where a.x < b.x context by k", "no-context", "context sliding"),
    ("epn", "pattern p absence(Beat b) context from Beat for 10 minutes", "absence-of-opener", "context sliding"),
]
GOOD = [
    ("eql", "SELECT * FROM A a"),
    ("eql", "SELECT * FROM A a ; B b"),
    ("eql", "SELECT * FROM (A a ; B b) \\ C c"),
    ("eql", "SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k) AND (a, b) OCCURS WITHIN 5 sec"),
    ("eql", "SELECT * FROM A a ; B b ; C c WHERE FILTER(a.k = b.k) AND (a, c) OCCURS WITHIN 5 sec"),
    ("eql", "SELECT * FROM A a+ WHERE (a, a) OCCURS WITHIN 5 sec"),
    ("eql", "SELECT * FROM A a{1,3}"),
    ("eql", "SELECT * FROM (A a @ 5 sec) \\ B b WHERE a.k = b.k"),
    ("step", STEP + "Q(*): A[A.k > 1]"),
    ("step", STEP + "Q(*): A ; B"),
    ("step", STEP + "Q(*): A + ; B"),
    ("step", STEP + "Q(*): A ;?[dur < 50] B"),
    ("step", STEP + "Q(*): A +? ;[dur < 50] B"),
    ("step", STEP + "Q(*): A ,[dur < 50] B"),
    ("step", STEP + "Q(*): A ;[dur < 50] !B ; C"),
    ("step", STEP + "Q(*): !A ; B"),
    ("epn", "pattern p sequence(A a, B b) context sliding 1 hour every 1 minute"),
    ("epn", "pattern p all(A a, B b) policies a: repeated override; b: repeated override"),
    ("epn", "pattern p any(A a, B b)"),
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
