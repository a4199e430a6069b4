"""What tests do through Spark Connect, in a process of its own: `python connect_job.py FOLDER`. Prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.cluster_job import QUERY, events, found_in, write_files

import weft


def main(folder: Path) -> None:
    table = events()
    matches = list(weft.detect(table, QUERY))
    last = max(match.end for match in matches)
    expected = sorted(match.id for match in matches)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    (folder / "in").mkdir()
    write_files(table, folder / "in")
    frame = spark.read.parquet(str(folder / "in"))
    settings = dict(spark.conf.getAll)
    batch = found_in(weft.match(frame, QUERY))
    started = time.perf_counter()
    again = found_in(weft.match(frame, QUERY))
    seconds = time.perf_counter() - started
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    matched = weft.match(stream.withWatermark("ts", "0 seconds"), QUERY)
    writer = matched.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    found = found_in(spark.read.parquet(str(folder / "out")))
    answer = {
        "batch": batch == again == expected,
        "stream": found == sorted(match.id for match in matches if match.end < last),
        "settings": dict(spark.conf.getAll) == settings,
    }
    print(f"second batch: {seconds:.1f} s", file=sys.stderr)
    print("triggers:", [p["durationMs"]["triggerExecution"] for p in query.recentProgress], file=sys.stderr)
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
