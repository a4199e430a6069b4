"""Functions that users declare, on Spark: sent along to tasks of batches and streams, with the same matches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import weft
from weft.algebra import functions

SCALE = 2
TEXT = """
pattern P sequence(A a[spark_far(a.x, 1) > 3], B b) where a.k = b.k context fixed 20 by k
  derive far = spark_far(a.x, b.x)
"""
ROWS = [{"type": "AB"[n % 2], "ts": n, "x": n * 7 % 11, "k": n // 2 % 3} for n in range(60)]


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_declared", {})
    weft.function(lambda x, y: np.hypot(x, y) * SCALE, name="spark_far")


def test_tasks_call_them(spark: SparkSession) -> None:
    program, frame = weft.compile(TEXT, language="epn"), spark.createDataFrame(ROWS)
    here = list(weft.detect(ROWS, program))
    assert len(here) > 3
    assert list(weft.detect(frame, program)) == here
    assert {row.id for row in weft.match(frame, program, strategy="key", lanes=3).collect()} == {m.id for m in here}


def test_mistakes_in_tasks_have_a_message(spark: SparkSession) -> None:
    weft.function(lambda x: x[:1], name="spark_short")
    program = weft.compile("pattern P any(A a[spark_short(a.x) > 3])", language="epn")
    with pytest.raises(Exception, match="the function 'spark_short' returns 1 value for"):
        weft.match(spark.createDataFrame(ROWS), program).collect()


def test_streams_call_them_in_each_trigger(spark: SparkSession, tmp_path: Path) -> None:
    program, source = weft.compile(TEXT, language="epn"), tmp_path / "in"
    source.mkdir()
    for number in range(3):
        part = ROWS[20 * number : 20 * number + 20]
        (source / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    stream = (
        spark.readStream.schema("type string, ts long, x long, k long")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
    )
    query = (
        weft.match(stream, program)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "state"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    ids = {row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    known = {match.id for match in weft.detect(ROWS, program)}
    assert len(ids) > 2
    assert ids <= known  # matches of the last window wait for the end
