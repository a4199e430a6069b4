"""The columns of matches and of what lanes exchange, as Spark and as Arrow know them.

`event` is a JSON object in a text: its fields differ from query to query, so no struct fits them all,
and `from_json(event, …)` or `event:field` reads them in Spark.
"""

from __future__ import annotations

import pyarrow as pa

from weft.runtime.matches import MATCH_SCHEMA

MATCH_DDL = (
    "query string, id string, start bigint, end bigint, positions array<bigint>, "
    "bindings map<string, array<bigint>>, event string"
)
# What a lane gives: matches (reason is null) and events that took no part (query is null).
OUTPUT_DDL = f"{MATCH_DDL}, reason string"
OUTPUT_SCHEMA = pa.schema([field.with_nullable(True) for field in MATCH_SCHEMA] + [pa.field("reason", pa.string())])

# One row: what one lane is to know of one run. `first` is the earliest end in it. `rejects` (unreadable events) and
# `others` (events of no lane, which may turn out to be late) are given to one lane only.
RUN_DDL = "lane int, first bigint, part int, chunk int, times binary, events binary, rejects binary, others binary"
RUN_SCHEMA = pa.schema(
    [
        pa.field("lane", pa.int32()),
        pa.field("first", pa.int64()),
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
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("reason", pa.string()),
    ]
)


def with_reason(matches: pa.RecordBatch) -> pa.RecordBatch:
    """Matches as rows of the output."""
    return pa.RecordBatch.from_arrays([*matches.columns, pa.nulls(len(matches), pa.string())], schema=OUTPUT_SCHEMA)


def rejects_as_output(rejects: pa.RecordBatch) -> pa.RecordBatch:
    """Events that took no part as rows of the output."""
    return pa.RecordBatch.from_arrays(
        [
            rejects.column(field.name) if field.name in REJECT_SCHEMA.names else pa.nulls(len(rejects), field.type)
            for field in OUTPUT_SCHEMA
        ],
        schema=OUTPUT_SCHEMA,
    )
