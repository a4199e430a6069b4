"""Values, comparisons and aggregates as the definition computes them."""

from __future__ import annotations

import math

import pytest

from weft.algebra.meaning.values import ValueScope, compare, evaluate, holds
from weft.algebra.predicates import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Monotone,
    Negative,
    Not,
    Or,
    Predicate,
    RegexMatch,
)

X = Attribute("x")
Y = Attribute("y")


def value(expression: Expression, **attributes: object) -> object:
    return evaluate(expression, ValueScope({None: attributes}))


def true(predicate: Predicate, **attributes: object) -> bool:
    return holds(predicate, ValueScope({None: attributes}))


def over(function: str, *values: object) -> object:
    events = [{} if v is None else {"x": v} for v in values]
    return evaluate(Aggregate(function, Attribute("x", "v")), ValueScope({}, {"v": events}))  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", [None, math.nan, [1], {"a": 1}])
def test_what_is_no_value_is_missing(missing: object) -> None:
    assert value(X, x=missing) is None
    assert value(X) is None


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "<>"])
def test_a_comparison_with_nothing_is_false(operator: str) -> None:
    assert not compare(operator, None, 1)
    assert not compare(operator, 1, None)
    assert not compare(operator, None, None)


@pytest.mark.parametrize(("left", "right"), [(1, "1"), (True, 1), ("true", True), (0, False)])
def test_kinds_never_compare(left: object, right: object) -> None:
    for operator in ("<", "<=", ">", ">=", "=", "<>"):
        assert not compare(operator, left, right)  # type: ignore[arg-type]


def test_numbers_compare_by_value() -> None:
    assert compare("=", 1, 1.0)
    assert compare("<", 1, 1.5)
    assert compare("<", "a", "b")
    assert compare("<>", True, False)


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("/", 7, 2, 3.5),
        ("/", 7, 0, None),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", -7.5, 2, -1.5),
        ("%", 7, 0, None),
        ("+", "a", "b", None),
        ("-", "a", 1, None),
        ("*", True, 2, None),
        ("+", None, 2, None),
        ("-", math.inf, math.inf, None),
    ],
)
def test_arithmetic(operator: str, left: object, right: object, result: object) -> None:
    assert value(Arithmetic(operator, X, Y), x=left, y=right) == result  # type: ignore[arg-type]


def test_negative() -> None:
    assert value(Negative(X), x=3) == -3
    assert value(Negative(X), x="a") is None


def test_there_is_no_third_truth_value() -> None:
    above = Comparison(">", X, Literal(3))
    assert not true(above)
    assert true(Not(above))
    assert true(Not(above), x="text")
    assert not true(And((above, Not(above))))
    assert true(Or((above, Not(above))))


def test_like_takes_the_whole_text() -> None:
    assert true(Like(X, "a%c_"), x="acd")
    assert true(Like(X, "%"), x="")
    assert true(Like(X, "a%"), x="a\nb")
    assert not true(Like(X, "a.c"), x="abc")
    assert not true(Like(X, "a%"), x="ba")
    assert not true(Like(X, "%"), x=1)


def test_matches_searches() -> None:
    assert true(RegexMatch(X, "b+c"), x="abbcd")
    assert not true(RegexMatch(X, "^b"), x="ab")
    assert not true(RegexMatch(X, "1"), x=1)


def test_in_compares_by_kind_and_value() -> None:
    assert true(In(X, (1, 2)), x=2.0)
    assert not true(In(X, (1, 2)), x=True)
    assert not true(In(X, (1, 2)))
    assert true(In(X, ("a", True)), x=True)


def test_aggregates() -> None:
    assert over("COUNT", 1, None, "a") == 2
    assert over("COUNT") == 0
    assert over("SUM", 1, None, "a", 2.5) == 3.5
    assert over("AVG", 1, None, 2) == 1.5
    assert over("MIN", 3, None, 2) == 2
    assert over("MAX", "a", "b") == "b"
    assert over("FIRST", 3, 1) == 3
    assert over("LAST", 3, None) is None
    for function in ("SUM", "AVG", "MIN", "MAX"):
        assert over(function, None, None) is None


@pytest.mark.parametrize(
    ("values", "rises"),
    [([1, 2, 3], True), ([1, 1], False), ([2, 1], False), ([1], True), ([None], False), ([1, None], False)],
)
def test_increasing_is_strict(values: list[object], rises: bool) -> None:
    events = [{"x": v} for v in values]
    assert holds(Monotone("INCREASING", Attribute("x", "v")), ValueScope({}, {"v": events})) is rises
