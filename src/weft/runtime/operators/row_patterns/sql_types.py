"""SQL types as Arrow types: constants, the common type of two operands, and casts, as in Spark."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import Constant
from weft.errors import InputError

Value = Any  # pa.Array, or pa.Scalar for a value that is the same in all rows
INTERVAL = pa.duration("us")
_RANKS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}  # of integers as decimals
_NAMES = {
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "string": pa.string(),
    "text": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
    "binary": pa.binary(),
}


def type_named(text: str) -> pa.DataType:
    """Return the Arrow type of a SQL type name."""
    name = " ".join(text.lower().split())
    found = re.fullmatch(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
    if found:
        return pa.decimal128(int(found[1]), int(found[2] or 0))
    listed = re.fullmatch(r"array\s*<(.*)>", name)
    if listed:
        return pa.list_(type_named(listed[1]))
    name = re.sub(r"\s*\(\s*\d+\s*\)", "", name)
    if name not in _NAMES:
        raise InputError(f"weft's own expressions do not know the type {text!r}: known are {', '.join(_NAMES)}")
    return _NAMES[name]


def constant(node: Constant) -> pa.Scalar:
    """Convert a constant to the type that Spark gives it."""
    value, kind = node.value, node.kind
    if value is None:
        return pa.scalar(None, pa.null())
    if kind == "date":
        return pa.scalar(date.fromisoformat(value.strip()), pa.date32())
    if kind in ("timestamp", "timestamp_ntz"):
        return _timestamp(value.strip(), zoned=kind == "timestamp")
    if kind == "interval day to second":
        return pa.scalar(int(value), pa.int64()).cast(INTERVAL)
    if isinstance(value, bool | str | float):
        return pa.scalar(value)
    if isinstance(value, int):
        return pa.scalar(value, pa.int32() if -(2**31) <= value < 2**31 else pa.int64())
    if isinstance(value, Decimal):
        return pa.scalar(value, _decimal_type(value))
    raise InputError(f"weft's own expressions do not know constants of the type {kind!r}")


def _timestamp(text: str, *, zoned: bool) -> pa.Scalar:
    """Parse a time; one without a zone is taken as UTC where it meets times with a zone."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is not None:
        return pa.scalar(when, pa.timestamp("us", "UTC"))
    return pa.scalar(when, pa.timestamp("us"))


def _decimal_type(value: Decimal) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return pa.decimal128(max(len(digits) + max(0, int(exponent)), scale, 1), scale)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is a type of texts."""
    return bool(pa.types.is_string(kind))


def as_decimal(value: Value) -> Value:
    """Convert an integer to a decimal; constants get as few digits as they need."""
    if pa.types.is_decimal(value.type):
        return value
    if isinstance(value, pa.Scalar) and value.is_valid:
        return pa.scalar(Decimal(value.as_py()), pa.decimal128(max(1, len(str(abs(value.as_py())))), 0))
    return value.cast(pa.decimal128(_DIGITS[value.type.bit_width], 0))


def brought_together(left: Value, right: Value) -> tuple[Value, Value]:
    """Convert two operands to one type."""
    one, two = left.type, right.type
    if one.equals(two):
        return left, right
    kind = _joint_type(left, right)
    return cast(left, kind), cast(right, kind)


def _joint_type(left: Value, right: Value) -> pa.DataType:
    one, two = left.type, right.type
    if pa.types.is_null(one) or pa.types.is_null(two):
        return two if pa.types.is_null(one) else one
    if one in _RANKS and two in _RANKS:
        return _RANKS[max(_RANKS.index(one), _RANKS.index(two))]
    if pa.types.is_floating(one) or pa.types.is_floating(two):
        return pa.float64()
    if pa.types.is_decimal(one) or pa.types.is_decimal(two):
        return _joint_decimal(left, right)
    if is_text(one) or is_text(two):
        return two if is_text(one) else one
    if pa.types.is_timestamp(one) or pa.types.is_timestamp(two):
        times = [kind for kind in (one, two) if pa.types.is_timestamp(kind)]
        zoned = next((kind.tz for kind in times if kind.tz), None)
        return pa.timestamp("us", zoned)
    if pa.types.is_unsigned_integer(one) or pa.types.is_unsigned_integer(two):
        return pa.int64()
    return one


def _joint_decimal(left: Value, right: Value) -> pa.DataType:
    if is_text(left.type) or is_text(right.type):
        return pa.float64()
    one, two = as_decimal(left).type, as_decimal(right).type
    scale = max(one.scale, two.scale)
    return pa.decimal128(min(38, max(one.precision - one.scale, two.precision - two.scale) + scale), scale)


def cast(value: Value, kind: pa.DataType, *, tries: bool = False) -> Value:
    """Convert a value to another type as Spark's CAST does: floats are truncated, texts are trimmed."""
    source = value.type
    if source.equals(kind):
        return value
    if pa.types.is_null(source):
        return pa.scalar(None, kind) if isinstance(value, pa.Scalar) else pa.nulls(len(value), kind)
    if isinstance(value, pa.Scalar):
        return cast(pa.array([value.as_py()], source), kind, tries=tries)[0]
    try:
        return _cast_array(value, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if tries:
            return pa.array([_tried(item, kind) for item in value], kind)
        raise InputError(f"CAST: {error}") from None


def _cast_array(value: pa.Array, kind: pa.DataType) -> pa.Array:
    source = value.type
    if is_text(source):
        value = pc.utf8_trim_whitespace(value)
        if pa.types.is_integer(kind) and pc.any(pc.match_substring(value, ".")).as_py():
            value = value.cast(pa.float64())
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(kind) and bool(source.tz) != bool(kind.tz):
        if kind.tz:
            return pc.assume_timezone(value, kind.tz).cast(kind)
        return pc.local_timestamp(value).cast(kind)
    if pa.types.is_integer(kind) and (pa.types.is_floating(value.type) or pa.types.is_decimal(value.type)):
        return pc.trunc(value).cast(kind, safe=False) if pa.types.is_floating(value.type) else _cut_off(value, kind)
    if pa.types.is_decimal(kind) and pa.types.is_floating(value.type):
        return _rounded(value, kind)
    if pa.types.is_decimal(kind) and pa.types.is_integer(value.type):
        value = value.cast(pa.decimal128(_DIGITS[value.type.bit_width], 0))
    if pa.types.is_decimal(kind) and pa.types.is_decimal(value.type):
        return _rounded(value, kind) if kind.scale < value.type.scale else value.cast(kind)
    if is_text(kind) and pa.types.is_timestamp(source):
        return pa.array([_written(item) for item in value.to_pylist()], kind)
    nearest = pa.types.is_integer(source) and pa.types.is_floating(kind)
    return value.cast(kind, safe=not (nearest or pa.types.is_timestamp(source)))


def _written(when: datetime | None) -> str | None:
    """Format a time as Spark does, without trailing zeros in its fraction."""
    if when is None:
        return None
    text = when.strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{when.microsecond:06}".rstrip("0") if when.microsecond else text


def _cut_off(value: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array([None if item is None else int(item) for item in value.to_pylist()], kind)


def _rounded(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Round numbers to decimals of a scale, halves away from zero."""
    step = Decimal(1).scaleb(-kind.scale)
    return pa.array(
        [None if item is None else Decimal(str(item)).quantize(step, "ROUND_HALF_UP") for item in value.to_pylist()],
        kind,
    )


def _tried(item: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return _cast_array(pa.array([item.as_py()], item.type), kind)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
