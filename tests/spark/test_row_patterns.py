"""SQL's row patterns on Spark: tables and views, what is around clauses, ties, Catalyst's functions, streams."""

from __future__ import annotations

import warnings
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft.errors import DataWarning, UsageError
from weft.runtime.spark.row_patterns.queries import row_pattern_frame, sql_frame
from weft.source import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
NOON = datetime(2026, 5, 1, 12)
PRICES = {"x": [9, 7, 6, 8, 9, 4, 5], "y": [5, 6, 4, 4, 3, 6, 2]}
SCHEMA = "symbol string, ts timestamp, price int, name string"
V_SHAPE = """PARTITION BY symbol ORDER BY ts MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom,
             COUNT(DOWN.*) AS n
             PATTERN (STRT DOWN+ UP) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)"""


def ticks() -> list[tuple[Any, ...]]:
    return [
        (symbol, NOON + timedelta(seconds=k), price, f"n{price % 2}")
        for symbol, prices in PRICES.items()
        for k, price in enumerate(prices)
    ]


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame(ticks(), SCHEMA)
    frame.createOrReplaceTempView("ticks")
    return frame


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def sql(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return rows(sql_frame(SourceText(text), spark))


def test_a_query_over_a_view(spark: SparkSession, table: DataFrame) -> None:
    found = sql(spark, f"SELECT symbol, top, n FROM ticks MATCH_RECOGNIZE ({V_SHAPE}) WHERE n > 0 ORDER BY top")
    assert found == [("x", 9, 1), ("x", 9, 2), ("y", 4, 1)]
    assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("__weft")]


def test_sub_queries_and_common_tables_before_a_clause(spark: SparkSession, table: DataFrame) -> None:
    whole = sql(spark, f"SELECT * FROM ticks MATCH_RECOGNIZE ({V_SHAPE})")
    assert whole
    common = f"WITH t AS (SELECT * FROM ticks) SELECT * FROM t MATCH_RECOGNIZE ({V_SHAPE}) AS m"
    assert sql(spark, common) == whole
    assert sql(spark, f"SELECT * FROM (SELECT * FROM ticks WHERE price > 0) MATCH_RECOGNIZE ({V_SHAPE}) m") == whole


def test_a_clause_over_the_result_of_another(spark: SparkSession, table: DataFrame) -> None:
    inner = "SELECT symbol, top FROM ticks MATCH_RECOGNIZE (" + V_SHAPE + ")"
    outer = "PARTITION BY symbol ORDER BY top MEASURES COUNT(*) AS n PATTERN (A+)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sql(spark, f"SELECT * FROM ({inner}) MATCH_RECOGNIZE ({outer})")
    counts: dict[str, int] = {}
    for symbol, _ in sql(spark, inner):
        counts[symbol] = counts.get(symbol, 0) + 1
    assert found == sorted(counts.items())


def test_a_bare_clause_on_a_frame(table: DataFrame) -> None:
    found = row_pattern_frame(table, SourceText(V_SHAPE))
    assert found.columns == ["symbol", "top", "bottom", "n"]
    assert [kind for _, kind in found.dtypes] == ["string", "int", "int", "bigint"]


def test_rows_need_an_order(table: DataFrame) -> None:
    with pytest.raises(UsageError, match="needs ORDER BY"):
        row_pattern_frame(table, SourceText("PARTITION BY symbol MEASURES COUNT(*) AS n PATTERN (A+)"))


def test_rows_that_tie_are_told_of_and_ordered_by_other_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1, v) for v in (3, 1, 2)], "k string, t int, v int")
    clause = SourceText("PARTITION BY k ORDER BY t MEASURES array_agg(v) AS vs PATTERN (A+)")
    with pytest.warns(DataWarning, match="ORDER BY t is not unique: 2 rows tie; add a column"):
        found = row_pattern_frame(frame, clause).collect()
    assert found[0]["vs"] == [1, 2, 3]


def test_spark_evaluates_functions_that_weft_does_not_know(table: DataFrame) -> None:
    clause = """PARTITION BY symbol ORDER BY ts MEASURES format_number(LAST(A.price) + 0.5, 1) AS shown,
                FIRST(soundex(name)) AS sound, MATCH_NUMBER() AS m, CLASSIFIER() AS c
                ALL ROWS PER MATCH PATTERN (A B)
                DEFINE A AS crc32(name) = crc32('n1'), B AS pmod(price, 7) > pmod(PREV(price), 7) AND A.price > 0"""
    found = row_pattern_frame(table, SourceText(clause))
    assert found.columns == ["symbol", "ts", "shown", "sound", "m", "c", "price", "name"]
    shown = sorted((row["symbol"], row["shown"], row["price"], row["c"], row["sound"]) for row in found.collect())
    assert shown == [
        ("x", "7.5", 6, "B", "N000"),
        ("x", "7.5", 7, "A", "N000"),
        ("x", "9.5", 4, "B", "N000"),
        ("x", "9.5", 9, "A", "N000"),
        ("y", "3.5", 3, "A", "N000"),
        ("y", "3.5", 6, "B", "N000"),
        ("y", "5.5", 5, "A", "N000"),
        ("y", "5.5", 6, "B", "N000"),
    ]


# ---------------------------------------------------------------- streams


def streamed(spark: SparkSession, folder: Path, clause: str, chunks: list[list[tuple[Any, ...]]], *, once: bool) -> Any:
    """What a stream over files gives, a file a trigger; with a restart before each file unless it is run at `once`."""
    source, out, checkpoint = folder / "in", folder / "out", folder / "checkpoint"
    source.mkdir()

    def run() -> None:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
        found = row_pattern_frame(frame.withWatermark("ts", "0 seconds"), SourceText(clause))
        query = found.writeStream.format("json").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(out)).awaitTermination()

    for number, chunk in enumerate(chunks):
        file = spark.createDataFrame(chunk, SCHEMA).coalesce(1)
        file.write.mode("append").json(str(folder / f"made{number}"))
        made = next((folder / f"made{number}").glob("*.json"))
        made.rename(source / f"{number:03}.json")
        if not once:
            run()
    if once:
        run()
    columns = row_pattern_frame(spark.createDataFrame([], SCHEMA), SourceText(clause)).schema
    return rows(spark.read.schema(columns).json(str(out)))


@pytest.mark.parametrize("once", [True, False])
def test_a_stream_gives_what_a_batch_gives(spark: SparkSession, tmp_path: Path, once: bool) -> None:
    clause = V_SHAPE.replace("COUNT(DOWN.*) AS n", "COUNT(DOWN.*) AS n, MATCH_NUMBER() AS m")
    ordered = sorted(ticks(), key=lambda row: row[1])
    closing = [(symbol, NOON + timedelta(seconds=100 + k), 5, "") for symbol in PRICES for k in (0, 50)]
    chunks = [ordered[:5], ordered[5:10], ordered[10:], closing, [("z", NOON + timedelta(seconds=500), 1, "")]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = streamed(spark, tmp_path, clause, chunks, once=once)
    whole = spark.createDataFrame([row for chunk in chunks for row in chunk], SCHEMA)
    assert found == rows(row_pattern_frame(whole, SourceText(clause)))
    assert found


def test_what_a_stream_cannot_have_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().withColumnRenamed("value", "price")
    timed = stream.withWatermark("timestamp", "1 second")
    measures = "MEASURES COUNT(*) AS n"
    for frame, text, reason in [
        (stream, f"ORDER BY timestamp {measures} PATTERN (A B)", "needs a watermark"),
        (timed, f"ORDER BY price {measures} PATTERN (A B)", "ORDER BY timestamp ASC first"),
        (timed, f"ORDER BY timestamp {measures} PATTERN (A $)", "a stream has none"),
        (timed, "ORDER BY timestamp ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A)", "needs WITHIN"),
    ]:
        with pytest.raises(UsageError, match=reason):
            row_pattern_frame(frame, SourceText(text))


def test_what_grows_without_end_is_told_of(spark: SparkSession) -> None:
    timed = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    with pytest.warns(DataWarning, match=r"B\+ may grow without end: add WITHIN, or end it with a variable"):
        row_pattern_frame(timed, SourceText("ORDER BY timestamp MEASURES COUNT(*) AS n PATTERN (A B+)"))


# ---------------------------------------------------------------- public functions


def test_the_public_functions_take_sessions_and_frames(spark: SparkSession, table: DataFrame) -> None:
    found = weft.sql(f"SELECT symbol, n FROM ticks MATCH_RECOGNIZE ({V_SHAPE}) WHERE n > 1", spark=spark)
    assert rows(found) == [("x", 2)]
    assert rows(weft.row_pattern(table, V_SHAPE).select("symbol", "n").where("n > 1")) == [("x", 2)]
    assert weft.sql("SELECT count(*) AS n FROM ticks", spark=spark).first()["n"] == len(ticks())
    with pytest.raises(UsageError, match="tables are the session's"):
        weft.sql("SELECT * FROM t MATCH_RECOGNIZE (…)", spark=spark, t=[])


def test_programs_of_other_languages_are_a_table_function(spark: SparkSession) -> None:
    events = [("A", 1, 5), ("B", 2, 6), ("A", 3, 7), ("C", 4, 8), ("B", 5, 9)]
    frame = spark.createDataFrame(events, "type string, ts long, v int")
    frame.createOrReplaceTempView("events")
    weft.register(spark)
    program = "SELECT * WHERE A AS a ; B AS b WITHIN 10 SECONDS"
    found = spark.sql(f"SELECT query, start, end, variables.b[0].v AS v FROM weft_match(TABLE(events), '{program}')")
    wanted = weft.match(frame, program).selectExpr("query", "start", "end", "variables.b[0].v AS v")
    assert rows(found) == rows(wanted)
    assert len(rows(found)) == 3
    apart = f"SELECT start FROM weft_match(TABLE(events), '{program}', partition_column => 'type')"
    assert rows(spark.sql(apart)) == []
