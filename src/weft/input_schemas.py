"""The columns of an input that has a schema, and whether a program fits them: before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.algebra.predicates import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    In,
    Like,
    Literal,
    Negative,
    RegexMatch,
)
from weft.algebra.query import AnyQuery, Program
from weft.algebra.text.program import to_text
from weft.connectors.csv_rows import header_of
from weft.connectors.files import STANDARD_INPUT, find_files, format_of
from weft.errors import InputError, did_you_mean
from weft.inputs import files_of, is_event
from weft.plan.properties import ALL_FIELDS
from weft.runtime.data.events import STREAM
from weft.runtime.reading.times import END, START
from weft.tree import Node

Columns = Mapping[str, str | None]  # what a column's values are; None: the input does not say
NO_VALUES = ("list", "map", "struct", "binary")  # what nothing compares with
_CURES = {
    "list": "make a row of each element, or a column of the one that is meant",
    "map": "make a column of the entry that is meant",
    "struct": "name one of its fields, with a dot",
    "binary": "decode it to a text or a number",
}


def columns_of(events: Any, time: str, type: str) -> Columns | None:
    """The columns of an input; None when each event has its own attributes, or nothing is known ahead."""
    if isinstance(events, Mapping):
        if not events or is_event(events, time, type):
            return None
        return _together([columns_of(source, time, type) for source in events.values()])
    paths = files_of(events)
    if paths is not None:
        return _together([_columns_in(path) for path in find_files(paths)])
    if isinstance(events, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return dict(_arrow_columns(events.schema))
    package = events.__class__.__module__.partition(".")[0]
    if package == "pyspark":
        from weft.runtime.spark.columns import arrow_schema

        return dict(_arrow_columns(arrow_schema(getattr(events, "schema", events))))
    if package == "pandas" and hasattr(events, "columns"):
        return {str(name): _pandas_family(events[name].dtype) for name in events.columns}
    if package == "polars" and hasattr(events, "collect_schema"):
        empty = events.collect_schema().to_frame() if hasattr(events.collect_schema(), "to_frame") else events.head(0)
        return dict(_arrow_columns(empty.lazy().collect().to_arrow().schema))
    return None


def check_fit(program: Program, read: Collection[str], columns: Columns | None, time: str, type: str) -> None:
    """Refuse a program that reads attributes which the input cannot have, or compares what never compares."""
    if columns is None:
        return
    inner = {type_ for query in program.queries for type_ in query.reads}
    derived = {name for query in program.queries if query.defines in inner for name in query.field_kinds}
    own = {time, type, START, END, STREAM, "*", ALL_FIELDS} | derived  # `*` is what COUNT counts: the events themselves
    for name in sorted(set(read) - own):
        if columns.get(name.partition(".")[0], "text") is None:
            continue  # a field of what may be a struct
        if name not in columns:
            hint = did_you_mean(name, columns) or "it has no columns"
            raise InputError(f"the input has no column {name!r}, which {_readers(program, name)} reads; {hint}")
        if columns[name] in NO_VALUES:
            kind = str(columns[name])
            raise InputError(
                f"column {name!r} of the input is a {kind}, which nothing compares with, and "
                f"{_readers(program, name)} reads it: {_CURES[kind]}"
            )
    known = {name: kind for name, kind in columns.items() if name not in derived}
    for query in program.queries:
        for node in query.walk():
            _check_comparison(query, node, known)


def _check_comparison(query: AnyQuery, node: Node, columns: Columns) -> None:
    match node:
        case Comparison(_, left, right):
            pairs = [(left, _family(left, columns), _family(right, columns))]
        case In(operand, values):
            families = {_family(Literal(value), columns) for value in values}
            own = _family(operand, columns)
            pairs = [(operand, own, families.pop())] if own not in families and families else []
        case Like(operand) | RegexMatch(operand):
            pairs = [(operand, _family(operand, columns), "text")]
        case _:
            return
    for operand, one, other in pairs:
        if one is not None and other is not None and one != other:
            raise InputError(
                f"query {query.name}: {to_text(node)} never holds, because {to_text(operand)} is a {one} in the input "
                f"and is compared with a {other}"
            )


def _family(expression: Node, columns: Columns) -> str | None:
    match expression:
        case Literal(value):
            return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        case Attribute(name):
            return columns.get(name)
        case Aggregate("MIN" | "MAX" | "FIRST" | "LAST", operand):
            return _family(operand, columns)
        case Aggregate() | Arithmetic() | Negative():
            return "number"
    return None


def _readers(program: Program, name: str) -> str:
    names = [query.name for query in program.queries if repr(name) in repr(query)]
    return f"query {names[0]}" if names else "the program"


def _together(parts: list[Columns | None]) -> Columns | None:
    """The columns of several inputs; what they do not agree on is not known."""
    whole: dict[str, str | None] = {}
    for part in parts:
        if part is None:
            return None
        for name, kind in part.items():
            whole[name] = kind if whole.get(name, kind) == kind else None
    return whole


def _columns_in(path: str) -> Columns | None:
    if path == STANDARD_INPUT:
        return None
    form = format_of(path)
    try:
        if form == "parquet":
            return dict(_arrow_columns(pq.read_schema(path)))
        return dict.fromkeys(header_of(path)) if form == "csv" else None
    except (OSError, pa.ArrowException, InputError):
        return None  # whoever reads it will say what is wrong


def _arrow_columns(schema: pa.Schema, before: str = "") -> Iterator[tuple[str, str | None]]:
    for field in schema:
        name = before + field.name
        yield name, family_of(field.type)
        if pa.types.is_struct(field.type):
            yield from _arrow_columns(pa.schema(list(field.type)), f"{name}.")


def family_of(kind: pa.DataType) -> str | None:
    """What values of an Arrow type are: number, text, boolean or something that nothing compares with."""
    is_a = pa.types
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        return family_of(kind.value_type)
    if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind) or is_a.is_temporal(kind):
        return "number"
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return "text"
    if is_a.is_boolean(kind):
        return "boolean"
    if is_a.is_map(kind):
        return "map"
    if is_a.is_struct(kind):
        return "struct"
    if is_a.is_nested(kind):
        return "list"
    binary = is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_binary_view(kind)
    return "binary" if binary or is_a.is_fixed_size_binary(kind) else None


def _pandas_family(dtype: Any) -> str | None:
    kinds = {"i": "number", "u": "number", "f": "number", "b": "boolean", "M": "number", "m": "number"}
    if str(dtype) in ("string", "str"):
        return "text"
    return kinds.get(getattr(dtype, "kind", "O"))
