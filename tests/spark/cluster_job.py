"""What tests have a cluster do, in a process of its own: `python cluster_job.py MASTER FOLDER ARCHIVE STATE…`.

Weft comes to the executors in the archive, their cache is empty, and one of them is killed in the middle of the batch
and one in the middle of each stream. Prints what was found, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import weft
from weft.kernels.warming import compiled_files

QUERY = "SELECT a[v] WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 SECONDS"
QUIET = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
EVENTS, FILES = 600, 3


def events() -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([1_700_000_000_000 + 100 * n for n in range(EVENTS)], pa.timestamp("ms", "UTC")),
            "type": ["B" if n % 7 == 0 or n == EVENTS - 1 else "A" for n in range(EVENTS)],
            "k": [n % 5 for n in range(EVENTS)],
            "v": list(range(EVENTS)),
        }
    )


def session(master: str, folder: Path, archive: str) -> SparkSession:
    settings = {
        "spark.archives": f"{archive}#weft_code",
        "spark.executorEnv.PYTHONPATH": "weft_code",
        "spark.executorEnv.WEFT_CACHE": str(folder / "cache"),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUIET,
        "spark.driver.extraJavaOptions": QUIET,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def killing(number: int, mark: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows as they are; who comes upon one with that number first is killed with the executor it works for."""

    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if number in batch.column("v").to_pylist():
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
                    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    return passed


def where_weft_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from importlib.util import find_spec

    list(batches)
    spec = find_spec("weft")
    yield pa.RecordBatch.from_pydict({"place": [str(spec and spec.origin)]})


def found_in(rows: DataFrame) -> list[str]:
    return sorted(row.id for row in rows.where("query is not null").select("id").collect())


def write_files(table: pa.Table, folder: Path) -> None:
    """The events in several files, in order: a stream reads the oldest file first, and quick writes have one time."""
    size = EVENTS // FILES
    for part in range(FILES):
        file = folder / f"{part}.parquet"
        pq.write_table(table.slice(part * size, size), file)
        os.utime(file, (1000 + part, 1000 + part))


def in_batch(frame: DataFrame, folder: Path) -> list[str]:
    killer = killing(EVENTS // 2, str(folder / "batch"))
    return found_in(weft.match(frame.mapInArrow(killer, frame.schema), QUERY))


def in_stream(spark: SparkSession, frame: DataFrame, folder: Path, state: str) -> list[str]:
    """The matches of a stream that loses an executor; with `state` in files, which all executors see here."""
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    killer = killing(EVENTS // 2 + 1, str(folder / state))
    matches = weft.match(stream.mapInArrow(killer, frame.schema), QUERY, delay=0, state=state)
    out = str(folder / f"out-{state}")
    writer = matches.writeStream.format("parquet").option("checkpointLocation", str(folder / f"checkpoint-{state}"))
    writer.trigger(availableNow=True).start(out).awaitTermination()
    return found_in(spark.read.parquet(out))


def main(master: str, folder: Path, archive: str, *states: str) -> None:
    table = events()
    matches = list(weft.detect(table, QUERY))
    last = max(match.end for match in matches)  # in the stream the last event waits for later ones
    here = {file.name for file in compiled_files()}
    spark = session(master, folder, archive)
    (folder / "in").mkdir()
    write_files(table, folder / "in")
    frame = spark.read.parquet(str(folder / "in"))
    batch = in_batch(frame, folder)
    streams = {state: in_stream(spark, frame, folder, state) for state in states}
    told = sorted(match.id for match in matches if match.end < last)
    place = spark.range(1).mapInArrow(where_weft_is, "place string").first()
    answer = {
        "matches": len(matches),
        "batch": batch == sorted(match.id for match in matches),
        "streams": {state: found == told for state, found in streams.items()},
        "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
        "place": place["place"] if place else "",
        "compiled_again": sorted(here & {file.name for file in (folder / "cache").rglob("*")}),
        "killed": sorted(name for name in ("batch", *states) if (folder / name).exists()),
    }
    print(json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
