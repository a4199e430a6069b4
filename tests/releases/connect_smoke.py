"""Match a batch and a stream through Spark Connect: `python connect_smoke.py FOLDER`. Prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.releases.test_smoke import COLUMNS, EVENTS, QUERY, expected, ids

import weft
from weft.errors import UsageError
from weft.runtime.spark.compat import OLDEST_FOR_CONNECTED_STREAMS as OLDEST
from weft.runtime.spark.compat import RELEASE


def streamed(spark: SparkSession, folder: Path) -> list[str]:
    stream = spark.readStream.schema(COLUMNS).json(str(folder / "in"))
    writer = weft.match(stream, QUERY, delay=0, lanes=2).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True)
    writer.start(str(folder / "out")).awaitTermination()
    return ids(spark.read.parquet(str(folder / "out")))


def is_refused(spark: SparkSession, folder: Path) -> bool:
    try:
        streamed(spark, folder)
    except UsageError as refusal:
        return "through Spark Connect need PySpark 4.1 or newer, and PySpark 4.0." in str(refusal)
    return False


def main(folder: Path) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    frame = spark.createDataFrame([tuple(event.values()) for event in EVENTS], COLUMNS)
    batch = ids(weft.match(frame, QUERY)) == expected()
    stream = is_refused(spark, folder) if RELEASE < OLDEST else streamed(spark, folder) == expected(stream=True)
    print(json.dumps({"batch": batch, "stream": stream}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
