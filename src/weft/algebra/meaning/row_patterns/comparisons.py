"""Comparisons of SQL values: numbers of all kinds, texts, times; null compares as unknown."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan
from typing import Any

from weft.algebra.meaning.row_patterns.constants import timestamp
from weft.errors import InputError

Number = int | float | Decimal
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    **{"=": operator.eq, "<>": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}


def compare(function: str, left: Any, right: Any) -> bool | None:
    """The truth of a comparison by `=`, `<>`, `<`, `<=`, `>` or `>=`."""
    if left is None or right is None:
        return None
    one, other = order_key(_alike(left, right)), order_key(_alike(right, left))
    try:
        return _COMPARE[function](one, other)
    except TypeError:
        message = f"{left!r} and {right!r} cannot be compared: they are of different types"
        raise InputError(message) from None


def _alike(value: Any, other: Any) -> Any:
    """A value in the type in which it is compared with another: texts become numbers or times."""
    try:
        if isinstance(value, str) and isinstance(other, Number) and not isinstance(other, bool):
            return Decimal(value.strip())
        if isinstance(value, str) and isinstance(other, date):
            return timestamp(value)
    except (ValueError, ArithmeticError):
        raise InputError(f"{value!r} cannot be compared with {other!r}: it is of another type") from None
    return value


def order_key(value: Any) -> Any:
    """Return a sort key by which equal values are equal: NaN equals itself and is the greatest number."""
    if isinstance(value, float):
        return (1, 0.0) if isnan(value) else (0, value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | Decimal):
        return (0, value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, list | tuple):
        return [order_key(item) for item in value]
    return value


def is_like(text: str, pattern: str, escape: str = "\\", ignores_case: bool = False) -> bool:
    """Whether a text is like a pattern: `%` is any text, `_` one character."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == escape and position + 1 < len(pattern):
            position += 1
            parts.append(re.escape(pattern[position]))
        else:
            parts.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
        position += 1
    flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
    return re.fullmatch("".join(parts), text, flags) is not None
