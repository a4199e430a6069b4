"""Join rows with different columns to one table: each column gets a type that can hold all values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa


def join_rows(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join the rows of all parts, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    if any(part.schema != parts[0].schema for part in parts):
        schema = joint_schema([part.schema for part in parts])
        parts = [fitted(part, schema) for part in parts]
    return pa.concat_batches(parts)


def joint_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return all columns, each with a type that can hold all values."""
    fields: dict[str, pa.Field] = {}
    for field in (field for schema in schemas for field in schema):
        known = fields.get(field.name, field)
        fields[field.name] = pa.field(
            field.name, joint_type(known.type, field.type), nullable=known.nullable or field.nullable
        )
    return pa.schema(list(fields.values()))


def joint_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that can hold the values of both, texts if no other can."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(list(joint_schema([pa.schema(list(one)), pa.schema(list(other))])))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(joint_type(one.value_type, other.value_type))
    try:
        both = [pa.schema([("", one)]), pa.schema([("", other)])]
        return pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with exactly these columns, null where they are missing."""
    if rows.schema == schema:
        return rows
    known = dict(zip(rows.schema.names, rows.columns, strict=True))
    columns = [
        _as_type(known[field.name], field.type) if field.name in known else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        known = {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}
        parts = [
            _as_type(known[field.name], field.type) if field.name in known else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(array.type) and array.offset == 0:
        values = _as_type(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, kind, mask=array.is_null())
    try:
        return array.cast(kind, safe=False)
    except pa.ArrowException:
        texts = [None if value is None else json.dumps(value, default=str) for value in array.to_pylist()]
        return pa.array(texts, pa.string())
