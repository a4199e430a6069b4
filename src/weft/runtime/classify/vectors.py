"""Evaluate expressions and predicates over all events of a batch at once.

This is for operands without a cheaper form: arithmetic, functions and comparisons between attributes. A value is
undefined where an attribute is missing or arithmetic fails, and a comparison with it is false. Numbers are exact: where
64 bits or the precision of floats are not enough, Python's integers are used, and a result that does not fit into 64
bits is the nearest float.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.functions import UserFunction
from weft.algebra.numbers import EXACT, Number, worth
from weft.algebra.predicates import (
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Predicate,
    RegexMatch,
    Value,
)
from weft.runtime.classify.functions import Mask, Numbers, Vector, call, present, text_test, text_truths, to_column
from weft.runtime.classify.user_functions import call_user
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.exact import digits_at, nearest, unnamed_rows, whole_numbers

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_COMPARE_TEXTS = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "=": pc.equal,
    "<>": pc.not_equal,
}
_WORTH = np.frompyfunc(worth, 1, 1)


def holds(predicate: Predicate, batch: EventBatch) -> Mask:
    """Return where a comparison or membership is true."""
    if isinstance(predicate, Comparison):
        truth = compare(predicate.operator, evaluate(predicate.left, batch), evaluate(predicate.right, batch))
    elif isinstance(predicate, In):
        operand = evaluate(predicate.operand, batch)
        truth = np.zeros((), bool)
        for value in predicate.values:
            truth = truth | compare("=", operand, _literal(value))
    elif isinstance(predicate, IsNull):
        truth = ~present(evaluate(predicate.operand, batch))
    elif isinstance(predicate, Like | RegexMatch):
        truth = text_truths(evaluate(predicate.operand, batch).texts, text_test(predicate))
    else:
        raise TypeError(f"not a predicate over the event at hand: {predicate!r}")
    return np.broadcast_to(truth, len(batch))


def constant_of(expression: Expression) -> tuple[bool, Value | None]:
    """Return whether an expression reads no attribute, and then its value (None: undefined)."""
    if any(isinstance(node, Attribute) for node in expression.walk()):
        return False, None
    if isinstance(expression, Literal):
        return True, expression.value
    none = np.empty(0, np.int64)
    found = evaluate(expression, EventBatch(pa.nulls(0), none, none, none))
    if found.texts is not None and found.texts.is_valid:
        return True, found.texts.as_py()
    if found.booleans is not None and found.booleans[1]:
        return True, bool(found.booleans[0])
    if found.numbers is None or not found.numbers.valid:
        return True, None
    return True, found.numbers.values.item()


def shown_column(expression: Expression, batch: EventBatch) -> Column:
    """Evaluate an expression for output: a result of integers is an integer, also among floats."""
    return to_column(evaluate(expression, batch, attribute_by_kind), len(batch))


def evaluate(expression: Expression, batch: EventBatch, read: Callable[[Column], Vector] | None = None) -> Vector:
    """Evaluate an expression for the events of a batch; `read` returns those of an attribute.

    A result of integers is exact, also among floats.
    """
    exactly = read or attribute_by_kind
    match expression:
        case Literal(value):
            return _literal(value)
        case Attribute(name, None):
            return (read or attribute)(batch.columns.get(name, Column()))
        case Negative(operand):
            return arithmetic("-", _literal(0), evaluate(operand, batch, exactly))
        case Arithmetic(symbol, left, right):
            return arithmetic(symbol, evaluate(left, batch, exactly), evaluate(right, batch, exactly))
        case Call(function, operands, tick):
            values = [evaluate(operand, batch, exactly) for operand in operands]
            return call_user(function, values) if isinstance(function, UserFunction) else call(function, values, tick)
    raise TypeError(f"not an expression over the event at hand: {expression!r}")


def _literal(value: Value) -> Vector:
    true = np.ones((), bool)
    if isinstance(value, bool):
        return Vector(booleans=(np.array(value), true))
    if isinstance(value, str):
        return Vector(texts=pa.scalar(value, pa.string()))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return Vector(numbers=Numbers(np.array(value, object), true))
    return Vector(numbers=Numbers(np.array(value), true))


def attribute(column: Column) -> Vector:
    """Return the values of an attribute."""
    numbers = booleans = texts = None
    if column.numbers is not None:
        array = column.numbers
        blank = pa.scalar(0, array.type)
        values = (array.fill_null(blank) if array.null_count else array).to_numpy(zero_copy_only=False)
        if len(rows := unnamed_rows(column)):
            values = values.astype(object)
            values[rows] = np.array([*digits_at(column, rows), None], object)[:-1]
        numbers = Numbers(values, array.is_valid().to_numpy(zero_copy_only=False))
    if column.texts is not None:
        texts = column.texts.cast(pa.string()) if pa.types.is_dictionary(column.texts.type) else column.texts
    if column.booleans is not None:
        flags = column.booleans
        booleans = (
            flags.fill_null(False).to_numpy(zero_copy_only=False),
            flags.is_valid().to_numpy(zero_copy_only=False),
        )
    return Vector(numbers, texts, booleans)


def attribute_by_kind(column: Column) -> Vector:
    """Return the values of an attribute, with integers among floats kept as integers."""
    vector = attribute(column)
    if vector.numbers is None or column.exact is None:
        return vector
    is_whole, wholes = whole_numbers(column)
    values = vector.numbers.objects()
    values[is_whole] = wholes[is_whole].astype(object)
    return replace(vector, numbers=Numbers(values, vector.numbers.valid))


def compare(symbol: str, left: Vector, right: Vector) -> Mask:
    """Return where the comparison is true; values of different kinds never compare."""
    truth: Mask = np.zeros((), bool)
    if left.numbers is not None and right.numbers is not None:
        truth = truth | _compare_numbers(symbol, left.numbers, right.numbers)
    if left.texts is not None and right.texts is not None:
        found = _COMPARE_TEXTS[symbol](left.texts, right.texts)
        if isinstance(found, pa.Scalar):
            truth = truth | np.array(bool(found.as_py()))
        else:
            truth = truth | found.fill_null(False).to_numpy(zero_copy_only=False)
    if left.booleans is not None and right.booleans is not None:
        truth = truth | (COMPARE[symbol](left.booleans[0], right.booleans[0]) & left.booleans[1] & right.booleans[1])
    return truth


def _compare_numbers(symbol: str, left: Numbers, right: Numbers) -> Mask:
    valid = left.valid & right.valid
    a, b = left.values, right.values
    mixed = left.whole != right.whole
    if a.dtype == object or b.dtype == object or (mixed and (left if left.whole else right).bound() > EXACT):
        a, b = left.objects(), right.objects()
        if any(isinstance(value, Decimal) for side in (a, b) for value in side.flat):
            a, b = np.asarray(_WORTH(a), object), np.asarray(_WORTH(b), object)
    return np.asarray(COMPARE[symbol](a, b), bool) & valid


def arithmetic(symbol: str, left: Vector, right: Vector) -> Vector:
    """Return the values of `left symbol right`; undefined where a side is, or the operation."""
    a, b = left.numbers, right.numbers
    if a is None or b is None:
        return Vector()
    valid = a.valid & b.valid
    whole = a.whole and b.whole
    if a.values.dtype == object or b.values.dtype == object or (whole and not _fits(symbol, a, b)):
        return Vector(_with_objects(symbol, a, b, valid))
    x, y = a.values, b.values
    with np.errstate(all="ignore"):
        match symbol:
            case "+":
                values = x + y
            case "-":
                values = x - y
            case "*":
                values = x * y
            case "/":
                valid = valid & (y != 0)
                values = np.divide(x, y, where=y != 0, out=np.zeros(np.broadcast(x, y).shape))
            case _:
                valid = valid & (y != 0)
                values = np.fmod(x, np.where(y != 0, y, np.ones((), y.dtype)))
    if values.dtype != np.int64:
        valid = valid & ~np.isnan(values)
    return Vector(Numbers(np.asarray(values), valid))


def _fits(symbol: str, a: Numbers, b: Numbers) -> bool:
    """Whether integers can be calculated with in 64 bits (for division, as exact floats)."""
    if symbol == "/":
        return a.bound() <= EXACT and b.bound() <= EXACT
    bound = a.bound() * b.bound() if symbol == "*" else a.bound() + b.bound()
    return bound < 2**63


def _with_objects(symbol: str, a: Numbers, b: Numbers, valid: Mask) -> Numbers:
    with np.errstate(all="ignore"):
        results = np.frompyfunc(lambda x, y: calculate(symbol, x, y), 2, 1)(a.objects(), b.objects())
    values = np.asarray(results, object)
    undefined = np.asarray(np.frompyfunc(lambda value: value is None, 1, 1)(values), bool)
    return Numbers(np.where(undefined, 0, values), valid & ~undefined)


def calculate(symbol: str, x: Number, y: Number) -> int | float | None:
    """Calculate with two numbers; a result that is no 64-bit integer is the nearest float, or None if undefined."""
    x, y = held(x), held(y)
    try:
        match symbol:
            case "+":
                result = x + y
            case "-":
                result = x - y
            case "*":
                result = x * y
            case "/":
                result = x / y
            case _ if isinstance(x, int) and isinstance(y, int):
                result = abs(x) % abs(y) * (-1 if x < 0 else 1)
            case _:
                result = math.fmod(x, y)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return None if result != result else held(result)


def held(number: Number) -> int | float:
    """Convert a number to the form of operands and results."""
    if isinstance(number, float) or (isinstance(number, int) and -(2**63) <= number < 2**63):
        return number
    return nearest(number)
