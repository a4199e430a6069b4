"""A frame that is a plain scan of Parquet files gives the same matches, whoever reads the files."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import weft
from weft.errors import UsageError
from weft.runtime.spark.files.batches import Piece
from weft.runtime.spark.files.direct import DirectRead
from weft.runtime.spark.files.scans import UnknownScanError, scan_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ALL = "SELECT * WHERE A AS a PARTITION BY [k] WITHIN 10 EVENTS"
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[x > 1] PARTITION BY [k] WITHIN 1 HOUR"
EDGES = (None, math.nan, -0.0, 0.0, 1.5, math.inf, -math.inf)
COLUMNS = (
    "type string, ts long, k string, x double, n long, d decimal(20,2), at timestamp, plain timestamp_ntz, "
    "b boolean, s struct<k: string>"
)


def rows() -> list[tuple[object, ...]]:
    noon = datetime(2024, 5, 1, 12)
    return [
        (
            "AB"[number % 2],
            number,
            [None, "u", "v", "é"][number // 2 % 4],
            EDGES[number % len(EDGES)],
            [None, 2**53, 2**53 + 1, -1][number % 4],
            Decimal(number) / 4,
            noon + timedelta(seconds=number),
            noon + timedelta(seconds=number),
            [None, True, False][number % 3],
            (["u", "v"][number % 2],),
        )
        for number in range(90)
    ]


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = str(tmp_path_factory.mktemp("scan") / "events with a space")
    spark.createDataFrame(rows(), COLUMNS).repartition(3).write.parquet(folder)
    return spark.read.parquet(folder)


def found(frame: DataFrame, program: str, **options: object) -> tuple[str, list[str]]:
    matches = weft.match(frame, program, **options)
    shown = matches.select(F.to_json(F.struct("query", "start", "end", "variables", "event")))
    return matches.scan, sorted(row[0] for row in shown.collect())


def same(frame: DataFrame, program: str = PAIRS, **options: object) -> str:
    scan, matches = found(frame, program, **options)
    assert matches == found(frame, program, scan="spark", **options)[1]
    assert matches
    return scan


@pytest.mark.parametrize("time", ["at", "plain"])
def test_plain_scan(files: DataFrame, time: str) -> None:
    assert same(files, time=time) == "direct scan"


def test_selected_and_renamed_columns(files: DataFrame) -> None:
    frame = files.where("b").select("ts", "type", files.k.alias("key"), files.n.alias("x"))
    assert same(frame, "SELECT * WHERE A AS a PARTITION BY [key] WITHIN 10 EVENTS") == "direct scan"


def test_nested_field(files: DataFrame) -> None:
    assert same(files, "SELECT * WHERE A AS a ; A AS c PARTITION BY [s.k] WITHIN 10 EVENTS") == "direct scan"


CONDITIONS = (
    "x > 0",
    "x >= 1.5",
    "x < 1",
    "x <= 0",
    "x = 0",
    "NOT x > 0",
    "NOT (x = 0 OR n = -1)",
    "x IS NULL OR x > 1e300D",
    "n = 9007199254740993",
    "n > 9007199254740992L AND k IS NOT NULL",
    "k IN ('u', 'é')",
    "NOT k IN ('u')",
    "k > 'v'",
    "k LIKE 'u%'",
    "b",
    "NOT b",
    "at > TIMESTAMP'2024-05-01 12:00:30'",
    "plain <= TIMESTAMP_NTZ'2024-05-01 12:00:30'",
    "0 < x",
)


def test_filters_mean_what_they_mean_to_spark(files: DataFrame) -> None:
    for condition in CONDITIONS:
        frame = files.where(condition)
        scan = scan_of(frame)
        read = DirectRead({"ts": "ts"}, scan.types, scan.condition, ())
        pieces = [Piece(path, "parquet", groups=range(1)) for path in scan.paths]
        times = [time for piece in pieces for rows in read.batches(piece) for time in rows.column(0).to_pylist()]
        assert sorted(times) == [row.ts for row in frame.select("ts").orderBy("ts").collect()], condition
        assert times, condition


@pytest.mark.parametrize("condition", ["x + 1 > 2", "d > 3", "lower(k) = 'u'", "x > double('NaN')", "s.k = 'u'"])
def test_other_filters_are_left_to_spark(files: DataFrame, condition: str) -> None:
    with pytest.raises(UnknownScanError):
        scan_of(files.where(condition))


def test_other_frames_are_left_to_spark(spark: SparkSession, files: DataFrame, tmp_path: Path) -> None:
    files.write.partitionBy("type").parquet(str(tmp_path / "parts"))
    text = str(tmp_path / "text")
    files.select("type", "ts", "k", "x").write.json(text)
    frames = [
        files.withColumn("x", files.x * 2),
        files.limit(80),
        files.union(files),
        spark.createDataFrame(rows(), COLUMNS),
        spark.read.parquet(str(tmp_path / "parts")),
        spark.read.json(text),
    ]
    for frame in frames:
        with pytest.raises(UnknownScanError):
            scan_of(frame)
    assert same(frames[0], ALL).startswith("Spark's scan: a column is computed: ")


def test_file_that_is_not_as_the_frame_says(spark: SparkSession, files: DataFrame, tmp_path: Path) -> None:
    folder = str(tmp_path / "evolved")
    files.drop("x").write.parquet(folder)
    files.write.mode("append").parquet(folder)
    assert "is not as in the frame" in same(spark.read.schema(files.schema).parquet(folder), ALL)


def test_rejects_are_the_same(files: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "untimed")
    spark.createDataFrame([("A", None, "u"), ("A", 1, "u")], "type string, ts long, k string").write.parquet(folder)
    frame = spark.read.parquet(folder)
    direct, by_spark = (weft.match(frame, ALL, rejects=True, scan=scan) for scan in ("auto", "spark"))
    assert direct.scan == "direct scan"
    wanted = ["query", "start", "reason", "rejected"]
    assert sorted(map(str, direct.select(*wanted).collect())) == sorted(map(str, by_spark.select(*wanted).collect()))


def test_plan_names_the_scan(files: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    weft.match(files, ALL).explain()
    assert "weft_direct_scan" in capsys.readouterr().out
    weft.match(files, ALL, scan="spark").explain()
    assert "FileScan parquet" in capsys.readouterr().out


def test_detect_and_count_read_the_files_themselves(files: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sorted(row["id"] for row in weft.match(files, PAIRS, scan="spark").collect())
    assert sorted(match.id for match in weft.detect(files, PAIRS)) == ids
    assert weft.count(files.where(F.length("k") > 0), PAIRS) == {"q": len(ids)}  # Spark reads this one

    def refused(*_: object) -> None:
        raise AssertionError("rows of a plain scan came from Spark")

    monkeypatch.setattr("weft.runtime.spark.files.direct.run_frame", refused)
    assert sorted(match.id for match in weft.detect(files, PAIRS)) == ids
    assert weft.count(files, PAIRS) == {"q": len(ids)}


def test_unknown_way_to_scan(files: DataFrame) -> None:
    with pytest.raises(UsageError, match="scan must be one of 'auto', 'spark', not 'arrow'"):
        weft.match(files, ALL, scan="arrow")
