"""Arrow's types by the names that Spark SQL has for them, and back."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "null",
}
_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval day to second": pa.duration("us"),
}


def sql_type(kind: pa.DataType) -> str:
    """The name of an Arrow type; empty for one that SQL has no plain name for."""
    if pa.types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_duration(kind):
        return "interval day to second"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = sql_type(kind.value_type)
        return f"array<{inner}>" if inner else ""
    return _NAMES.get(kind, "")


def arrow_type(name: str) -> pa.DataType | None:
    """The Arrow type of a name; None where values say it."""
    if name.startswith("decimal("):
        precision, _, scale = name[8:-1].partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    if name.startswith("array<"):
        inner = arrow_type(name[6:-1])
        return None if inner is None else pa.list_(inner)
    return _ARROW.get(name)


def sql_columns(table: pa.Table) -> dict[str, str]:
    """The columns of a table with the names of their types."""
    return {field.name: sql_type(field.type) for field in table.schema}
