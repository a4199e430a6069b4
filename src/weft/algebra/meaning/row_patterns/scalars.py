"""Operators and scalar functions of SQL over Python values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from weft.algebra.meaning.row_patterns.comparisons import compare, is_like, order_key
from weft.algebra.meaning.row_patterns.constants import Months, text_of, timestamp
from weft.errors import InputError


def call(function: str, values: Sequence[Any]) -> Any:
    """The value of an operator or function; most give null as soon as an argument is null."""
    special = _SPECIAL.get(function)
    if special is not None:
        return special(*values)
    plain = _PLAIN.get(function)
    if plain is None:
        hint = "run it on Spark, or install weft[sql], where DuckDB evaluates other functions"
        raise InputError(f"there is no function {function!r} among weft's own; {hint}")
    if any(value is None for value in values):
        return None
    try:
        found = plain(*values)
        _require_64_bits(function, found)
        return found
    except InputError:
        raise
    except (TypeError, ValueError):
        shown = ", ".join(map(repr, values))
        raise InputError(f"{function!r} cannot be applied to ({shown})") from None


def _require_64_bits(function: str, value: Any) -> None:
    """Refuse an integer that no SQL integer can hold."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{function}: the result is beyond 64 bits: cast a value to DOUBLE or DECIMAL")


# ---------------------------------------------------------------- truth


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _in(value: Any, *items: Any) -> bool | None:
    return _or(*(compare("=", value, item) for item in items))


def _is_distinct(left: Any, right: Any) -> bool:
    return (left is None) != (right is None) if left is None or right is None else compare("=", left, right) is not True


# ---------------------------------------------------------------- arithmetic


def _numbers(left: Any, right: Any) -> tuple[Any, Any]:
    """Two numbers of one kind: a decimal beside a float is one, too; texts are numbers."""
    left, right = (float(value) if isinstance(value, str) else value for value in (left, right))
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    return left, right


def _add(left: Any, right: Any) -> Any:
    if isinstance(right, date) and not isinstance(left, date):
        left, right = right, left
    if isinstance(left, date):
        return _moved(left, right)
    if isinstance(left, Months):
        return Months(left.count + right.count)
    one, other = _numbers(left, right)
    return one + other


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(left, date) and isinstance(right, date):
        return order_key(left) - order_key(right)
    if isinstance(left, date):
        return _moved(left, _negate(right))
    if isinstance(left, Months):
        return Months(left.count - right.count)
    one, other = _numbers(left, right)
    return one - other


def _moved(time: date, by: Any) -> date:
    if isinstance(by, Months):
        month = time.year * 12 + time.month - 1 + by.count
        year, month = divmod(month, 12)
        last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        return time.replace(year=year, month=month + 1, day=min(time.day, last))
    if isinstance(by, int):
        return time + timedelta(days=by)
    if isinstance(by, timedelta) and not isinstance(time, datetime):
        return timestamp(time) + by
    return time + by  # type: ignore[no-any-return]


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, Months | timedelta) or isinstance(right, Months | timedelta):
        interval, factor = (left, right) if isinstance(left, Months | timedelta) else (right, left)
        return Months(int(interval.count * factor)) if isinstance(interval, Months) else interval * float(factor)
    one, other = _numbers(left, right)
    with localcontext(prec=38):
        return one * other


def _divide(left: Any, right: Any) -> Any:
    _refuse_zero(right)
    if isinstance(left, timedelta):
        return left / float(right)
    one, other = _numbers(left, right)
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        with localcontext(prec=38):
            return Decimal(one) / Decimal(other)
    return float(one) / float(other)


def _modulo(left: Any, right: Any) -> Any:
    _refuse_zero(right)
    one, other = _numbers(left, right)
    if isinstance(one, float) or isinstance(other, float):
        return math.fmod(one, other)
    found = abs(one) % abs(other)
    return -found if one < 0 else found


def _whole_quotient(left: Any, right: Any) -> int:
    _refuse_zero(right)
    return int(Decimal(left) / Decimal(right))


def _refuse_zero(value: Any) -> None:
    if value == 0:
        raise InputError("division by zero; write x / nullif(y, 0) for null instead")


def _negate(value: Any) -> Any:
    return Months(-value.count) if isinstance(value, Months) else -value


def _round(value: Any, digits: int = 0) -> Any:
    if isinstance(value, int):
        return value
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    with localcontext(prec=60):
        found = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return found if isinstance(value, Decimal) else float(found)


# ---------------------------------------------------------------- texts, lists, times


def _joined(left: Any, right: Any) -> Any:
    if isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    return text_of(left) + text_of(right)


def _concat_ws(separator: str | None, *values: Any) -> str | None:
    if separator is None:
        return None
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return separator.join(text_of(item) for item in flat if item is not None)


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else max(0, len(text) + start) if start < 0 else 0
    return text[begin:] if length is None else text[begin : begin + max(0, length)]


def _array_join(items: list[Any], separator: str, missing: str | None = None) -> str:
    shown = [missing if item is None else text_of(item) for item in items]
    return separator.join(item for item in shown if item is not None)


def _element(value: Any, index: Any) -> Any:
    """An element of a map by its key, of a list by its number from 1 on (negative: from the end)."""
    if isinstance(value, dict):
        return value.get(index)
    if not index or abs(index) > len(value):
        return None
    return value[index - 1 if index > 0 else index]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def found(*values: Any) -> Any:
        present = [value for value in values if value is not None]
        return choose(present, key=order_key) if present else None

    return found


def _part(name: str) -> Callable[[Any], int]:
    return lambda value: int(getattr(timestamp(value), name))


def _padded(text: str, length: int, fill: str = " ", left: bool = True) -> str:
    missing = max(0, length - len(text))
    filling = (fill * missing)[:missing] if fill else ""
    return (filling + text if left else text + filling)[:length]


_SPECIAL: dict[str, Callable[..., Any]] = {
    "and": _and,
    "or": _or,
    "not": lambda value: None if value is None else not value,
    "is null": lambda value: value is None,
    "is true": lambda value: value is True,
    "is false": lambda value: value is False,
    "is distinct from": _is_distinct,
    "in": _in,
    **{name: lambda left, right, name=name: compare(name, left, right) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "array": lambda *values: list(values),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": lambda left, right: None if compare("=", left, right) else left,
    "if": lambda condition, one, other=None: one if condition is True else other,
    "greatest": _extreme(max),
    "least": _extreme(min),
    "concat_ws": _concat_ws,
    ".": lambda value, name: None if value is None else value.get(name),
}
_PLAIN: dict[str, Callable[..., Any]] = {
    **{"+": _add, "-": _subtract, "*": _multiply, "/": _divide, "%": _modulo, "mod": _modulo, "div": _whole_quotient},
    **{"negate": _negate, "||": _joined, "[]": _element, "element_at": _element},
    **{"like": is_like, "ilike": lambda text, pattern, escape="\\": is_like(text, pattern, escape, True)},
    "rlike": lambda text, pattern: re.search(pattern, text) is not None,
    "concat": lambda *values: "".join(map(text_of, values)),
    **{"abs": abs, "ceil": math.ceil, "floor": math.floor, "round": _round, "exp": math.exp},
    **{"sqrt": math.sqrt, "power": lambda x, y: float(x) ** float(y), "ln": math.log, "log10": math.log10},
    "sign": lambda value: float((value > 0) - (value < 0)),
    **{"upper": str.upper, "lower": str.lower, "trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip},
    **{"length": lambda value: len(text_of(value)), "substring": _substring, "reverse": lambda value: value[::-1]},
    "replace": lambda text, old, new="": text.replace(old, new),
    **{
        "left": lambda text, count: text[: max(0, count)],
        "right": lambda text, count: text[-count:] if count > 0 else "",
    },
    **{"lpad": _padded, "rpad": lambda text, length, fill=" ": _padded(text, length, fill, left=False)},
    "startswith": lambda text, part: text.startswith(part),
    "endswith": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "instr": lambda text, part: text.find(part) + 1,
    **{name: _part(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "date_diff": lambda end, start: (order_key(timestamp(end)).date() - order_key(timestamp(start)).date()).days,
    **{"size": len, "array_join": _array_join, "array_contains": lambda items, item: item in items},
    "array_max": lambda items: _extreme(max)(*items),
    "array_min": lambda items: _extreme(min)(*items),
    "map": lambda keys, values: dict(zip(keys, values, strict=True)),
}
FUNCTIONS = frozenset({*_SPECIAL, *_PLAIN})
