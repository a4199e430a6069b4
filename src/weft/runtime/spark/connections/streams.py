"""Topics and tables as sources of a run: what each is called, its columns, and its runs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.errors import UsageError
from weft.runtime.data.joint_types import joint_schema
from weft.runtime.reading.order import Reading
from weft.runtime.reading.payloads import payload_chunk
from weft.runtime.spark.columns import arrow_schema, spark_columns
from weft.runtime.spark.connections.addresses import Address, DeltaAddress, KafkaAddress
from weft.runtime.spark.connections.kafka import RECORDS_PER_TRIGGER, kafka_records, kafka_stream, partitions_of
from weft.runtime.spark.connections.packages import needing
from weft.runtime.spark.connections.records import Records, column_runs, decoded, payload_runs, place_of
from weft.runtime.spark.jobs.job import Job
from weft.schema import Catalog, Kind

SAMPLE = 1000  # records that are asked for their columns
LOOK = 1.0  # seconds between looks for the first of them
_KINDS = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.TEXT: pa.string(), Kind.BOOL: pa.bool_()}


@dataclass(frozen=True)
class Connected:
    """A source of a run that is no folder; `number` is the source's."""

    number: int
    name: str
    address: Address
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_topic(self) -> bool:
        """Whether its partitions have times of their own."""
        return isinstance(self.address, KafkaAddress)

    @property
    def place(self) -> str:
        """What it is called in the places of late events."""
        address = self.address
        return place_of(address.topic, None) if isinstance(address, KafkaAddress) else str(address)


def runs_of(
    session: SparkSession,
    source: Connected,
    job: Job,
    given: Mapping[str, str],
    ahead: float | None,
    at_once: int | None = RECORDS_PER_TRIGGER,
) -> DataFrame:
    """The runs of a topic or a table; `given` are options of Kafka's, `ahead` seconds and `at_once` records."""
    address = source.address
    if isinstance(address, DeltaAddress):
        frame = delta_stream(session, address)
        return column_runs(frame, frame.schema, job, Records(source.number, None, source.defaults, ahead))
    how = Records(source.number, address.topic, source.defaults, ahead)
    frame = kafka_stream(session, address, given, at_once)
    schema = address.schema
    if schema is None:
        return payload_runs(frame, job, how)
    rows, columns = decoded(frame, address.format, schema)
    return column_runs(rows, columns, job, how)


def delta_stream(session: SparkSession, address: DeltaAddress) -> DataFrame:
    """The rows of a Delta table, and those that are appended to it."""
    reader = session.readStream.format("delta")
    starting = address.options.get("starting", "earliest")
    if starting != "earliest":
        if starting != "latest" and not starting.isdigit():
            raise UsageError(f"{address}: starting={starting} is neither earliest, latest nor a version of the table")
        reader = reader.option("startingVersion", starting)
    with needing(session, "delta"):
        frame = reader.load(address.path)
        frame.schema  # noqa: B018 # what is missing shows now
        return frame


def known_partitions(
    session: SparkSession, sources: Sequence[Connected], given: Mapping[str, str], kept: Path
) -> frozenset[str]:
    """The partitions that topics had when the run began, as the names of their times.

    They are kept in a file: a trigger that is tried again must wait for the same ones. Later ones are known when they
    send.
    """
    topics = [source for source in sources if source.is_topic]
    if not topics:
        return frozenset()
    if not kept.exists():
        found = {
            s.name: partitions_of(session, s.address, given) for s in topics if isinstance(s.address, KafkaAddress)
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
    known = json.loads(kept.read_text(encoding="utf-8"))
    return frozenset(f"{source.number}/{part}" for source in topics for part in known.get(source.name, ()))


def columns_of(
    session: SparkSession,
    source: Connected,
    catalog: Catalog,
    reading: Reading,
    given: Mapping[str, str],
    *,
    waits: bool,
) -> pa.Schema:
    """The columns of a source's events: as its schema or the table says; else as declared, or as first records have.

    `waits`: until there are records.
    """
    address = source.address
    extra = pa.schema([(name, pa.string()) for name in source.defaults])
    if isinstance(address, DeltaAddress):
        return joint_schema([arrow_schema(delta_stream(session, address).schema), extra])
    if address.schema is not None:
        _, columns = decoded(kafka_records(session, address, given), address.format, address.schema)
        return joint_schema([arrow_schema(columns), extra])
    declared = declared_columns(catalog, reading.type)
    if len(declared):
        return joint_schema([declared, extra])
    while not (sampled := _sampled(session, address, reading, given)) and waits:
        time.sleep(LOOK)
    return joint_schema([*sampled, extra])


def declared_columns(catalog: Catalog, type: str) -> pa.Schema:
    """The columns of all event types that a program declares; none if it declares none."""
    kinds = list(catalog.all_types())
    schemas = [pa.schema([(name, _KINDS[kind]) for name, kind in one.attributes]) for one in kinds]
    return joint_schema([pa.schema([(type, pa.string())]), *schemas]) if any(map(len, schemas)) else pa.schema([])


def _sampled(
    session: SparkSession, address: KafkaAddress, reading: Reading, given: Mapping[str, str]
) -> list[pa.Schema]:
    rows = kafka_records(session, address, given).select("value").limit(SAMPLE).toArrow()
    payloads = [payload for payload in rows["value"].to_pylist() if payload]
    if not payloads:
        return []
    chunk = payload_chunk(payloads, lambda row: ("", row), reading.time_unit, set())
    return [arrow_schema(spark_columns(chunk.rows(None).schema))]
