"""`weft run` with a topic whose payloads are Avro, by their schema; Spark's package for Avro must be there."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kafka.broker import Unavailable, avro_jars
from tests.kafka.conftest import Command, Kafka, expected

TOGETHER = True
QUERY = "SELECT a[k], b[v] WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 6 MILLISECONDS"
SCHEMA = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "type", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "k", "type": "int"},
        {"name": "v", "type": ["null", "double"]},
    ],
}


def whole(number: int) -> bytes:
    """A number as Avro writes it: zigzag, seven bits at a time."""
    left, found = (number << 1) ^ (number >> 63), b""
    while left > 127:
        found, left = found + bytes([left & 127 | 128]), left >> 7
    return found + bytes([left])


def payload(event: dict[str, object]) -> bytes:
    kind, value = str(event["type"]).encode(), event.get("v")
    shown = whole(0) if value is None else whole(1) + struct.pack("<d", value)
    return whole(len(kind)) + kind + whole(int(str(event["ts"]))) + whole(int(str(event["k"]))) + shown


def test_payloads_may_be_avro(kafka: Kafka, command: Callable[..., Command], tmp_path: Path) -> None:
    import pyspark

    try:
        kafka.jars = [*kafka.jars, *avro_jars(pyspark.__version__)]
    except Unavailable as reason:
        pytest.skip(f"no Avro here: {reason}")
    (tmp_path / "event.avsc").write_text(json.dumps(SCHEMA))
    source, sink = kafka.topic(2), kafka.topic()
    given = [{"type": "AB"[i % 3 == 0], "ts": i, "k": i % 5, "v": None if i % 7 == 0 else i / 4} for i in range(90)]
    for at, event in enumerate(given):
        kafka.send(source, [payload(event)], partition=at % 2)
    kafka.send(source, [b"\x02", None], partition=1)
    address = kafka.source(source, format="avro", schema="event.avsc")
    run = command(QUERY, "--source", f"s={address}", "--sink", f"kafka://{kafka.address}/{sink}", "--positions")
    run.finish("--until", "complete")
    records = [value for _, value in kafka.read(sink)]
    assert {value["id"]: value["positions"] for value in records} == expected(given, QUERY)
    assert {json.dumps(value["event"]) for value in records} > {'{"k": 2, "v": null}', '{"k": 1, "v": 1.5}'}
    assert sorted((one["offset"], one["reason"].partition(":")[0]) for one in run.rejects()) == [
        (45, "the payload is not Avro that fits the schema"),
        (46, "no payload"),
    ]
