"""Constants of SQL: numbers, dates, times and intervals as written, and the names of types."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL"})
EXAMPLES = {
    "DATE": "DATE '2026-01-31'",
    "TIMESTAMP": "TIMESTAMP '2026-01-31 12:00:00'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '2026-01-31 12:00:00'",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ '2026-01-31 12:00:00'",
    "INTERVAL": "INTERVAL '10' MINUTE, INTERVAL '1 12:30:00' DAY TO SECOND or INTERVAL '2' MONTH",
}
_SECOND = 1_000_000
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3_600 * _SECOND,
    "DAY": 86_400 * _SECOND,
    "WEEK": 7 * 86_400 * _SECOND,
}
_MONTHS = {"MONTH": 1, "YEAR": 12, "QUARTER": 3}
UNITS = frozenset({*_MICROSECONDS, *_MONTHS})
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_NUMBER = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+))(e[+-]?\d+)?(bd|[lsydf])?", re.IGNORECASE)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)", re.IGNORECASE)

DAY_TIME, YEAR_MONTH = "interval day to second", "interval year to month"
_TYPE_NAMES = {
    **{"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"},
    **{"double precision": "double", "numeric": "decimal", "dec": "decimal", "bool": "boolean"},
    **{"varchar": "string", "char": "string", "text": "string", "character": "string"},
    **{"timestamp_ltz": "timestamp", "timestamp with time zone": "timestamp", "decimal": "decimal(10,0)"},
    **{"timestamp with local time zone": "timestamp", "timestamp without time zone": "timestamp_ntz"},
}


def number(text: str) -> tuple[int | float | Decimal, str] | None:
    """The value and kind of a number; a decimal unless it fits into 64 bits or has an exponent. None: it is none."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    digits, exponent, suffix = found[1], found[2] or "", (found[3] or "").lower()
    if suffix in ("d", "f"):
        return float(digits + exponent), {"d": "double", "f": "float"}[suffix]
    if suffix == "bd":
        return Decimal(digits + exponent), ""
    if suffix:
        return (int(digits), {"l": "bigint", "s": "smallint", "y": "tinyint"}[suffix]) if digits.isdigit() else None
    if exponent:
        return float(digits + exponent), ""
    if digits.isdigit() and int(digits) < 1 << 63:
        return int(digits), ""
    return Decimal(digits), ""


def typed(word: str, text: str, units: list[str]) -> tuple[int | str, str] | None:
    """The value and kind of `DATE '…'` and its like; None if the text is none."""
    if word == "INTERVAL":
        return interval(text, units)
    try:
        if word == "DATE":
            return date.fromisoformat(text.strip()).isoformat(), "date"
        datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return text.strip(), "timestamp_ntz" if word == "TIMESTAMP_NTZ" else "timestamp"


def interval(text: str, units: list[str]) -> tuple[int, str] | None:
    """The value and kind of an interval: microseconds, or months."""
    text = text.strip()
    names = [unit if unit in UNITS else unit.rstrip("S") for unit in units]
    if not names:
        return _written_out(text)
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("+-").strip()
    if len(names) == 1:
        try:
            amount = Decimal(text)
        except ArithmeticError:
            return None
        if names[0] in _MONTHS:
            return (sign * int(amount) * _MONTHS[names[0]], YEAR_MONTH) if amount == int(amount) else None
        return sign * int(amount * _MICROSECONDS[names[0]]), DAY_TIME
    return _from_to(text, names[0], names[-1], sign)


def _from_to(text: str, first: str, last: str, sign: int) -> tuple[int, str] | None:
    """`'1 12:30:00' DAY TO SECOND`, `'1-6' YEAR TO MONTH`."""
    if (first, last) == ("YEAR", "MONTH"):
        found = re.fullmatch(r"(\d+)-(\d+)", text)
        return (sign * (int(found[1]) * 12 + int(found[2])), YEAR_MONTH) if found else None
    if first not in _FIELDS or last not in _FIELDS or _FIELDS.index(first) >= _FIELDS.index(last):
        return None
    fields = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    parts = re.split(r"[ :]+", text)
    if len(parts) != len(fields) or not all(re.fullmatch(r"\d+(\.\d+)?", part) for part in parts):
        return None
    total = sum(Decimal(part) * _MICROSECONDS[field] for part, field in zip(parts, fields, strict=True))
    return sign * int(total), DAY_TIME


def _written_out(text: str) -> tuple[int, str] | None:
    """`INTERVAL '1 hour 30 minutes'`."""
    total, position, months = Decimal(0), 0, 0
    while position < len(text.rstrip()):
        found = _PART.match(text, position)
        if found is None:
            return None
        unit = found[2].upper()
        unit = unit if unit in UNITS else unit.rstrip("S")
        if unit in _MONTHS:
            months += int(Decimal(found[1])) * _MONTHS[unit]
        elif unit in _MICROSECONDS:
            total += Decimal(found[1]) * _MICROSECONDS[unit]
        else:
            return None
        position = found.end()
    if not position or (months and total):
        return None
    return (months, YEAR_MONTH) if months else (int(total), DAY_TIME)


def type_name(words: list[str]) -> str:
    """The name of a type as Spark SQL calls it: `decimal(10,2)`, `bigint`, `string`."""
    text = re.sub(r"\s*([(),<>:])\s*", r"\1", " ".join(words).lower())
    name, bracket, rest = text.partition("(")
    if bracket and name in ("varchar", "char", "character", "timestamp"):
        return _TYPE_NAMES.get(name, name)
    return _TYPE_NAMES.get(text) or _TYPE_NAMES.get(name, name).partition("(")[0] + bracket + rest
