"""Constants of programs have all the digits that they are written with, in every language and engine."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.harness import event, run_engine

import weft
from weft.algebra import predicates
from weft.algebra.text.program import to_text
from weft.languages.content.lower import compile_filter
from weft.stored import from_plain, to_plain

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# The last is what the float 0.1 is in binary: it stands for 0.1, and is another number than these digits.
BINARY = "0.1000000000000000055511151231257827021181583404541015625"
CONSTANTS = (
    "12345678901234567890.17",
    "12345678901234567890",
    "12345678901234567890.0",
    "-12345678901234567890.17",
    "0.1",
    "0.1000000000000000001",
    "9007199254740993.5",
    "-0.50000000000000000000000000000000001",
    BINARY,
)
VALUES = (
    *map(Decimal, CONSTANTS),
    Decimal("12345678901234567890.18"),
    Decimal("12345678901234567890.16"),
    Decimal("0.1000000000000000002"),
    Decimal("0.09999999999999999999"),
    1.2345678901234567e19,
    0.1,
    0.5,
    -0.5,
    12345678901234567890,
    9007199254740993,
    9007199254740994,
    0,
    7,
)
# How each language asks for an A whose x compares with a constant, followed by a B.
LANGUAGES = {
    "ceql": "SELECT * FROM S WHERE A AS a : B AS b FILTER a[x {operator} {constant}]",
    "eql": "SELECT * FROM A a ; B b WHERE a.x {operator} {constant}",
    "step": 'topology "T"\nexternal A(x: real) < "A" [1.0]\nexternal B(x: int) < "B" [1.0]\n'
    "Q(*): A/a ;[a.x {operator} {constant} && dur < 5] B/b",
    "epn": "pattern Q sequence(A a, B b) where a.x {operator} {constant} context fixed 10",
    "tesla": "define Q()\nfrom B() and each A(x {operator} {constant}) within 5 from B",
    "tesla-first": "define Q()\nfrom A(x {operator} {constant})",
}


def worth(number: Any) -> Any:
    """What a number of the input compares by."""
    return Decimal(repr(number)) if isinstance(number, float) and abs(number) < 2**53 else number


def numbers_found(engine: str, language: str, text: str) -> list[int]:
    """The numbers of the values that a program finds."""
    events = []
    for number, value in enumerate(VALUES):
        events += [event("A", 10 * number, x=value), event("B", 10 * number + 1)]
    return sorted({int(str(match["start"])) // 10 for match in run_engine(engine, text, events, language)})


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("symbol", COMPARE)
def test_constants_compare_by_all_their_digits(engine: str, language: str, symbol: str) -> None:
    written = symbol.replace("<>", "!=") if language == "step" else symbol
    for constant in CONSTANTS:
        text = LANGUAGES[language].format(operator=written, constant=constant)
        expected = [at for at, value in enumerate(VALUES) if COMPARE[symbol](worth(value), Decimal(constant))]
        assert numbers_found(engine, language.partition("-")[0], text) == expected, constant


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_several_constants_of_one_attribute_are_told_apart(engine: str) -> None:
    """Also those of which one is the float's name and the other its binary value."""
    asked = {
        f"x IN {{0.1, {CONSTANTS[0]}}}": {Decimal("0.1"), Decimal(CONSTANTS[0])},
        f"x = 0.1 OR x = {BINARY}": {Decimal("0.1"), Decimal(BINARY)},
        f"x > {CONSTANTS[5]} AND x < 0.10000000000000001": {Decimal("0.1000000000000000002"), Decimal(BINARY)},
        f"x > {BINARY} AND x <= 0.5": {Decimal("0.5")},
    }
    for condition, expected in asked.items():
        text = f"SELECT * FROM S WHERE A AS a : B AS b FILTER a[{condition}]"
        assert {worth(VALUES[at]) for at in numbers_found(engine, "ceql", text)} == expected, condition


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_rules_with_many_constants_find_the_same(engine: str) -> None:
    for symbol in ("=", "<", ">="):
        rules = [f"define Q{at}() from A(x {symbol} {constant})" for at, constant in enumerate(CONSTANTS)]
        found = run_engine(engine, "\n".join(rules), [event("A", at, x=x) for at, x in enumerate(VALUES)], "tesla")
        expected = {
            (f"Q{number}", at)
            for number, constant in enumerate(CONSTANTS)
            for at, value in enumerate(VALUES)
            if COMPARE[symbol](worth(value), Decimal(constant))
        }
        assert {(match["query"], match["start"]) for match in found} == expected, symbol


def test_a_decimal_column_is_found_by_its_value() -> None:
    values = [Decimal("12345678901234567890.17"), Decimal("12345678901234567890.18")]
    columns = {
        "type": ["A", "A"],
        "ts": [0, 1],
        "amount": pa.array(values, pa.decimal128(30, 2)),
    }
    text = "SELECT * FROM S WHERE A AS a FILTER a[amount = 12345678901234567890.17]"
    assert [match.positions for match in weft.detect(pa.table(columns), text)] == [(0,)]
    built = weft.Pattern.begin("a").where(weft.e.amount == values[1])
    assert [match.positions for match in weft.detect(pa.table(columns), built)] == [(1,)]
    assert "Decimal('12345678901234567890.18')" in str(built)


def test_constants_are_printed_and_stored_with_all_digits() -> None:
    for constant in (CONSTANTS[0], CONSTANTS[3], BINARY, "0.00000000000000000000000012345678901234567"):
        condition = compile_filter(f"x = {constant}")
        assert to_text(condition).endswith(f" = {constant}")
        assert compile_filter(to_text(condition)) == condition
        classes = {"predicates.Comparison": predicates.Comparison, "predicates.Literal": predicates.Literal}
        classes["predicates.Attribute"] = predicates.Attribute
        assert from_plain(to_plain(condition), classes) == condition


def test_an_exponent_asks_for_a_float() -> None:
    assert compile_filter("x = 1.00000000000000000001e3") == compile_filter("x = 1e3")
