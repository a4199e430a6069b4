"""Values of expressions and predicates, by structural recursion over plain dictionaries.

`None` means "no value": a missing attribute, or arithmetic that is undefined. Every comparison
with it is false; there is no third truth value, so `Not` turns that into true.

Integers of 64 bits are exact; whatever is beyond them, and every quotient, is the nearest float.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from weft.algebra.meaning.functions import Value as Value
from weft.algebra.meaning.functions import call, is_number
from weft.algebra.predicates import (
    Aggregate,
    Always,
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Monotone,
    Negative,
    Not,
    Or,
    Predicate,
    RegexMatch,
)
from weft.regexes import finder

EventDict = Mapping[str, object]
LARGE = 2**53  # from here on floats are further apart than integers

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}


@dataclass(frozen=True)
class ValueScope:
    """The events an expression can read.

    `chosen[None]` is the current event; `chosen[x]` the one event chosen of those bound to x;
    `bound[x]` all events bound to x, in stream order.
    """

    chosen: Mapping[str | None, EventDict]
    bound: Mapping[str, Sequence[EventDict]] = field(default_factory=dict)


def family(value: Value) -> str:
    """The kind of a value up to comparability."""
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def attribute_of(event: EventDict, name: str) -> Value | None:
    """The event's attribute; None when it is absent, null, NaN, or nothing that has a kind."""
    value = event.get(name)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, int | float | str | bool) else None


def shown_of(event: EventDict, name: str) -> Value | None:
    """The event's attribute as it is shown: a decimal has the digits that it came with."""
    value = event.get(name)
    return value if isinstance(value, Decimal) and not value.is_nan() else attribute_of(event, name)


def _decimal(value: Decimal) -> int | float | Decimal | None:
    """Convert a decimal to the integer or float of equal value if there is one, else return the decimal."""
    if value.is_nan():
        return None
    if value.is_finite() and value == int(value):
        return int(value)
    near = float(value)
    return near if not value.is_finite() or worth(near) == value else value


def worth(number: int | float | Decimal) -> int | Decimal:
    """Return the value a number is compared by: the shortest decimal that denotes a float, or the exact value of a
    large one.
    """
    if not isinstance(number, float):
        return number
    return Decimal(repr(number)) if abs(number) < LARGE else Decimal(number)


def number_of(event: EventDict, name: str) -> int | float | Decimal | None:
    """The event's attribute if it is a number."""
    value = attribute_of(event, name)
    return value if is_number(value) else None


def evaluate(expression: Expression, scope: ValueScope) -> Value | None:
    """The value of an expression."""
    match expression:
        case Literal(value):
            return value
        case Attribute(name, variable):
            return attribute_of(scope.chosen[variable], name)
        case Negative(operand):
            return _arithmetic("-", 0, evaluate(operand, scope))
        case Arithmetic(symbol, left, right):
            return _arithmetic(symbol, evaluate(left, scope), evaluate(right, scope))
        case Call(function, operands, tick):
            called = call(function, [evaluate(operand, scope) for operand in operands], tick)
            return None if called is None else as_held(called)
        case Aggregate(function, Attribute(name, variable)):
            assert variable is not None
            if name == "*":
                return len(scope.bound[variable])
            return _aggregate(function, [attribute_of(event, name) for event in scope.bound[variable]])
    raise TypeError(f"not an expression: {expression!r}")


def shown(expression: Expression, scope: ValueScope) -> Value | None:
    """The value of an expression as it is shown: the value of one event has the digits that it came with."""
    match expression:
        case Attribute(name, variable) if variable is not None:
            return shown_of(scope.chosen[variable], name)
        case Aggregate("FIRST" | "LAST" | "MIN" | "MAX", Attribute(name, variable)) if variable is not None:
            value = evaluate(expression, scope)
            events = scope.bound[variable][:: -1 if expression.function == "LAST" else 1]
            same = [event for event in events if compare("=", attribute_of(event, name), value)]
            return shown_of(same[0], name) if same else value
    return evaluate(expression, scope)


def holds(predicate: Predicate, scope: ValueScope) -> bool:
    """Whether a predicate is true."""
    match predicate:
        case Always():
            return True
        case Comparison(symbol, left, right):
            return compare(symbol, evaluate(left, scope), evaluate(right, scope))
        case Like(operand, pattern):
            text = evaluate(operand, scope)
            return isinstance(text, str) and re.fullmatch(_like_to_regex(pattern), text, re.DOTALL) is not None
        case RegexMatch(operand, pattern):
            text = evaluate(operand, scope)
            return isinstance(text, str) and finder(pattern)(text)
        case In(operand, values):
            return any(compare("=", evaluate(operand, scope), value) for value in values)
        case IsNull(operand):
            return evaluate(operand, scope) is None
        case And(operands):
            return all(holds(operand, scope) for operand in operands)
        case Or(operands):
            return any(holds(operand, scope) for operand in operands)
        case Not(operand):
            return not holds(operand, scope)
        case Monotone(direction, Attribute(name, variable)):
            assert variable is not None
            along = [attribute_of(event, name) for event in scope.bound[variable]]
            symbol = "<" if direction == "INCREASING" else ">"
            return None not in along and all(compare(symbol, a, b) for a, b in pairwise(along))
    raise TypeError(f"not a predicate: {predicate!r}")


def compare(symbol: str, left: Value | None, right: Value | None) -> bool:
    """`left symbol right`: false when a side is missing or the two are of different kinds."""
    if left is None or right is None or family(left) != family(right):
        return False
    if is_number(left) and is_number(right):
        return _COMPARE[symbol](worth(left), worth(right))
    return _COMPARE[symbol](left, right)


def _arithmetic(symbol: str, left: Value | None, right: Value | None) -> Value | None:
    if not is_number(left) or not is_number(right):
        return None
    try:
        return as_held(_calculate(symbol, calculable(left), calculable(right)))
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def calculable(number: int | float | Decimal) -> int | float:
    """Arithmetic takes integers of up to 64 bits as they are, and what is longer or a decimal as the nearest float."""
    held = as_held(float(number) if isinstance(number, Decimal) else number)
    assert isinstance(held, int | float)
    return held


def _calculate(symbol: str, left: int | float, right: int | float) -> int | float:
    match symbol:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case "%" if isinstance(left, int) and isinstance(right, int):
            return (abs(left) % abs(right)) * (-1 if left < 0 else 1)
        case "%":
            return math.fmod(left, right)
    raise ValueError(f"not an arithmetic operator: {symbol}")


def _aggregate(function: str, values: Sequence[Value | None]) -> Value | None:
    """The aggregate of the values of a variable's events; None when it is undefined."""
    numbers = [v for v in values if is_number(v)]
    texts = [v for v in values if isinstance(v, str)]
    match function:
        case "COUNT":
            return len([v for v in values if v is not None])
        case "FIRST":
            return values[0] if values else None
        case "LAST":
            return values[-1] if values else None
        case "MIN":
            return min(numbers, key=worth) if numbers else min(texts, default=None)
        case "MAX":
            return max(numbers, key=worth) if numbers else max(texts, default=None)
        case "SUM":
            return _sum(list(map(calculable, numbers))) if numbers else None
        case "AVG":
            return _arithmetic("/", _sum(list(map(calculable, numbers))), len(numbers)) if numbers else None
    raise ValueError(f"not an aggregate function: {function}")


def _sum(numbers: Sequence[int | float]) -> Value | None:
    # Not the built-in: that one corrects rounding errors, and the sum is defined as one addition after the other.
    total: Value | None = 0
    for number in numbers:
        total = _arithmetic("+", total, number)
    return total


def as_held(value: Value) -> Value | None:
    """A result as it can be held: an integer of more than 64 bits as the nearest float, NaN as no value."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None if isinstance(value, float) and math.isnan(value) else value


def _like_to_regex(pattern: str) -> str:
    return "".join(".*" if char == "%" else "." if char == "_" else re.escape(char) for char in pattern)
