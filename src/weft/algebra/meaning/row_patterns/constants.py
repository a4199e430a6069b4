"""Values in SQL's types: constants as Python values, and conversions from one type into another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True, order=True)
class Months:
    """An interval of months."""

    count: int


def interpreted(value: Any, kind: str) -> Any:
    """A constant of the algebra as a Python value."""
    if value is None:
        return None
    if kind == "date":
        return date.fromisoformat(value)
    if kind in ("timestamp", "timestamp_ntz"):
        return timestamp(value, kind)
    if kind == "interval day to second":
        return timedelta(microseconds=value)
    if kind == "interval year to month":
        return Months(value)
    return value


def timestamp(value: Any, kind: str = "timestamp") -> datetime:
    """A time from a text, a date or a time; without a zone unless it has one."""
    if isinstance(value, datetime):
        found = value
    elif isinstance(value, date):
        found = datetime(value.year, value.month, value.day)
    else:
        found = datetime.fromisoformat(str(value).strip())
    return found.astimezone(UTC).replace(tzinfo=None) if kind == "timestamp_ntz" and found.tzinfo else found


def convert(value: Any, type_: str) -> Any:
    """A value in a type, named as in Spark SQL; raises ValueError, TypeError or ArithmeticError if it cannot be."""
    if value is None or not type_:
        return value
    if type_ in _WHOLE:
        return _whole(value, _WHOLE[type_])
    if type_ in ("double", "float"):
        return float(value)
    if type_.startswith("decimal"):
        return _decimal(value, type_)
    if type_ == "string":
        return text_of(value)
    if type_ == "boolean":
        return _boolean(value)
    if type_ == "date":
        return value.date() if isinstance(value, datetime) else timestamp(value).date()
    if type_.startswith("timestamp"):
        return timestamp(value, type_)
    if type_.startswith("array<") and isinstance(value, list | tuple):
        return [convert(item, type_[6:-1]) for item in value]
    return value


def _whole(value: Any, bits: int) -> int:
    found = int(Decimal(value.strip())) if isinstance(value, str) else int(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"{found} does not fit into {bits} bits")
    return found


def _decimal(value: Any, type_: str) -> Decimal:
    precision, _, scale = type_[8:-1].partition(",")
    exact = value if isinstance(value, Decimal) else Decimal(repr(value) if isinstance(value, float) else str(value))
    with localcontext(prec=60):
        found = exact.quantize(Decimal(1).scaleb(-int(scale or 0)), rounding=ROUND_HALF_UP)
    if len(found.as_tuple().digits) > int(precision or 10):
        raise ValueError(f"{value} has too many digits for {type_}")
    return found


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word not in ("true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"):
            raise ValueError(f"{value!r} is neither true nor false")
        return word in ("true", "t", "yes", "y", "1")
    return bool(value)


def text_of(value: Any) -> str:
    """A value as a text, as Spark writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix("+00:00")
    return str(value)
