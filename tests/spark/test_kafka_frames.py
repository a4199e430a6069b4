"""Frames with the columns of Kafka's records: payloads are events, and each partition has a time of its own.

No broker is needed: Spark's files have the columns that its connector gives. `make kafka` has a real one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from weft import api
from weft.errors import UsageError
from weft.runtime.spark.connections.records import decoded, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
TOGETHER = True
QUERY = "SELECT a[k], b[v] WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 6 MILLISECONDS"
KAFKA = "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, timestampType INT"
ARROW = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
PAYLOAD = "ts BIGINT, type STRING, k INT, v STRING"
Record = tuple[None, bytes | None, str, int, int, datetime, int]


def events(count: int) -> list[dict[str, object]]:
    return [{"type": "AB"[i % 3 == 0], "ts": i, "k": i % 5, "v": f"v{i}"} for i in range(count)]


def records(payloads: Sequence[object], partitions: int = 2, first: int = 0) -> list[Record]:
    made: list[Record] = []
    for at, payload in enumerate(payloads):
        value = payload if payload is None or isinstance(payload, bytes) else json.dumps(payload).encode()
        made.append((None, value, "trades", at % partitions, first + at // partitions, NOON, 0))
    return made


def frame_of(spark: SparkSession, rows: list[Record]) -> DataFrame:
    return spark.createDataFrame(rows, schema_of(KAFKA))


def wanted(given: list[dict[str, object]]) -> set[tuple[str, int, int]]:
    return {(m.id, m.start, m.end) for m in api.detect(given, api.compile(QUERY))}


@pytest.mark.parametrize("payload", [None, PAYLOAD], ids=["as it is", "by its columns"])
def test_payloads_of_a_batch_are_events(spark: SparkSession, payload: str | None) -> None:
    given = events(60)
    rows = records([*given, b"nonsense", None])
    found = api.match(frame_of(spark, rows), QUERY, payload=payload, rejects=True).collect()
    matches = [row for row in found if row.query is not None]
    assert {(row.id, row.start, row.end) for row in matches} == wanted(given)
    rejects = sorted((row.id, row.reason.partition(":")[0]) for row in found if row.query is None)
    bad = "not JSON" if payload is None else "the payload is not JSON that fits the schema"
    assert rejects == [("kafka:trades/0:30", bad), ("kafka:trades/1:30", "no payload")]
    if payload is not None:
        assert {(row.event.k, row.event.v) for row in matches} <= {(e["k"], e["v"]) for e in given}


def test_a_backlog_that_takes_many_triggers_is_not_late(spark: SparkSession, tmp_path: Path) -> None:
    """One partition is far ahead from the first trigger on; the other one needs all of them."""
    given = events(60)
    ahead = {"type": "C", "ts": 10**6, "k": 0, "v": ""}
    (tmp_path / "in").mkdir()
    for number in range(6):
        rows = records(given[number * 10 :][:10], 1, first=number * 10)
        if number == 0:
            rows.append((*records([ahead])[0][:3], 1, 0, NOON, 0))
        columns = dict(zip(schema_of(KAFKA).names, zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table(columns, ARROW), tmp_path / "in" / f"{number}.parquet")
    stream = spark.readStream.schema(schema_of(KAFKA)).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    found = api.match(stream, QUERY, delay=0, rejects=True, lanes=2)
    query = found.writeStream.format("memory").queryName("backlog").option("checkpointLocation", str(tmp_path / "own"))
    query.trigger(availableNow=True).start().awaitTermination()
    rows = spark.table("backlog").collect()
    assert [row.reason for row in rows if row.reason is not None] == []
    # All that ended before the last event of the slow partition is found.
    assert {row.id for row in rows} == {id for id, _, end in wanted(given) if end < 59}


def test_avro_needs_its_package(spark: SparkSession) -> None:
    schema = json.dumps({"type": "record", "name": "t", "fields": [{"name": "ts", "type": "long"}]})
    with pytest.raises(UsageError, match=f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}"):
        decoded(frame_of(spark, records([{}])), "avro", schema)


def test_a_schema_that_is_none_is_told(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="the schema 'ts WHAT' cannot be read"):
        api.match(frame_of(spark, records([{}])), QUERY, payload="ts WHAT")
