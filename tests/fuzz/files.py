"""Files of events that nobody wrote: good ones of every format, mutated, and values at all edges."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

_INTEGERS = (0, -1, 1, 2**31, 2**53, 2**53 + 1, 2**62 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 10**30)
_FLOATS = (0.5, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 1e16)
_TEXTS = ("", "a", "é", "\x00", "\x1b[31m", "\u202e", "a\nb", '"', "x" * 5000, "1", "true", "2024-01-01T00:00:00Z")
_OTHERS: tuple[Any, ...] = (None, True, False, [], [1, "a"], {"x": {"x": 1}})
EDGES: tuple[Any, ...] = (*_INTEGERS, *_FLOATS, *_TEXTS, *_OTHERS)
_BYTES = (
    b"\x00",
    b"\xff",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b",",
    b'"',
    b"{",
    b"}",
    b"[",
    b"null",
    b"NaN",
    b"9" * 400,
    b"1e999",
)
ENDINGS = ("jsonl", "csv", "parquet", "jsonl.gz", "csv.gz")


def files(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """So many endings and contents."""
    chance = Random(seed)
    for _ in range(count):
        ending = chance.choice(ENDINGS)
        data = content(ending, events(chance))
        yield ending, data if chance.random() < 0.3 else mutated(chance, data)


def events(chance: Random) -> list[dict[str, Any]]:
    """Some events, most of which can be read."""
    found = []
    for time in range(chance.randrange(1, 30)):
        event: dict[str, Any] = {"type": chance.choice("AB"), "ts": time, "x": chance.randrange(3), "s": "a"}
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            event[chance.choice(("type", "ts", "x", "s", "start", "end", "new", ""))] = chance.choice(EDGES)
        found.append(event)
    return found


def content(ending: str, events: list[dict[str, Any]]) -> bytes:
    """The events as a file; what a format has no type for as text."""
    form, _, packed = ending.partition(".")
    if form == "jsonl":
        data = "".join(json.dumps(event) + "\n" for event in events).encode()
    else:
        names = dict.fromkeys(name for event in events for name in event)
        table = pa.table({name: _column([event.get(name) for event in events]) for name in names})
        sink = io.BytesIO()
        if form == "csv":
            flat = [column.cast(pa.string()) if _is_flat(column) else pa.nulls(len(column)) for column in table.columns]
            pv.write_csv(pa.table(flat, names=table.schema.names), sink)
        else:
            pq.write_table(table, sink)
        data = sink.getvalue()
    return gzip.compress(data, mtime=0) if packed else data


def _is_flat(column: pa.ChunkedArray) -> bool:
    return not (pa.types.is_nested(column.type) or pa.types.is_null(column.type))


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def mutated(chance: Random, data: bytes) -> bytes:
    """The bytes with some left out, doubled, turned or replaced by odd ones, or cut off."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(found) + 1)
        end = min(len(found), at + chance.choice((1, 1, 4, 50)))
        match chance.randrange(6):
            case 0:
                del found[at:end]
            case 1:
                found[at:at] = found[at:end] * chance.choice((1, 1, 30))
            case 2:
                found[at:end] = chance.choice(_BYTES)
            case 3:
                found[at:at] = chance.choice(_BYTES)
            case 4 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case _:
                del found[at:]
    return bytes(found)
