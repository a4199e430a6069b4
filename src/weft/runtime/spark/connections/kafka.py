"""Topics of Kafka, as Spark's connector reads and writes them: options, partitions, and records as events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from weft.errors import UsageError, did_you_mean
from weft.runtime.spark.connections.addresses import KafkaAddress
from weft.runtime.spark.connections.packages import needing

RECORDS_PER_TRIGGER = 1_000_000
# Options of Spark's connector, by their own names; all others are those of Kafka's clients, which it calls `kafka.…`.
_OF_SPARK = frozenset(
    [
        "failOnDataLoss",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "includeHeaders",
        "minPartitions",
        "maxRecordsPerPartition",
        "startingOffsetsByTimestampStrategy",
        "kafka.group.id",
    ]
)
# What weft says itself.
_NOT_GIVEN = {
    "bootstrap.servers": "the address says it",
    "subscribe": "the address names the topic",
    "subscribePattern": "a source is one topic",
    "assign": "a source is one topic",
    "topic": "the address names the topic",
    "startingOffsets": "use ?starting=earliest, latest or a time",
    "endingOffsets": "a stream has no end; --until read stops at what is there",
}
_CLIENT_TIMEOUTS_MS = {"default.api.timeout.ms": "15000", "request.timeout.ms": "10000"}  # of questions about a topic


def client_options(given: Sequence[str]) -> dict[str, str]:
    """`OPTION=VALUE` texts, and files of such lines as `@FILE`, as the options of Spark's connector."""
    found: dict[str, str] = {}
    for text in given:
        for line in _lines(text[1:]) if text.startswith("@") else [text]:
            name, equals, value = line.partition("=")
            name = name.strip()
            if not equals or not name:
                raise UsageError(f"--kafka takes OPTION=VALUE, or @FILE with such lines, not {line!r}")
            plain = name.removeprefix("kafka.")
            if plain in _NOT_GIVEN:
                raise UsageError(f"--kafka {plain} is not for users: {_NOT_GIVEN[plain]}")
            near = did_you_mean(name, _OF_SPARK) if name.lower() in {own.lower() for own in _OF_SPARK} else None
            if name not in _OF_SPARK and near:
                raise UsageError(f"--kafka {name}: {near}")
            found[name if name in _OF_SPARK else f"kafka.{plain}"] = value.strip()
    return found


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as problem:
        raise UsageError(f"--kafka @{path}: {problem}") from None
    text = re.sub(r"\\\n\s*", "", text)  # a line goes on after a backslash, as in files of Java's
    return [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in "#!"]


def kafka_stream(
    session: SparkSession, address: KafkaAddress, given: Mapping[str, str], at_once: int | None = RECORDS_PER_TRIGGER
) -> DataFrame:
    """Return the records of a topic as a Spark stream; `at_once` is the default number of records in a trigger."""
    options = {**_starting(address), **given}
    if at_once is not None:
        options.setdefault("maxOffsetsPerTrigger", str(at_once))
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", address.servers)
    reader = reader.option("subscribe", address.topic)
    with needing(session, "kafka"):
        frame = reader.options(**options).load()
        frame.schema  # noqa: B018 # a missing connector shows now, on Spark Connect, too
        return frame


def kafka_records(session: SparkSession, address: KafkaAddress, given: Mapping[str, str]) -> DataFrame:
    """The records that a topic has now, as a whole input."""
    known = {name: value for name, value in given.items() if name.startswith("kafka.") or name == "failOnDataLoss"}
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", address.servers)
    with needing(session, "kafka"):
        return reader.option("subscribe", address.topic).options(**known).load()


def _starting(address: KafkaAddress) -> dict[str, str]:
    given = address.options.get("starting", "earliest")
    if given in ("earliest", "latest"):
        return {"startingOffsets": given}
    from weft.runtime.reading.times import parse_time

    found = (int(given), 0) if given.isdigit() else parse_time(given, "ms")
    if found is None:
        raise UsageError(f"{address}: starting={given} is neither earliest, latest nor a time (2026-11-18T08:00:00Z)")
    return {"startingTimestamp": str(found[0]), "startingOffsetsByTimestampStrategy": "latest"}


def partitions_of(session: SparkSession, address: KafkaAddress, given: Mapping[str, str]) -> list[int]:
    """The partitions that a topic has; refused if there is no such topic, or no broker. Nothing on Spark Connect."""
    java = getattr(session, "_jvm", None)
    if java is None:
        return []
    settings = java.java.util.Properties()
    clients = {name.removeprefix("kafka."): value for name, value in given.items() if name.startswith("kafka.")}
    for name, value in {"bootstrap.servers": address.servers, **_CLIENT_TIMEOUTS_MS, **clients}.items():
        settings.setProperty(name, value)
    try:
        admin = java.org.apache.kafka.clients.admin.AdminClient.create(settings)
    except (TypeError, Py4JError):  # its classes are not to be seen from here
        return []
    try:
        names = java.java.util.ArrayList()
        names.add(address.topic)
        found = admin.describeTopics(names).allTopicNames().get()
        return sorted(int(one.partition()) for one in found.get(address.topic).partitions())
    except Py4JError as failure:
        raise _unreachable(address, str(failure)) from None
    finally:
        admin.close(java.java.time.Duration.ofSeconds(1))


def _unreachable(address: KafkaAddress, text: str) -> UsageError:
    if "UnknownTopicOrPartition" in text:
        return UsageError(f"{address}: the broker has no topic {address.topic!r}: make it first, or mend its name")
    if "Timeout" in text or "TimedOut" in text or "Disconnect" in text:
        return UsageError(f"{address}: no Kafka broker answers at {address.servers}")
    causes = [line.partition(": ")[2] for line in text.splitlines() if line.startswith(("Caused by: ", ": "))]
    return UsageError(f"{address}: {(causes or [text])[-1][:300]}")
