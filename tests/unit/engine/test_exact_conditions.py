"""Numbers mean the same in every language and engine: integers are exact, what does not fit is the nearest float."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Any

import pytest
from tests.harness import event, run_engine

import weft

MOST, LEAST = 2**63 - 1, -(2**63)
EDGES = (2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2**60 + 1, MOST, MOST - 1, LEAST, LEAST + 1, 0, 1, 7, -3)
FLOATS = (2.0**53, 2.0**60, 2.0**63, -(2.0**63), 0.0, -0.0, 0.5, 1e300, math.inf)
# How each language asks for an A and the B right after it for which a condition on a.x and b.x holds.
LANGUAGES = {
    "ceql": "SELECT * FROM S WHERE A AS a : B AS b FILTER {}",
    "eql": "SELECT * FROM A a ; B b WHERE {}",
    "step": 'topology "T"\nexternal A(x: int, y: real) < "A" [1.0]\nexternal B(x: int, y: real) < "B" [1.0]\n'
    "Q(*): A/a ;[{} && dur < 5] B/b",
    "epn": "pattern Q sequence(A a, B b) where {} context fixed 10",
    "tesla": "define Q()\nfrom B({}=$v) and each A({}) within 5 from B",
}
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "a.x = b.x": lambda a, b: a == b,
    "a.x <> b.x": lambda a, b: a != b,
    "a.x < b.x": lambda a, b: a < b,
    "a.x <= b.x": lambda a, b: a <= b,
    "a.x > b.x": lambda a, b: a > b,
    "a.x >= b.x": lambda a, b: a >= b,
}
CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "a.x + 1 = b.x": lambda a, b: within(a + 1) == b,
    "a.x - b.x = 1": lambda a, b: within(a - b) == 1,
    "a.x - 1 < b.x": lambda a, b: within(a - 1) < b,
    "a.x * 3 > b.x": lambda a, b: within(a * 3) > b,
    "a.x + b.x > 9223372036854775807": lambda a, b: within(a + b) > MOST,
    "a.x + a.x - a.x = b.x": lambda a, b: within(within(a + a) - a) == b,
    "a.x * b.x = b.x * a.x": lambda a, b: True,
    "a.x * b.x - 9223372036854775807 > b.x": lambda a, b: within(within(a * b) - MOST) > b,
    "-a.x > b.x": lambda a, b: within(-a) > b,
    "a.x / 3 < b.x / 3": lambda a, b: a / 3 < b / 3,
    "a.x / b.x = 1": lambda a, b: b != 0 and a / b == 1,
}
REMAINDERS: dict[str, Callable[[int, int], bool]] = {  # of the languages CEQL only has them
    "a[x] % 10 = b[x] % 10": lambda a, b: rest(a) == rest(b),
    "a[x] % -1 = b[x] - b[x]": lambda a, b: True,
}


DECIMALS = tuple(
    map(
        Decimal,
        [
            "0.1",
            "0.10",
            "0.1000000000000000001",
            "0.1000000000000000002",
            "0.0999999999999999999",
            "12345678901234567.89",
            "12345678901234567.9",
            "12345678901234567",
            "-12345678901234567.89",
            "9223372036854775808",
            "9223372036854775807.5",
            "-9223372036854775808.5",
            "99999999999999999999.99",
            "100000000000000000000.01",
            "-0.5000000000000000001",
        ],
    )
)


def worth(number: Any) -> Any:
    return Decimal(repr(number)) if isinstance(number, float) else number


def within(number: float) -> float:
    """The number, as a float when it does not fit into 64 bits."""
    return float(number) if isinstance(number, int) and not LEAST <= number <= MOST else number


def rest(number: int) -> int:
    return abs(number) % 10 * (-1 if number < 0 else 1)


def written(language: str, condition: str) -> str:
    if language == "ceql":
        condition = re.sub(r"([ab])\.(\w)", r"\1[\2]", condition)
    if language == "step":
        condition = condition.replace("<>", "!=")
    if language == "tesla":
        name = "y" if "b.y" in condition else "x"
        condition = re.sub(r"b\.\w", "$v", condition.replace("a.x", "x"))
        return LANGUAGES[language].format(name, condition)
    return LANGUAGES[language].format(condition)


def pairs_found(
    engine: str, language: str, condition: str, pairs: list[tuple[object, object]], kind: str = "int"
) -> list[int]:
    """The numbers of the pairs of values for which a language and engine find an A and a B."""
    name = "y" if "b.y" in condition else "x"
    events = []
    for number, (one, other) in enumerate(pairs):
        events += [event("A", 10 * number, x=one), event("B", 10 * number + 1, **{name: other})]
    text = written(language, condition).replace("x: int", f"x: {kind}")
    size = 48 if engine == "meaning" else len(events)  # it looks at every A with every B that comes after it
    parts = [events[at : at + size] for at in range(0, len(events), size)]
    found = [match for part in parts for match in run_engine(engine, text, part, language)]
    return sorted(int(str(match["start"])) // 10 for match in found)


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("language", LANGUAGES)
class TestConditions:
    @pytest.mark.parametrize("condition", COMPARE)
    def test_integers_compare_exactly(self, engine: str, language: str, condition: str) -> None:
        pairs = list(product(EDGES, EDGES))
        expected = [number for number, (a, b) in enumerate(pairs) if COMPARE[condition](a, b)]
        assert pairs_found(engine, language, condition, list(pairs)) == expected

    @pytest.mark.parametrize("condition", COMPARE)
    def test_integers_and_floats_compare_by_what_they_are_worth(
        self, engine: str, language: str, condition: str
    ) -> None:
        pairs = list(product((2**53 + 1, 2**53, 2**60 + 1, MOST, LEAST, 0), FLOATS))
        expected = [number for number, (a, b) in enumerate(pairs) if COMPARE[condition](a, b)]
        assert pairs_found(engine, language, condition.replace("b.x", "b.y"), list(pairs)) == expected

    @pytest.mark.parametrize("condition", COMPARE)
    def test_decimals_compare_by_all_their_digits(self, engine: str, language: str, condition: str) -> None:
        """With each other, with whole numbers and with floats, which stand for the shortest decimal that names them."""
        pairs = list(product(DECIMALS, (*DECIMALS, 0.1, 1e300, -0.5, MOST, LEAST, 0, 12345678901234567)))
        expected = [number for number, (a, b) in enumerate(pairs) if COMPARE[condition](a, worth(b))]
        assert pairs_found(engine, language, condition, list(pairs), kind="real") == expected

    @pytest.mark.parametrize("condition", CALCULATE)
    def test_integers_are_calculated_with_exactly(self, engine: str, language: str, condition: str) -> None:
        pairs = list(product(EDGES, EDGES))
        expected = [number for number, (a, b) in enumerate(pairs) if CALCULATE[condition](a, b)]
        assert pairs_found(engine, language, condition, list(pairs)) == expected

    def test_nan_is_missing(self, engine: str, language: str) -> None:
        assert pairs_found(engine, language, "a.x <> b.x", [(math.nan, 1.0), (1.0, math.nan), (2.0, 1.0)]) == [2]


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("condition", REMAINDERS)
def test_remainders_of_integers_are_exact(engine: str, condition: str) -> None:
    pairs = list(product(EDGES, EDGES))
    expected = [number for number, (a, b) in enumerate(pairs) if REMAINDERS[condition](a, b)]
    assert pairs_found(engine, "ceql", condition, list(pairs)) == expected


AGGREGATES = {
    "SUM(a[x]) = b[x]": lambda numbers: reduce(lambda total, number: within(total + number), numbers),
    "MIN(a[x]) = b[x]": min,
    "MAX(a[x]) = b[x]": max,
    "AVG(a[x]) = b[x]": lambda numbers: sum(numbers) / len(numbers),
    "FIRST(a[x]) = b[x]": lambda numbers: numbers[0],
    "LAST(a[x]) = b[x]": lambda numbers: numbers[-1],
}
GROUPS = ((2**53, 1), (2**53 + 1, 2**53), (2**60, 2**60 + 1, 5), (MOST,), (MOST, 1), (LEAST, MOST), (MOST, MOST, LEAST))


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("condition", AGGREGATES)
@pytest.mark.parametrize("off", [0, 1])
def test_aggregates_of_events_are_exact(engine: str, condition: str, off: int) -> None:
    """Of the events of a variable, against what they should be worth and against its neighbour."""
    text = f"SELECT STRICT * FROM S WHERE A+ AS a : B AS b FILTER {condition} AND COUNT(a[x]) = b[n]"
    for group in GROUPS:
        worth = within(AGGREGATES[condition](group))
        if isinstance(worth, float) or not LEAST <= worth + off <= MOST:
            continue
        events = [event("A", at, x=x) for at, x in enumerate(group)]
        found = run_engine(engine, text, [*events, event("B", 9, x=worth + off, n=len(group))], "ceql")
        assert len(found) == (off == 0), group


SUMMARIES = {"Sum": sum, "Min": min, "Max": max, "Avg": lambda numbers: sum(numbers) / len(numbers)}


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("joined", ["k=$k", "k=$k and x >= $x"])
@pytest.mark.parametrize("function", SUMMARIES)
def test_summaries_in_rules_are_exact(engine: str, function: str, joined: str) -> None:
    """By a series (joined by a key) and by a scan (joined by more than a key)."""
    text = f"define Q(s: int, t: double)\nfrom B(k=$k and x=$x)\nwhere s = {function}(A({joined}).x within 50 from B)"
    text += f" and t = {function}(A({joined}).x within 50 from B)"
    for group in GROUPS:
        events = [event("A", at, x=x, k=1) for at, x in enumerate(group)]
        found = run_engine(engine, text, [*events, event("B", 9, k=1, x=LEAST)], "tesla")
        worth = SUMMARIES[function](group)
        assert found[0]["event"] == {"s": within(math.trunc(worth)), "t": float(worth)}, group


FIELDS = {
    "eql": "SELECT a.x, b.x FROM A a ; B b",
    "step": 'topology "T"\nexternal A(x: int) < "A" [1.0]\nexternal B(x: int) < "B" [1.0]\n'
    "Q(a.x, b.x): A/a ;[dur < 5] B/b",
    "epn": "pattern Q sequence(A a, B b) context fixed 10 derive p = a.x, q = b.x, r = a.x + b.x",
    "tesla": "define Q(p: int, q: int, r: int)\nfrom B() and each A() within 5 from B\n"
    "where p = A.x and q = B.x and r = A.x + B.x",
}


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("language", FIELDS)
def test_output_fields_keep_integers(engine: str, language: str) -> None:
    pairs = [(2**53 + 1, 1), (2**60 + 1, 2**60), (MOST, LEAST), (MOST, -1), (LEAST, 1)]
    events = []
    for number, (one, other) in enumerate(pairs):
        events += [event("A", 10 * number, x=one), event("B", 10 * number + 1, x=other)]
    found = [list(match["event"].values()) for match in run_engine(engine, FIELDS[language], events, language)]
    assert found == [[a, b, a + b][: len(found[0])] for a, b in pairs]
    assert all(type(value) is int for values in found for value in values)


COMPUTED = {
    "ceql": "SELECT a[x] + 1 AS w, b[x] * 2 AS y WHERE A AS a ; A AS b WITHIN 9 EVENTS",
    "eql": "SELECT a.x + 1 AS w, b.x * 2 AS y FROM A a ; A b",
    "epn": "pattern P sequence(A a, A b) derive w = a.x + 1, y = b.x * 2",
}


@pytest.mark.parametrize("language", COMPUTED)
def test_what_is_calculated_of_integers_is_one_also_among_floats(language: str) -> None:
    program = weft.compile(COMPUTED[language], language=language)
    events = [{"type": "A", "ts": at, "x": x} for at, x in enumerate([1, 2, 2.5])]
    found = [repr(match.event) for match in weft.detect(events, program)]
    assert found == [repr(match.event) for match in weft.detect(events, program, engine="meaning")]
    assert found[0] == "{'w': 2, 'y': 4}"
