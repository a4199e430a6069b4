"""Conditions and values over the events in the slots of a candidate, as Python functions made once per query."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.algebra.predicates import (
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Value,
)
from weft.errors import UsageError

Attributes = Mapping[str, Value]  # only those present
Bound = Sequence[Attributes]  # the attributes of the event in each slot, and last the values of the partition's key
Evaluate = Callable[[Bound], Any]
Test = Callable[[Bound], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_NUMBERS = frozenset((int, float))


def value_of(expression: Expression, slots: Mapping[str | None, int]) -> Evaluate:
    """A function that gives the value of an expression, None when it has none."""
    match expression:
        case Literal(value):
            return lambda bound: value
        case Attribute(name, variable):
            slot = slots[variable]
            return lambda bound: bound[slot].get(name)
        case Negative(operand):
            return _arithmetic("-", lambda bound: 0, value_of(operand, slots))
        case Arithmetic(symbol, left, right):
            return _arithmetic(symbol, value_of(left, slots), value_of(right, slots))
    raise UsageError(f"situations cannot read {type(expression).__name__}: ask for engine='meaning'")


def test_of(predicate: Predicate, slots: Mapping[str | None, int]) -> Test:
    """A function that tells whether a predicate holds."""
    match predicate:
        case Always():
            return lambda bound: True
        case Comparison(symbol, left, right):
            return _comparison(_COMPARE[symbol], value_of(left, slots), value_of(right, slots))
        case Like(operand, pattern):
            return _searched(value_of(operand, slots), re.compile(_like_to_regex(pattern), re.DOTALL).fullmatch)
        case Matches(operand, pattern):
            return _searched(value_of(operand, slots), re.compile(pattern).search)
        case In(operand, values):
            equal = [_comparison(operator.eq, value_of(operand, slots), _constant(value)) for value in values]
            return lambda bound: any(test(bound) for test in equal)
        case And(operands):
            every = [test_of(part, slots) for part in operands]
            return lambda bound: all(test(bound) for test in every)
        case Or(operands):
            some = [test_of(part, slots) for part in operands]
            return lambda bound: any(test(bound) for test in some)
        case Not(operand):
            test = test_of(operand, slots)
            return lambda bound: not test(bound)
    raise UsageError(f"situations cannot test {type(predicate).__name__}: ask for engine='meaning'")


def index_key(value: Value) -> tuple[bool, Value]:
    """Equal for values that compare as equal: numbers by value, never a boolean and a number."""
    return isinstance(value, bool), value


def _constant(value: Value) -> Evaluate:
    return lambda bound: value


def _comparison(compare: Callable[[Any, Any], bool], left: Evaluate, right: Evaluate) -> Test:
    def test(bound: Bound) -> bool:
        one, other = left(bound), right(bound)
        if one is None or other is None:
            return False
        kind, other_kind = type(one), type(other)
        if kind is not other_kind and not (kind in _NUMBERS and other_kind in _NUMBERS):
            return False
        return compare(one, other)

    return test


def _searched(read: Evaluate, search: Callable[[str], object]) -> Test:
    def test(bound: Bound) -> bool:
        text = read(bound)
        return isinstance(text, str) and search(text) is not None

    return test


def _arithmetic(symbol: str, left: Evaluate, right: Evaluate) -> Evaluate:
    calculate = _CALCULATE[symbol]

    def evaluate(bound: Bound) -> Value | None:
        one, other = left(bound), right(bound)
        if type(one) not in _NUMBERS or type(other) not in _NUMBERS:
            return None
        try:
            result: int | float = calculate(one, other)
        except (ZeroDivisionError, OverflowError, ValueError):
            return None
        return None if result != result else result

    return evaluate


def _remainder(left: int | float, right: int | float) -> int | float:
    """The remainder with the sign of the left side."""
    if isinstance(left, int) and isinstance(right, int):
        return (abs(left) % abs(right)) * (-1 if left < 0 else 1)
    return math.fmod(left, right)


_CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _remainder,
}


def _like_to_regex(pattern: str) -> str:
    return "".join(".*" if char == "%" else "." if char == "_" else re.escape(char) for char in pattern)
