"""Functions in conditions and derived values: their names, their kinds, and functions of several events in conditions.

The engines know a function of one event by its value when the event comes. What a function of several events is
compared with says the same without it: `abs(a.x - b.x) < 2` is `a.x - b.x < 2 and -(a.x - b.x) < 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.algebra.predicates import (
    MIRRORED,
    And,
    Arithmetic,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    Function,
    Literal,
    Negative,
    Or,
    Predicate,
    variables_of,
)
from weft.languages.conditions import NUMBER, TEXT, Families


class Signature(NamedTuple):
    """A function: its name in the algebra, the kind of its operands and of its value, and how many operands it has."""

    function: Function
    takes: Families
    gives: Families
    least: int = 1
    most: int | None = 1


_DATE_PARTS: tuple[Function, ...] = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
FUNCTIONS: dict[str, Signature] = {
    "abs": Signature("ABS", NUMBER, NUMBER),
    "min": Signature("LEAST", NUMBER, NUMBER, 2, None),
    "max": Signature("GREATEST", NUMBER, NUMBER, 2, None),
    "length": Signature("LENGTH", TEXT, NUMBER),
    "lower": Signature("LOWER", TEXT, TEXT),
    "upper": Signature("UPPER", TEXT, TEXT),
    "coalesce": Signature("COALESCE", None, None, 2, None),
    **{part.lower(): Signature(part, NUMBER, NUMBER) for part in _DATE_PARTS},
}


def unfolded(comparison: Comparison) -> Predicate:
    """The comparison without `abs`, `min` and `max` of several events on one of its sides."""
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if not _is_open(left):
        operator, left, right = MIRRORED[operator], right, left
    if not _is_open(left) or _is_open(right):
        return comparison
    assert isinstance(left, Call)
    values = list(map(_number, left.operands))
    match left.function:
        case "ABS":
            return _greatest((values[0], Negative(values[0])), operator, right)
        case "GREATEST":
            return _greatest(values, operator, right)
    opposites = [Negative(value) for value in values]  # the least is the opposite of the greatest opposite
    return _greatest(opposites, MIRRORED[operator], Negative(right))


def _is_open(value: Expression) -> bool:
    return isinstance(value, Call) and value.function in ("ABS", "LEAST", "GREATEST") and len(variables_of(value)) > 1


def _number(value: Expression) -> Expression:
    """The value if it is a number."""
    return value if isinstance(value, Arithmetic | Negative) else Arithmetic("+", Literal(0), value)


def _greatest(values: Sequence[Expression], operator: ComparisonOperator, right: Expression) -> Predicate:
    """Compare the greatest of some values, which has none if one of them has none."""

    def each(symbol: ComparisonOperator) -> tuple[Comparison, ...]:
        return tuple(Comparison(symbol, value, right) for value in values)

    present = tuple(Comparison("=", value, value) for value in values)
    match operator:
        case "<" | "<=":
            return And(each(operator))
        case ">" | ">=":
            return And((*present, Or(each(operator))))
        case "=":
            return And((*each("<="), Or(each("="))))
    return Or((And(each("<")), And((*present, Or(each(">"))))))
