"""Functions in assertions and derived values of patterns with policies: the engine against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ProgramError
from weft.languages.epn.parser import parse
from weft.languages.epn.printer import to_source
from weft.source import SourceText

HOUR = 3_600_000
CLAUSES = (
    "abs(a.x - b.x) < 2",
    "abs(a.x - b.x) >= 1.5",
    "2 = abs(a.x - b.x)",
    "abs(a.x + b.x) <> 3",
    "max(a.x, b.x, 1) > 2",
    "max(a.x, b.x) = 3",
    "min(a.x, b.x) <= 1",
    "min(a.x, b.x) <> 1",
    "not min(a.x, b.x) > 0",
    "abs(a.x) < abs(b.x)",
    "hour(a.t) = hour(b.t) and minute(a.t) < second(b.t) + 40",
    "length(a.s) > length(b.s)",
    "lower(a.s) = lower(b.s) or upper(a.s) = b.s",
    "coalesce(a.s, 'none') = coalesce(b.s, 'none')",
    "abs(a.x) > 1 and max(b.x, 2 * b.x) < 5",
)
POLICIES = ("evaluation immediate", "evaluation deferred, repeated first, consumption consume", "repeated override")
DERIVED = (
    "gap = abs(a.x - b.x), top = max(a.x, b.x, 0), low = min(a.x, b.x), h = hour(b.t), s = upper(a.s), n = length(b.s)"
)


def generated(seed: int, count: int = 24) -> list[dict[str, Any]]:
    dice = np.random.default_rng(seed)
    numbers: tuple[object, ...] = (-3, -1, 0, 1, 2, 2.0, 2.5, 3, None, "text")
    texts: tuple[object, ...] = ("a", "A", "Straße", "ß", "", None, 4)

    def one(ts: int) -> dict[str, Any]:
        x, s = numbers[dice.integers(len(numbers))], texts[dice.integers(len(texts))]
        return {"type": "AB"[dice.integers(2)], "ts": ts, "x": x, "s": s, "t": int(dice.integers(0, 3 * HOUR))}

    return [one(ts) for ts in range(count)]


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("kind", ["sequence", "all"])
def test_the_engine_finds_what_is_meant(clause: str, kind: str) -> None:
    for number, policies in enumerate(POLICIES):
        text = f"pattern P {kind}(A a, B b) where {clause} policies {policies} context fixed 9 derive {DERIVED}"
        program, events = weft.compile(text, language="epn"), generated(number)
        assert list(weft.detect(events, program)) == list(weft.detect(events, program, "meaning"))


def test_one_event_is_filtered_by_functions_of_it() -> None:
    program = weft.compile("pattern P sequence(A a[abs(a.x) = 3 and length(a.s) = 1], B b)", language="epn")
    events = [
        {"type": "A", "ts": 1, "x": -3, "s": "q"},
        {"type": "A", "ts": 2, "x": 3, "s": ""},
        {"type": "B", "ts": 3},
    ]
    assert [match.bindings["a"] for match in weft.detect(events, program)] == [(0,)]


def test_parts_of_dates_follow_the_unit_of_time() -> None:
    text = "pattern P any(A a) derive y = year(a.t), d = day(a.t), m = month(a.t)"
    events = [{"type": "A", "ts": 1, "t": 86_400 * 40}]
    (match,) = weft.detect(events, weft.compile(text, language="epn", time_unit="s"))
    assert match.event == {"y": 1970, "d": 10, "m": 2}


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("abz(a.x) > 1", "unknown-function"),
        ("abs(a.x, b.x) < 2", "wrong-operands"),
        ("max(a.x) < 2", "wrong-operands"),
        ("abs(a.x - b.x) + 1 < 2 policies repeated last", "function-of-several"),
        ("hour(a.t + b.t) = 1 policies consumption consume", "function-of-several"),
        ("length(3 + a.x) = 1", "type-mismatch"),
        ("lower(a.s) > 3", "type-mismatch"),
    ],
)
def test_mistakes_are_told(condition: str, code: str) -> None:
    with pytest.raises(ProgramError) as caught:
        weft.compile(f"pattern P sequence(A a, B b) where {condition} context fixed 9", language="epn")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]


def test_functions_are_printed_as_they_are_read() -> None:
    text = "pattern P sequence(A a, B b) where max(a.x + 1, abs(-b.x)) < 2 and not length(a.s) = 1"
    tree = parse(SourceText(text, "p"))
    assert parse(SourceText(to_source(tree), "p")) == tree
