"""Results on Spark: typed columns, the events of variables, rows, and what can be done with them afterwards."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import weft
from weft.errors import InputError, RejectedWarning, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PAIR = "SELECT * WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 1 MINUTE"
SOME = "SELECT a, b[amount] WHERE A AS a ; B AS b FILTER a[k] = b[k] WITHIN 1 MINUTE"
SCHEMA = "type string, ts timestamp, k long, amount decimal(12,2), device struct<os: string>"
BEGIN = datetime(2024, 5, 1, 12)
EVENTS: list[tuple[Any, ...]] = [
    ("AB"[at % 2], BEGIN + timedelta(seconds=10 * at, microseconds=at), at // 2, Decimal(at) / 4, (f"os{at}",))
    for at in range(8)
]

EVENTS_AS_DICTS = [dict(zip(("type", "ts", "k", "amount"), event, strict=False)) for event in EVENTS]


def frame_of(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS, SCHEMA)


def test_variables_have_the_columns_of_the_input(spark: SparkSession) -> None:
    matches = weft.match(frame_of(spark), PAIR)
    assert matches.columns == ["query", "id", "start", "end", "variables", "event"]
    found = sorted(matches.collect(), key=lambda row: row.end)
    assert [(row.start, row.end) for row in found] == [(EVENTS[at][1], EVENTS[at + 1][1]) for at in (0, 2, 4, 6)]
    assert [tuple(row.variables.b[0]) for row in found] == [EVENTS[at] for at in (1, 3, 5, 7)]
    assert dict(matches.select("variables.a.amount").dtypes) == {"amount": "array<decimal(12,2)>"}


def test_only_selected_attributes_are_shown_and_the_event_is_a_struct(spark: SparkSession) -> None:
    matches = weft.match(frame_of(spark), SOME)
    assert dict(matches.dtypes)["event"] == "struct<amount:decimal(12,2)>"
    row = matches.orderBy("end").first()
    assert row.event.amount == Decimal("0.25")
    assert row.variables.b[0].asDict() == {"amount": Decimal("0.25")}
    assert row.variables.a[0].device.os == "os0"


@pytest.mark.parametrize("text", [PAIR, SOME, PAIR.replace("A AS a", "NONE AS a")])
@pytest.mark.filterwarnings("ignore::weft.DataWarning")
def test_collected_matches_are_those_that_spark_collects(spark: SparkSession, text: str, tmp_path: Path) -> None:
    events = [*EVENTS, ("A", None, 1, None, None)]
    frame = spark.createDataFrame(events, SCHEMA).withColumn("plain", F.to_timestamp_ntz("ts"))
    frame.coalesce(1).write.parquet(str(tmp_path / "events"))
    for source in (frame, spark.read.parquet(str(tmp_path / "events"))):
        matches = weft.match(source, text)
        if not hasattr(matches, "toArrow"):
            pytest.skip("PySpark 3.5 has no toArrow")
        with pytest.warns(RejectedWarning, match="1 event"):
            collected = matches.toArrow()
        assert matches.counts.get["matches"] == len(collected)
        usual = type(matches).toArrow(matches)
        assert collected.schema.equals(usual.schema)
        by_start = itemgetter("start")
        assert sorted(collected.to_pylist(), key=by_start) == sorted(usual.to_pylist(), key=by_start)
        assert len(collected) == (0 if "NONE" in text else 4)


def test_events_of_queries_that_differ_are_json(spark: SparkSession) -> None:
    named = [weft.compile(SOME), _named("SELECT a[k] WHERE A AS a", "one")]
    matches = weft.match(frame_of(spark), named)
    assert {row.query: json.loads(row.event) for row in matches.collect()}.keys() == {"q", "one"}


def _named(text: str, name: str) -> weft.Program:
    from dataclasses import replace

    program = weft.compile(text)
    return replace(program, queries=tuple(replace(query, name=name) for query in program.queries))  # type: ignore


def test_a_row_for_each_event(spark: SparkSession) -> None:
    frame = frame_of(spark)
    for rows in (weft.match(frame, PAIR, rows=True), weft.rows(weft.match(frame, PAIR), frame)):
        assert rows.columns == ["query", "match_id", "variable", "number", *frame.columns]
        found = sorted(rows.collect(), key=lambda row: row.ts)
        assert [(row.variable, row.number) for row in found] == [("a", 1), ("b", 2)] * 4
        assert [tuple(row)[4:] for row in found] == EVENTS


def test_rows_of_some_matches_have_columns_that_were_not_selected(spark: SparkSession) -> None:
    frame = frame_of(spark)
    some = weft.match(frame, SOME).where("event.amount > 1")
    rows = sorted(weft.rows(some, frame).collect(), key=lambda row: row.ts)
    assert [tuple(row)[4:] for row in rows] == EVENTS[4:]


def test_ids_by_key_do_not_depend_on_other_events_or_partitions(spark: SparkSession, tmp_path: Path) -> None:
    others = [("C", time + timedelta(seconds=1), 0, amount + 100, device) for _, time, _, amount, device in EVENTS]
    whole, fewer = spark.createDataFrame([*EVENTS, *others], SCHEMA), frame_of(spark).repartition(3)
    found = [weft.match(frame, SOME, key="amount", lanes=lanes) for frame, lanes in ((whole, 1), (fewer, 2))]
    ids = {row.id for row in found[0].collect()}
    assert {row.id for row in found[1].collect()} == ids
    assert len(ids) == 4
    assert {row.match_id for row in weft.rows(found[1], fewer).collect()} == ids
    here = weft.detect(EVENTS_AS_DICTS, SOME, key="amount")
    assert {match.id for match in here} == {row["id"] for row in here.to_arrow().to_pylist()} == ids
    assert {match.id for match in weft.detect(whole, SOME, key="amount")} == ids
    stream = weft.match(stream_of(spark, tmp_path / "in"), SOME, key="amount", lanes=2)
    assert {row.id for row in collected(stream, tmp_path)} == ids
    with pytest.raises(InputError, match="no column 'nowhere' to make ids of"):
        weft.match(fewer, SOME, key="nowhere")


def test_rows_need_matches(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"weft\.match"):
        weft.rows(frame_of(spark), frame_of(spark))


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    """The events in two files, and a last event that lets time pass."""
    folder.mkdir()
    last = ("Z", BEGIN + timedelta(hours=1), 0, Decimal(0), ("",))
    frame = spark.createDataFrame([*EVENTS, last], SCHEMA).coalesce(1)
    for number, part in enumerate((frame.limit(4), frame.offset(4))):
        part.write.mode("append").json(str(folder / str(number)))
    stream = spark.readStream.schema(SCHEMA).option("recursiveFileLookup", True).option("maxFilesPerTrigger", 1)
    return stream.json(str(folder)).withWatermark("ts", "1 second")


def collected(frame: DataFrame, folder: Path) -> list[Any]:
    rows: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return rows


def test_a_stream_shows_the_same(spark: SparkSession, tmp_path: Path) -> None:
    found = collected(weft.match(stream_of(spark, tmp_path / "in"), PAIR), tmp_path)
    shown = [row.variables.a[0] for row in sorted(found, key=lambda row: row.end)]
    assert [(event.amount, event.device) for event in shown] == [(event[3], event[4]) for event in EVENTS[::2]]


def test_matches_of_a_stream_can_be_counted_in_windows(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    matches = weft.match(stream_of(spark, tmp_path / "in"), PAIR)
    counts = matches.groupBy(F.window("end", "30 seconds")).count()
    found = {row.window.start: row["count"] for row in collected(counts, tmp_path)}
    assert found == {BEGIN: 1, BEGIN + timedelta(seconds=30): 2, BEGIN + timedelta(seconds=60): 1}


CHAIN = "pattern Twice sequence(q first, q second)"  # a CEQL text without a name is called q


def test_matches_are_events_for_the_next_program(spark: SparkSession, tmp_path: Path) -> None:
    chain = weft.compile(CHAIN, language="epn")
    wanted = weft.match(weft.match(frame_of(spark), PAIR), chain)
    pairs = sorted((row.variables.first[0].id, row.variables.second[0].id) for row in wanted.collect())
    assert len(pairs) == 6
    stream = weft.match(weft.match(stream_of(spark, tmp_path / "in"), PAIR), chain)
    found = collected(stream, tmp_path)
    assert sorted((row.variables.first[0].id, row.variables.second[0].id) for row in found) == pairs


def test_the_users_settings_stay_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    names = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass")
    spark.conf.set(names[0], "123")
    try:
        before = dict(spark.conf.getAll)
        query = weft.match(stream_of(spark, tmp_path / "in"), PAIR, lanes=2).writeStream.format("memory")
        running = query.queryName("kept").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        running.processAllAvailable()
        running.stop()
        assert dict(spark.conf.getAll) == before
        assert running.lastProgress["stateOperators"][0]["numShufflePartitions"] == 2  # lanes, not 123
        assert spark.table("kept").count() == 4
    finally:
        spark.conf.set(names[0], "3")
