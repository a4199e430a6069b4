"""What functions of values are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeGuard

from weft.algebra.functions import Kind, UserFunction
from weft.algebra.predicates import Value as Constant

Value = Constant | Decimal  # events may have decimals, programs do not
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_number(value: object) -> TypeGuard[int | float | Decimal]:
    """Whether it is a number; a boolean is none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def call(function: str | UserFunction, operands: Sequence[Value | None], tick: int) -> Value | None:
    """The value of a function; None when it has none."""
    if isinstance(function, UserFunction):
        return _call_user(function, operands)
    if function == "COALESCE":
        return next((operand for operand in operands if operand is not None), None)
    if function in ("LEAST", "GREATEST"):
        numbers = [operand for operand in operands if is_number(operand)]
        if len(numbers) < len(operands):
            return None
        return min(numbers) if function == "LEAST" else max(numbers)
    (operand,) = operands
    match function:
        case "ABS":
            return max(operand, -operand) if is_number(operand) else None
        case "LOWER":
            return operand.lower() if isinstance(operand, str) else None
        case "UPPER":
            return operand.upper() if isinstance(operand, str) else None
        case "LENGTH":
            return len(operand) if isinstance(operand, str) else None
    return _part_of_date(function.lower(), operand, tick)


def _part_of_date(part: str, ticks: Value | None, tick: int) -> int | None:
    if not is_number(ticks) or not math.isfinite(ticks) or ticks != int(ticks):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=int(ticks) * tick // 10**9)
    except OverflowError:
        return None
    found: int = getattr(moment, part)
    return found


def _call_user(function: UserFunction, operands: Sequence[Value | None]) -> Value | None:
    taken = [_taken(kind, operand) for kind, operand in zip(function.takes, operands, strict=True)]
    if any(operand is None for operand in taken):
        return None
    found: Value | None = function.apply_one(taken)
    return found


def _taken(kind: Kind, value: Value | None) -> Value | None:
    """The value if it is of the kind."""
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if not is_number(value):
        return None
    if kind == "number":
        return float(value)
    return int(value) if math.isfinite(value) and value == int(value) and -(2**63) <= value < 2**63 else None
