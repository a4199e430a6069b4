"""The columns of results and of what lanes exchange, as Spark and as Arrow know them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from weft.runtime.data.shape import Shape
from weft.runtime.results.typed import timestamps

_PLACES = pa.list_(pa.field("element", pa.int64(), nullable=False))
# What a lane gives: matches; events that took no part (they have a reason, and for an id their place in the input);
# and counters (neither query nor reason), an object in `event`.
OUTPUT_SCHEMA = pa.schema(
    [
        pa.field("query", pa.string()),
        pa.field("id", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("positions", _PLACES),
        pa.field("bindings", pa.map_(pa.string(), pa.field("value", _PLACES))),
        pa.field("event", pa.string()),
        pa.field("reason", pa.string()),
    ]
)

# One row: what one lane is to know of one run. `first` is the earliest end in it. `rejects` (unreadable events) and
# `others` (events of no lane, which may turn out to be late) are given to one lane only.
RUN_DDL = (
    "lane int, first bigint, source int, part int, chunk int, "
    "times binary, events binary, rejects binary, others binary"
)
RUN_SCHEMA = pa.schema(
    [
        pa.field("lane", pa.int32()),
        pa.field("first", pa.int64()),
        pa.field("source", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("chunk", pa.int32()),
        pa.field("times", pa.binary()),
        pa.field("events", pa.binary()),
        pa.field("rejects", pa.binary()),
        pa.field("others", pa.binary()),
    ]
)
REJECT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("reason", pa.string()),
    ]
)


# Between stages: rows of the output, or occurrences for a lane, which has this place among all lanes.
SENT_SCHEMA = pa.schema([pa.field("to", pa.int32()), pa.field("is_result", pa.bool_()), pa.field("sent", pa.binary())])


def output_schema(shape: Shape | None) -> pa.Schema:
    """What lanes give when results have this shape: an event that took no part, or counters, are in `rejected` then."""
    if shape is None:
        return OUTPUT_SCHEMA
    own = [field.with_nullable(True) for field in shape.schema]
    return pa.schema([*own, pa.field("reason", pa.string()), pa.field("rejected", pa.string())])


def as_output(rows: pa.RecordBatch, shape: Shape | None) -> pa.RecordBatch:
    """Matches (which have no reason), or rows of OUTPUT_SCHEMA that are none, as rows of the output."""
    schema = output_schema(shape)
    given = {name: rows.column(name) for name in rows.schema.names}
    if shape is not None and "reason" in given:
        given["rejected"] = given.pop("event")
        if shape.times is not None:
            given.update({name: timestamps(given[name], shape) for name in ("start", "end")})
    columns = [given[field.name] if field.name in given else pa.nulls(len(rows), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rejects_as_output(rejects: pa.RecordBatch) -> pa.RecordBatch:
    """Events that took no part as rows of the output."""
    return pa.RecordBatch.from_arrays(
        [
            rejects.column(field.name) if field.name in REJECT_SCHEMA.names else pa.nulls(len(rejects), field.type)
            for field in OUTPUT_SCHEMA
        ],
        schema=OUTPUT_SCHEMA,
    )


def counters_as_output(counters: Mapping[str, object]) -> pa.RecordBatch:
    """Counters as a row of the output."""
    row = {**dict.fromkeys(OUTPUT_SCHEMA.names), "event": json.dumps(counters)}
    return pa.RecordBatch.from_pylist([row], schema=OUTPUT_SCHEMA)


def counts_as_output(counts: Mapping[str, int]) -> pa.RecordBatch:
    """Numbers of matches as rows of the output: one for each query, the number in `id`, since it may be of any size."""
    rows = [{**dict.fromkeys(OUTPUT_SCHEMA.names), "query": name, "id": f"{n:x}"} for name, n in counts.items()]
    return pa.RecordBatch.from_pylist(rows, schema=OUTPUT_SCHEMA)
