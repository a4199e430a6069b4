"""Scalar functions and operators over columns, with Spark's types and SQL's nulls."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InputError
from weft.runtime.operators.row_patterns import element_functions
from weft.runtime.operators.row_patterns.ordering import compare_exactly, needs_exactness
from weft.runtime.operators.row_patterns.sql_types import Value, as_decimal, brought_together, cast, is_text

Scalar = Callable[..., Value]
_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def is_known(function: str) -> bool:
    """Whether weft itself implements a function."""
    return function in _FUNCTIONS or function in element_functions.FUNCTIONS


def call(function: str, arguments: list[Value]) -> Value:
    """Call a function; operands of other types are brought together first."""
    try:
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*arguments)
        return element_functions.call(function, arguments)
    except pa.ArrowInvalid as error:
        text = "division by zero" if "divide by zero" in str(error) else str(error)
        if text == "overflow":
            text = "the result is beyond 64 bits: cast a value to DOUBLE or DECIMAL"
        raise InputError(f"{function}: {text}") from None
    except (pa.ArrowNotImplementedError, TypeError) as error:
        kinds = ", ".join(str(argument.type) for argument in arguments)
        raise InputError(f"the function {function} does not take ({kinds}): {error}") from None


def _compared(function: str) -> Scalar:
    kernel = _COMPARISONS[function]

    def compare(left: Value, right: Value) -> Value:
        if needs_exactness(left, right):
            return compare_exactly(function, left, right)
        left, right = brought_together(left, right)
        if pa.types.is_null(left.type):
            return pa.scalar(None, pa.bool_())
        if pa.types.is_nested(left.type):
            return element_functions.compared(function, left, right)
        return kernel(left, right)

    return compare


def _distinct(left: Value, right: Value) -> Value:
    differ = _compared("<>")(left, right)
    if pa.types.is_null(left.type) and pa.types.is_null(right.type):
        return pa.scalar(False)
    return pc.coalesce(differ, pc.not_equal(pc.is_null(left), pc.is_null(right)))


def _arithmetic(function: str) -> Scalar:
    checked = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[function]

    def calculate(left: Value, right: Value) -> Value:
        if pa.types.is_temporal(left.type) or pa.types.is_temporal(right.type):
            return _of_times(function, left, right)
        left, right = _numbers(left, right)
        return checked(left, right)

    return calculate


def _numbers(left: Value, right: Value) -> tuple[Value, Value]:
    """Convert two numbers to one kind; decimals keep their scales."""
    left, right = (cast(value, pa.float64()) if is_text(value.type) else value for value in (left, right))
    decimals = [pa.types.is_decimal(value.type) for value in (left, right)]
    others = [pa.types.is_floating(value.type) or pa.types.is_null(value.type) for value in (left, right)]
    if any(decimals) and not any(others):
        return as_decimal(left), as_decimal(right)
    return brought_together(left, right)


def _of_times(function: str, left: Value, right: Value) -> Value:
    """Add or subtract times and intervals: dates move by days, times by intervals."""
    for one, other in ((left, right), (right, left)):
        if pa.types.is_date(one.type) and pa.types.is_integer(other.type):
            days = pc.add_checked if function == "+" else pc.subtract_checked
            return cast(days(one.cast(pa.int32()), other.cast(pa.int32())), pa.int32()).cast(pa.date32())
        if pa.types.is_date(one.type) and pa.types.is_duration(other.type):
            moved = one.cast(pa.timestamp("us"))
            return pc.add(moved, other) if function == "+" else pc.subtract(moved, other)
        if pa.types.is_duration(one.type) and function == "*":
            return pc.multiply_checked(one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)
    if pa.types.is_timestamp(left.type) and pa.types.is_duration(right.type) and left.type.unit != "us":
        left = left.cast(pa.timestamp("us", left.type.tz))
    if function == "-" and not pa.types.is_duration(right.type):
        left, right = brought_together(left, right)
        if pa.types.is_date(left.type):
            left, right = left.cast(pa.timestamp("us")), right.cast(pa.timestamp("us"))
        return pc.subtract(left, right).cast(pa.duration("us"))
    return pc.add(left, right) if function == "+" else pc.subtract(left, right)


def _divided(left: Value, right: Value) -> Value:
    left, right = _numbers(left, right)
    if pa.types.is_decimal(left.type) and pa.types.is_decimal(right.type):
        return element_functions.divided(left, right)
    left, right = cast(left, pa.float64()), cast(right, pa.float64())
    _refuse_zero(right)
    return pc.divide(left, right)


def _refuse_zero(divisor: Value) -> None:
    """Raise an InputError for a zero divisor, as in Spark's ANSI mode; nulls are allowed."""
    zeros = pc.equal(divisor, pa.scalar(0).cast(divisor.type))
    if (zeros.as_py() if isinstance(zeros, pa.Scalar) else pc.any(zeros).as_py()) is True:
        raise InputError("division by zero: use NULLIF(divisor, 0), or try_divide")


def _remainder(left: Value, right: Value) -> Value:
    left, right = brought_together(left, right)
    if pa.types.is_null(left.type):
        return pa.scalar(None, pa.int32())
    if pa.types.is_decimal(left.type):
        return element_functions.call("%", [left, right])
    _refuse_zero(right)
    whole = pc.divide(left, right)
    if pa.types.is_floating(left.type):
        whole = pc.trunc(whole)
    return pc.subtract(left, pc.multiply(whole, right)).cast(left.type)


def _joined(*arguments: Value) -> Value:
    texts = [cast(argument, pa.string()) for argument in arguments]
    if all(isinstance(text, pa.Scalar) for text in texts):
        parts = [text.as_py() for text in texts]
        return pa.scalar(None if None in parts else "".join(parts), pa.string())
    return pc.binary_join_element_wise(*texts, pa.scalar(""))


def _folded(kernel: Callable[[Value, Value], Value]) -> Scalar:
    def fold(first: Value, *others: Value) -> Value:
        found = cast(first, pa.bool_())
        for other in others:
            found = kernel(found, cast(other, pa.bool_()))
        return found

    return fold


def _in(value: Value, *items: Value) -> Value:
    equal = _compared("=")
    found: Value = pa.scalar(False)
    for item in items:
        found = pc.or_kleene(found, equal(value, item))
    return found


def _coalesce(*arguments: Value) -> Value:
    return pc.coalesce(*alike(arguments))


def alike(arguments: tuple[Value, ...] | list[Value]) -> list[Value]:
    """Convert arguments to one type."""
    found = list(arguments)
    for k in range(1, len(found)):
        found[k], found[0] = brought_together(found[k], found[0])
    return [cast(value, found[0].type) for value in found]


def _null_if(left: Value, right: Value) -> Value:
    equal = _compared("=")(left, right)
    return pc.if_else(pc.coalesce(equal, pa.scalar(False)), pa.scalar(None, left.type), left)


def _if(condition: Value, then: Value, otherwise: Value) -> Value:
    then, otherwise = brought_together(then, otherwise)
    return pc.if_else(pc.coalesce(condition, pa.scalar(False)), then, otherwise)


def _extreme(kernel: Callable[..., Value]) -> Scalar:
    return lambda *arguments: kernel(*alike(arguments), skip_nulls=True)


def _absolute(value: Value) -> Value:
    return pc.abs_checked(value)


def _negated(value: Value) -> Value:
    if pa.types.is_duration(value.type):
        return pc.negate_checked(value.cast(pa.int64())).cast(value.type)
    return pc.negate_checked(value)


def _whole(kernel: Callable[[Value], Value]) -> Scalar:
    def rounded(value: Value) -> Value:
        if pa.types.is_integer(value.type):
            return value.cast(pa.int64())
        if pa.types.is_decimal(value.type):
            return kernel(value)
        return cast(kernel(value), pa.int64())

    return rounded


def _real(kernel: Callable[..., Value]) -> Scalar:
    return lambda *values: kernel(*(cast(value, pa.float64()) for value in values))


def _text(kernel: Callable[[Value], Value]) -> Scalar:
    return lambda value: kernel(cast(value, pa.string()))


def _part_of_time(kernel: Callable[[Value], Value]) -> Scalar:
    return lambda value: kernel(cast(value, pa.timestamp("us")) if is_text(value.type) else value).cast(pa.int32())


def _rounded(value: Value, digits: Value | None = None) -> Value:
    places = 0 if digits is None else int(digits.as_py())
    if pa.types.is_integer(value.type) and places >= 0:
        return value
    if pa.types.is_decimal(value.type):
        return element_functions.call("round", [value, pa.scalar(places)])
    if isinstance(value, pa.Scalar):
        return _rounded(pa.array([value.as_py()], value.type), digits)[0]
    exact = [None if item is None else _half_up(item, places) for item in value.to_pylist()]
    return pa.array(exact, value.type)


def _half_up(item: Any, places: int) -> Any:
    if isinstance(item, float) and not np.isfinite(item):
        return item
    return type(item)(Decimal(str(item)).quantize(Decimal(1).scaleb(-places), "ROUND_HALF_UP"))


_FUNCTIONS: dict[str, Scalar] = {
    **{name: _compared(name) for name in _COMPARISONS},
    **{name: _arithmetic(name) for name in "+-*"},
    "/": _divided,
    "%": _remainder,
    "mod": _remainder,
    "||": _joined,
    "concat": _joined,
    "negate": _negated,
    "is distinct from": _distinct,
    "and": _folded(pc.and_kleene),
    "or": _folded(pc.or_kleene),
    "not": lambda value: pc.invert(cast(value, pa.bool_())),
    "is null": lambda value: pc.is_null(value),
    "is true": lambda value: pc.coalesce(cast(value, pa.bool_()), pa.scalar(False)),
    "is false": lambda value: pc.coalesce(pc.invert(cast(value, pa.bool_())), pa.scalar(False)),
    "in": _in,
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nvl": _coalesce,
    "nullif": _null_if,
    "if": _if,
    "iff": _if,
    "greatest": _extreme(pc.max_element_wise),
    "least": _extreme(pc.min_element_wise),
    "abs": _absolute,
    "sign": _real(pc.sign),
    "floor": _whole(pc.floor),
    "ceil": _whole(pc.ceil),
    "ceiling": _whole(pc.ceil),
    "round": _rounded,
    "sqrt": _real(pc.sqrt),
    "exp": _real(pc.exp),
    "ln": _real(pc.ln),
    "log10": _real(pc.log10),
    "log2": _real(pc.log2),
    "power": _real(pc.power),
    "pow": _real(pc.power),
    "upper": _text(pc.utf8_upper),
    "ucase": _text(pc.utf8_upper),
    "lower": _text(pc.utf8_lower),
    "lcase": _text(pc.utf8_lower),
    "trim": _text(pc.utf8_trim_whitespace),
    "ltrim": _text(pc.utf8_ltrim_whitespace),
    "rtrim": _text(pc.utf8_rtrim_whitespace),
    "reverse": _text(pc.utf8_reverse),
    **dict.fromkeys(
        ("length", "len", "char_length", "character_length"),
        lambda value: pc.utf8_length(cast(value, pa.string())).cast(pa.int32()),
    ),
    **{
        name: _part_of_time(getattr(pc, name))
        for name in ("year", "month", "day", "hour", "minute", "second", "quarter")
    },
}
