"""Matches of a trigger into a topic or a table.

A topic gets them at least once: a trigger that is tried again writes its records again, with the same ids. A table of
Delta gets them exactly once: each trigger is one transaction, which Delta knows by the run and the trigger's number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.errors import UsageError
from weft.runtime.spark.columns import spark_columns
from weft.runtime.spark.connections.addresses import DeltaAddress, KafkaAddress
from weft.runtime.spark.connections.packages import needing
from weft.runtime.writing.match_lines import json_lines


class MatchWriter(Protocol):
    """Where the matches of a trigger go, if that is no folder."""

    form: str  # of the files of a trigger with many matches: jsonl or parquet

    def write(self, session: SparkSession, batch: int, matches: pa.Table, files: Sequence[str]) -> None:
        """Write the matches of a trigger, and those in files that its tasks have written."""


class TopicWriter:
    """Writes each match as a record: the value is the line of JSON that files have, the key its id or another part."""

    form = "jsonl"

    def __init__(self, address: KafkaAddress, given: Mapping[str, str]) -> None:
        self._address = address
        clients = {name: value for name, value in given.items() if name.startswith("kafka.")}
        self._options = {**clients, "kafka.bootstrap.servers": address.servers, "topic": address.topic}

    def write(self, session: SparkSession, batch: int, matches: pa.Table, files: Sequence[str]) -> None:
        """Write a record for each match."""
        lines = b"".join(json_lines(rows) for rows in matches.to_batches()).decode().splitlines()
        frames = []
        if lines:
            frames.append(session.createDataFrame(pa.table({"value": lines})).coalesce(1))  # in match order
        if files:
            frames.append(session.read.text(list(files)))
        values = frames[0] if len(frames) == 1 else frames[0].union(frames[1])
        key = F.get_json_object("value", f"$.{self._address.options.get('key', 'id')}")
        with needing(session, "kafka"):
            values.select(key.alias("key"), "value").write.format("kafka").options(**self._options).save()


class TableWriter:
    """Appends the matches of each trigger to a Delta table, in one transaction."""

    form = "parquet"

    def __init__(self, address: DeltaAddress, run: Callable[[], str | None]) -> None:
        self._address = address
        self._run = run  # the id of the run, known when it has begun

    def write(self, session: SparkSession, batch: int, matches: pa.Table, files: Sequence[str]) -> None:
        """Append them, unless they are there already."""
        columns = spark_columns(matches.schema)
        rows: DataFrame = session.createDataFrame(matches, columns)
        if files:
            rows = rows.unionByName(session.read.schema(columns).parquet(*files))
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer = writer.option("txnAppId", f"weft-{self._run()}").option("txnVersion", str(batch))
        try:
            with needing(session, "delta"):
                writer.save(self._address.path)
        except AnalysisException as problem:
            first = str(problem).strip().splitlines()[0]
            raise UsageError(f"matches cannot be appended to {self._address}: {first}") from None
