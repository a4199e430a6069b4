"""A DataFrame of Kafka's records as events: payloads are JSON, and each partition advances time separately."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.runtime.reading.fronts import MAX_JUMP, jump_ticks
from weft.runtime.spark.columns import arrow_schema
from weft.runtime.spark.connections.records import (
    Records,
    column_runs,
    decoded,
    is_kafka,
    payload_runs,
    schema_of,
)
from weft.runtime.spark.connections.streams import declared_columns
from weft.runtime.spark.jobs.job import Job
from weft.runtime.spark.packing.frames import check_columns
from weft.runtime.spark.watermark import Lateness


@dataclass(frozen=True)
class KafkaFrame:
    """A frame of records; `payload` are the columns of payloads, if they are said."""

    frame: DataFrame
    payload: StructType | None = None

    def columns(self, program: Program, type: str) -> pa.Schema:
        """The columns that results may show: those that are said, else those that the program declares."""
        return declared_columns(program.catalog, type) if self.payload is None else arrow_schema(self.payload)

    def runs(self, job: Job) -> DataFrame:
        """The runs of the records, as rows of RUN_DDL; every topic is a source."""
        if self.payload is None:
            return payload_runs(self.frame, job, Records(None))
        check_columns(self.payload.names, job.reading)
        rows, columns = decoded(self.frame, "json", self.payload)
        return column_runs(rows, columns, job, Records(None))

    def lateness(self, job: Job, delay: int | None) -> Lateness:
        """The watermark follows the slowest partition, less the delay."""
        if delay is None:
            warnings.warn(
                "a stream of Kafka's records has no watermark: an event that a trigger brings after later ones of its "
                "partition in earlier triggers is late and takes no part. Say how late events may be: delay=… in ticks",
                stacklevel=5,
            )
        elif delay < 0:
            raise UsageError(f"delay must not be negative, and it is {delay}")
        unit = job.reading.time_unit
        return Lateness(delay or 0, unit, jump=jump_ticks(MAX_JUMP, unit), topics=None)


def kafka_frame(
    frame: DataFrame, schema: StructType | None, payload: StructType | str | None, type: str
) -> KafkaFrame | None:
    """The frame as one of Kafka's records; None if it is none.

    `schema`: the frame's columns, None where it must not be asked: then `payload` says that it is one.
    """
    if payload is None and (schema is None or not is_kafka(schema, type)):
        return None
    return KafkaFrame(frame, schema_of(payload) if isinstance(payload, str) else payload)
