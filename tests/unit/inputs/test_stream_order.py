"""Stream order: by full precision, then by the columns that `order` names; however the input is partitioned."""

from __future__ import annotations

import warnings
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = "SELECT a[seq], b[seq] WHERE E AS a : E AS b"
ENGINES = ["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)]


def sequence(events: Any, engine: str = "local", **options: Any) -> list[Any]:
    """The values of seq in stream order."""
    found = [match.event for match in weft.detect(events, PAIRS, engine, **options)]
    return [found[0]["a.seq"], *(event["b.seq"] for event in found)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_are_ordered_before_they_are_cut_to_ticks(engine: str, unit: str) -> None:
    moments = pa.array([900, 100, 500, 300], pa.int64()).cast(pa.timestamp(unit))
    table = pa.table({"type": ["E"] * 4, "ts": moments, "seq": [9, 1, 5, 3]})
    assert sequence(table, engine) == [1, 3, 5, 9]


def test_times_are_ordered_before_they_are_cut_in_every_kind_of_input(tmp_path: Path) -> None:
    moments = [datetime(2024, 1, 1, 0, 0, 0, microsecond) for microsecond in (900, 100, 500)]
    rows = [{"type": "E", "ts": moment, "seq": moment.microsecond} for moment in moments]
    frame = pd.DataFrame(rows)
    texts = [{**row, "ts": str(row["ts"])} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("type,ts,seq\n" + "".join(f"E,{r['ts']},{r['seq']}\n" for r in texts))
    for events in (rows, frame, texts, str(tmp_path / "a.parquet"), str(tmp_path / "a.csv")):
        assert sequence(events) == [100, 500, 900]


def test_starts_are_ordered_by_full_precision_too() -> None:
    start = pa.array([300, 100, 200], pa.int64()).cast(pa.timestamp("us"))
    end = pa.array([5000] * 3, pa.int64()).cast(pa.timestamp("us"))
    assert sequence(pa.table({"type": ["E"] * 3, "start": start, "end": end, "seq": [3, 1, 2]})) == [1, 2, 3]


VALUES: list[tuple[list[Any], list[int]]] = [
    ([3, 1, 2], [2, 3, 1]),
    ([2**61 + 1, 2**61 + 3, 2**61 + 2], [1, 3, 2]),
    ([0.5, -1.5, 0.25], [2, 3, 1]),
    (["b", "a", "ab"], [2, 3, 1]),
    (["é", "z", ""], [3, 2, 1]),
    ([True, None, False], [2, 3, 1]),
    ([2, 1.5, "x"], [2, 1, 3]),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("values", "expected"), VALUES)
def test_order_names_columns_that_decide_between_equal_times(
    engine: str, values: list[Any], expected: list[int]
) -> None:
    rows = [{"type": "E", "ts": 7, "k": value, "seq": place} for place, value in enumerate(values, 1)]
    assert sequence(rows, engine, order="k") == expected
    rows = [{**row, "one": 1} for row in rows]
    assert sequence(rows, engine, order=["one", "k"]) == expected


def test_an_unknown_column_to_order_by_is_an_error() -> None:
    table = pa.table({"type": ["E"], "ts": [1], "seq": [1]})
    with pytest.raises(weft.InputError, match=r"no column 'sq' to order by.*did you mean 'seq'"):
        weft.count(table, PAIRS, order="sq")


def test_order_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("type,ts,seq\nE,1,2\nE,1,1\n")
    result = CliRunner().invoke(app, ["match", "-q", PAIRS, "--events", str(path), "--order", "seq"])
    assert '"event": {"a.seq": 1, "b.seq": 2}' in result.stdout


@pytest.mark.spark
def test_matches_do_not_depend_on_partitions(spark: SparkSession) -> None:
    count = 60
    numbers = np.random.default_rng(1).permutation(count)
    rows = [("E", int(n) // 4, int(n), f"k{n:03d}") for n in numbers]
    frame = spark.createDataFrame(rows, "type string, ts bigint, seq bigint, name string")
    for order in ("seq", "name"):
        found = [
            sorted(
                tuple(row) for row in weft.match(spread, PAIRS, order=order).select("id", "start", "event").collect()
            )
            for spread in (frame.coalesce(1), frame.repartition(3), frame.repartition(5, "name"))
        ]
        assert len(found[0]) == count - 1
        assert found[0] == found[1] == found[2]


@pytest.mark.spark
def test_an_order_by_chance_is_warned_of(spark: SparkSession) -> None:
    rows = [("E", 1, n) for n in range(6)]
    frame = spark.createDataFrame(rows, "type string, ts bigint, seq bigint").repartition(3)
    with pytest.warns(UserWarning, match=r"chance decided.*order='seq'"):
        weft.count(frame, "SELECT * WHERE E AS e")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.count(frame, "SELECT * WHERE E AS e", order="seq")
        weft.count(frame.coalesce(1), "SELECT * WHERE E AS e")


@pytest.mark.spark
def test_spark_frames_with_timestamps_are_detected_and_counted(spark: SparkSession) -> None:
    rows = [("E", datetime(2024, 1, 1, 0, 0, 0, microsecond), microsecond) for microsecond in (900, 100, 500)]
    frame = spark.createDataFrame(rows, "type string, ts timestamp, seq bigint").repartition(3)
    for engine in (None, "local", "spark", "meaning"):
        assert weft.count(frame, "SELECT * WHERE E AS e", engine) == {"q": 3}
        assert sequence(frame, engine) == [100, 500, 900]
