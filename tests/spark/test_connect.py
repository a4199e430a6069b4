"""Through Spark Connect, and in a declarative pipeline, whose functions may ask nothing: the same matches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.spark.standalone import SOURCE, SPARK, environment

import weft

pytestmark = pytest.mark.spark
TOGETHER = "both take the port of Spark Connect"
JOB = Path(__file__).with_name("connect_job.py")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment()
    paths = [str(SOURCE), str(JOB.parents[2]), env.get("PYTHONPATH", "")]
    env |= {"PYTHONPATH": ":".join(path for path in paths if path)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done


def test_batch_and_stream_through_connect(tmp_path: Path) -> None:
    done = run([sys.executable, "-W", "ignore", str(JOB), str(tmp_path)], tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == {"batch": True, "stream": True, "settings": True}


QUERY = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 10 EVENTS"
PIPELINE = """
name: fire
storage: file://{folder}/storage
libraries:
  - glob:
      include: steps/**
configuration:
  spark.sql.shuffle.partitions: "2"
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
"""
STEPS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import weft

spark = SparkSession.active()
QUERY = "{query}"
COLUMNS = StructType().add("ts", LongType()).add("type", StringType()).add("k", LongType())


@dp.table
def happened():
    return spark.readStream.schema(COLUMNS).json("{folder}/in")


@dp.materialized_view
def found():
    return weft.match(spark.read.table("happened"), QUERY, schema=COLUMNS)


@dp.table
def found_live():
    stream = spark.readStream.schema(COLUMNS).json("{folder}/in")  # Spark must know what a stateful operator reads
    return weft.match(stream, QUERY, schema=COLUMNS, streaming=True, delay=0)
"""


def test_a_declarative_pipeline(tmp_path: Path) -> None:
    rows = [{"ts": n, "type": "AB"[n % 2], "k": n % 3} for n in range(20)]
    for name in ("steps", "in"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "spark-pipeline.yml").write_text(PIPELINE.format(folder=tmp_path))
    (tmp_path / "steps" / "steps.py").write_text(STEPS.format(folder=tmp_path, query=QUERY))
    run([str(SPARK / "bin" / "spark-pipelines"), "run"], tmp_path)
    matches = list(weft.detect(rows, QUERY))
    last = len(rows) - 1  # in the stream the last event waits for later ones
    tables = tmp_path / "spark-warehouse"
    assert ids_in(tables / "found") == sorted(match.id for match in matches)
    assert ids_in(tables / "found_live") == sorted(match.id for match in matches if match.end < last)


def ids_in(table: Path) -> list[str]:
    return sorted(pq.read_table(table)["id"].to_pylist())
