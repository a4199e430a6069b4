"""What every supported release of Spark must be able to do; `make versions` runs this on each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.sql import functions as F

import weft
from weft.errors import UsageError
from weft.runtime.spark.compat import OLDEST_FOR_STREAMS, RELEASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
QUERY = "SELECT a[v], b FROM S WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 SECONDS"
COLUMNS = "ts long, type string, k long, v double"
EVENTS = [
    {"ts": 1_700_000_000_000 + 500 * n, "type": "B" if n % 7 == 0 or n == 119 else "A", "k": n % 5, "v": n / 2}
    for n in range(120)
]
LAST = EVENTS[-1]["ts"]  # in a stream the last event waits for later ones
needs_streams = pytest.mark.skipif(RELEASE < OLDEST_FOR_STREAMS, reason="this release has no stateful Python operators")


def expected(*, stream: bool = False) -> list[str]:
    found = weft.detect(EVENTS, QUERY)
    return sorted(match.id for match in found if not stream or match.end < LAST)


def ids(frame: DataFrame) -> list[str]:
    return sorted(row.id for row in frame.select("id").collect())


def frame_of(spark: SparkSession, events: list[dict[str, Any]] = EVENTS) -> DataFrame:
    return spark.createDataFrame([tuple(event.values()) for event in events], COLUMNS)


def write(folder: Path, number: int, events: list[dict[str, Any]]) -> None:
    """Write a file of a stream; streams read the oldest first, so files need times of their own."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{number}.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    os.utime(file, (1000 + number, 1000 + number))


def test_a_frame_gives_the_matches_of_the_local_engine(spark: SparkSession) -> None:
    found = weft.match(frame_of(spark), QUERY, lanes=3)
    assert ids(found) == expected()
    assert found.counts.get["matches"] == len(expected())


def test_positions_are_counted_on_request(spark: SparkSession) -> None:
    found = weft.match(frame_of(spark), QUERY, lanes=3, positions=True).select("id", "positions").collect()
    wanted = sorted((match.id, list(match.positions)) for match in weft.detect(EVENTS, QUERY))
    assert sorted((row.id, row.positions) for row in found) == wanted


def test_row_patterns_of_sql(spark: SparkSession) -> None:
    frame_of(spark).createOrReplaceTempView("smoke")
    query = """SELECT * FROM smoke MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
        MEASURES A.v AS first_v, LAST(B.v) AS last_v ONE ROW PER MATCH PATTERN (A B) DEFINE B AS B.type = 'B')"""
    events = [{**event, "type": str(event["type"])} for event in EVENTS]
    here = weft.sql(query.replace("smoke", "t"), t=events).to_pylist()
    found = [row.asDict() for row in weft.sql(query, spark=spark).collect()]
    assert sorted(found, key=repr) == sorted(here, key=repr) != []


def test_rows_of_matches(spark: SparkSession) -> None:
    frame = frame_of(spark)
    rows = weft.rows(weft.match(frame, QUERY), frame)
    assert rows.count() == 2 * len(expected())
    assert {"ts", "type", "k", "v"} <= set(rows.columns)


def test_rejects_have_their_reasons(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, "A", 1, 1.0), (1, "A", 1, 1.0), (2, "B", 1, 1.0)], COLUMNS)
    found = weft.match(frame, QUERY, rejects=True).collect()
    assert len([row for row in found if row.query is not None]) == 1
    assert [row.reason is None for row in found if row.query is None] == [False]


def test_data_of_this_process_and_files(spark: SparkSession, tmp_path: Path) -> None:
    assert sorted(match.id for match in weft.detect(EVENTS, QUERY, engine="spark")) == expected()
    write(tmp_path / "in", 0, EVENTS)
    assert ids(weft.match(str(tmp_path / "in" / "0.jsonl"), QUERY)) == expected()
    assert weft.count(frame_of(spark), QUERY) == weft.count(EVENTS, QUERY)


@needs_streams
def test_a_stream_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / "in", number, EVENTS[60 * number : 60 * (number + 1)])
        stream = spark.readStream.schema(COLUMNS).json(str(tmp_path / "in"))
        writer = weft.match(stream, QUERY, delay=0, lanes=2).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.start(str(tmp_path / "out")).awaitTermination()
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == expected(stream=True)


@needs_streams
def test_a_stream_follows_the_watermark_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS)
    stream = spark.readStream.schema(COLUMNS).json(str(tmp_path / "in")).withColumn("ts", F.timestamp_millis("ts"))
    writer = weft.match(stream.withWatermark("ts", "0 seconds"), QUERY, lanes=2).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
    writer.start(str(tmp_path / "out")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == len(expected(stream=True))


def command(*arguments: str, hidden: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of weft's in a process of its own; `hidden`: a package that cannot be imported there."""
    start = f"import sys; sys.modules[{hidden!r}] = None; from weft.__main__ import main; main()"
    module = ["-c", start] if hidden else ["-m", "weft"]
    done = subprocess.run(
        [sys.executable, *module, *arguments], capture_output=True, text=True, timeout=900, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_once(folder: Path, until: str) -> subprocess.CompletedProcess[str]:
    places = ["--sink", str(folder / "out"), "--checkpoint", str(folder / "state")]
    source = ["--query", QUERY, "--source", f"S={folder / 'in'}", "--until", until, "--files-per-trigger", "1"]
    return command("run", *source, *places)


@needs_streams
def test_a_run_goes_on_after_a_restart(tmp_path: Path) -> None:
    for number, until in enumerate(("read", "complete")):
        write(tmp_path / "in", number, EVENTS[60 * number : 60 * (number + 1)])
        done = run_once(tmp_path, until)
        assert done.returncode == 0, done.stderr
    lines = [line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert sorted(json.loads(line)["id"] for line in lines) == expected()


@pytest.mark.skipif(RELEASE >= OLDEST_FOR_STREAMS, reason="this release has streams")
def test_streams_are_refused_with_both_versions(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS)
    stream = spark.readStream.schema(COLUMNS).json(str(tmp_path / "in"))
    with pytest.raises(UsageError, match=r"streams need PySpark 4\.0 or newer, and PySpark 3\.5\.\d+ is installed"):
        weft.match(stream, QUERY, delay=0)
    done = run_once(tmp_path, "read")
    assert done.returncode == 2
    assert "need PySpark 4.0 or newer" in done.stderr


def test_a_file_is_matched_without_protobuf(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS)
    events = ["--events", str(tmp_path / "in" / "0.jsonl")]
    done = command("match", "--query", QUERY, *events, "--engine", "spark", "--count", hidden="google")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["count"] == len(expected())


@needs_streams
def test_a_run_without_protobuf_says_so(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS)
    places = ["--sink", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "state"), "--until", "read"]
    done = command("run", "--query", QUERY, "--source", f"S={tmp_path / 'in'}", *places, hidden="google")
    assert done.returncode == 2
    assert "pip install protobuf" in done.stderr


def has_connect() -> bool:
    """Whether there is a server of Spark Connect, too: with 3.5 its classes do not come from PyPI."""
    jars = Path(pyspark.__file__).parent / "jars"
    return find_spec("grpc") is not None and any(jars.glob("spark-connect_*"))


@pytest.mark.skipif(not has_connect(), reason="Spark Connect is not installed")
def test_spark_connect(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, EVENTS)
    job = str(Path(__file__).with_name("connect_smoke.py"))
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    start = [sys.executable, "-W", "ignore", job, str(tmp_path)]
    done = subprocess.run(start, env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"batch": True, "stream": True}
