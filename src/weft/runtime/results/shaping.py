"""Which shape the results of queries have over an input: what their variables show, on which fields they agree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from weft.algebra.composites import CompositeQuery
from weft.algebra.predicates import Aggregate, Arithmetic, Attribute, Expression, Literal, Negative
from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Rule
from weft.algebra.terms import Elapsed
from weft.errors import UsageError, did_you_mean
from weft.plan.automaton.cea import build_automaton
from weft.plan.automaton.determinize import visible_names
from weft.runtime.data.shape import EventField, Shape
from weft.runtime.operators.automaton.fields import selected_fields
from weft.runtime.reading.order import Reading
from weft.runtime.reading.times import END, START
from weft.schema import Kind

_KINDS = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.TEXT: pa.string(), Kind.BOOL: pa.bool_()}
_PYTHON_KINDS = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def shape_of(queries: Sequence[AnyQuery], schema: pa.Schema, reading: Reading, *, whole: bool = False) -> Shape:
    """The shape of the results of queries over an input; `whole`: all attributes are shown, whatever is selected."""
    shown: dict[str, dict[str, None]] = {}
    for query in queries:
        for name, attributes in variables_of(query).items():
            chosen = schema.names if whole or attributes is None else [a for a in attributes if a in schema.names]
            shown.setdefault(name, {}).update(dict.fromkeys(chosen))
    variables = tuple(
        (name, tuple(own for own in schema.names if own in chosen)) for name, chosen in shown.items() if chosen
    )
    unshown = {reading.time, reading.type, START, END}
    fields, times = _agreed(queries, schema, unshown), _time_columns(schema, reading)
    read = {name for _, names in variables for name in names} | set(times or ())
    read |= {field.attribute for field in fields or () if field.variable is not None}
    kept = pa.schema([field for field in schema if field.name in read])
    return Shape(kept, variables, fields, times, reading.time_unit)


def narrowed(shape: Shape, names: Collection[str]) -> Shape:
    """The shape with these columns only, beside `query`, by which rows are known as matches."""
    unknown = next((name for name in names if name not in shape.schema.names), None)
    if unknown is not None:
        raise UsageError(f"matches have no column {unknown!r}; {did_you_mean(unknown, shape.schema.names)}")
    read = set(shape.times or ())
    if "variables" in names:
        read |= {name for _, attributes in shape.variables for name in attributes}
    if "event" in names:
        read |= {field.attribute for field in shape.fields or () if field.variable is not None}
    shown = pa.schema([field for field in shape.input if field.name in read])
    variables = shape.variables if "variables" in names else ()
    return replace(shape, input=shown, variables=variables, built=frozenset({"query", *names}))


def variables_of(query: AnyQuery) -> dict[str, Collection[str] | None]:
    """The variables that a query's matches may show, each with the attributes that it selects, or None for all."""
    if not isinstance(query, Query):
        return dict.fromkeys(query.shown_variables)
    names = dict.fromkeys(name for atom in build_automaton(query).atoms for name in visible_names(atom, query))
    selected: dict[str, list[str]] = {}
    for item in query.selected or ():
        selected.setdefault(item.name, []).extend(item.attributes)
    return {name: selected.get(name) or None for name in names}


def _time_columns(schema: pa.Schema, reading: Reading) -> tuple[str, str] | None:
    columns = (reading.time, reading.time) if reading.time in schema.names else (START, END)
    if not set(columns) <= set(schema.names):
        return None
    kinds = [schema.field(name).type for name in columns]
    return columns if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds) else None


# -- fields of events -----------------------------------------------------------------------------


def _agreed(queries: Sequence[AnyQuery], schema: pa.Schema, unshown: Collection[str]) -> tuple[EventField, ...] | None:
    """The fields that all queries have; None when they differ, when there are none, or when a type is not known."""
    first: tuple[EventField, ...] | None = None
    for query in queries:
        fields = _fields_of(query, schema, unshown)
        if not fields or (first is not None and _types(fields) != _types(first)):
            return None
        if first is not None and fields != first:  # the same types from other variables: read from the JSON text
            fields = tuple(EventField(field.name, field.kind) for field in first)
        first = fields
    return None if first is None or not all(map(_is_whole, first)) else first


def _types(fields: Iterable[EventField]) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.kind) for field in fields]


def _is_whole(field: EventField) -> bool:
    """Whether its values can be had: from an event, or from JSON, which knows numbers, texts and Booleans."""
    kind = field.kind.value_type if pa.types.is_list(field.kind) else field.kind
    return field.variable is not None or kind in _KINDS.values()


def _fields_of(query: AnyQuery, schema: pa.Schema, unshown: Collection[str]) -> tuple[EventField, ...] | None:
    if isinstance(query, Rule):
        return tuple(EventField(field.name, _KINDS[field.kind]) for field in query.fields)
    found: list[EventField | None]
    if isinstance(query, Query):
        found = [
            _shown(field.key, field.variable, field.attribute, schema, many=field.many)
            for field in selected_fields(query, build_automaton(query))
        ]
        found += [_field(item.name, item.value, schema) for item in query.computed]
    elif isinstance(query, CompositeQuery) and query.all_fields:
        return tuple(_all_fields(query, schema, unshown))
    else:
        found = [_field(field.name, field.value, schema) for field in query.fields]
    fields = tuple(field for field in found if field is not None)
    # A field whose type is not known here is not left out: the whole event is JSON then.
    return fields if {field.name for field in fields} == set(query.field_kinds) else None


def _all_fields(query: CompositeQuery, schema: pa.Schema, unshown: Collection[str]) -> Iterator[EventField]:
    """All attributes of all variables, which `SELECT *` shows."""
    for variable in query.variables:
        for column in schema:
            if column.name not in unshown:
                many = variable in query.repeated
                kind = pa.list_(column.type) if many else column.type
                yield EventField(f"{variable}.{column.name}", kind, variable, column.name, many)


def _shown(name: str, variable: str, attribute: str, schema: pa.Schema, *, many: bool = False) -> EventField | None:
    if attribute not in schema.names:
        return None
    kind = schema.field(attribute).type
    return EventField(name, pa.list_(kind) if many else kind, variable, attribute, many)


def _field(name: str, value: Expression, schema: pa.Schema) -> EventField | None:
    if isinstance(value, Attribute) and value.variable is not None:
        return _shown(name, value.variable, value.name, schema)
    kind = _kind(value, schema)
    return None if kind is None else EventField(name, kind)


def _kind(value: Expression, schema: pa.Schema) -> pa.DataType | None:
    """The type of a computed value, as far as it can be told."""
    match value:
        case Literal(constant):
            return _PYTHON_KINDS.get(type(constant))
        case Attribute(name) if name in schema.names:
            return _plain(schema.field(name).type)
        case Elapsed() | Aggregate("COUNT"):
            return pa.int64()
        case Aggregate("AVG") | Arithmetic("/"):
            return pa.float64()
        case Aggregate(_, attribute) | Negative(attribute):
            return _kind(attribute, schema)
        case Arithmetic(_, left, right):
            kinds = {_kind(left, schema), _kind(right, schema)}
            return pa.int64() if kinds == {pa.int64()} else pa.float64() if None not in kinds else None
    return None


def _plain(kind: pa.DataType) -> pa.DataType | None:
    """The type that JSON has for values of a column's; None for those that it has no word for."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return pa.bool_() if pa.types.is_boolean(kind) else None
