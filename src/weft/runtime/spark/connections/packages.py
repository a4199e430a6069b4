"""The packages of Spark that topics and tables need: how a session gets them, and which are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.errors import UsageError
from weft.runtime.spark.connections.addresses import Address, DeltaAddress

SCALA = "2.13"  # that of every Spark from 4.0 on
# What Delta needs of a session besides its package.
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_DELTA_RELEASES = {  # by release of Spark
    "4.0": "delta-spark_2.13:4.0.0",
    "4.1": "delta-spark_4.1_2.13:4.1.0",
    "4.2": "delta-spark_4.2_2.13:4.4.0",
}
_NOT_FOUND = (
    "DATA_SOURCE_NOT_FOUND",
    "Failed to find data source",
    "Failed to find the data source",
    "NoClassDefFound",
)
_NO_AVRO = ("JavaPackage", "avro", "Avro")


def connection_settings(
    addresses: Sequence[Address], packages: Sequence[str] = (), jars: Sequence[str] = ()
) -> dict[str, str]:
    """The settings of a new session that reads and writes these addresses, with these packages and jars."""
    settings = dict(DELTA_SETTINGS) if any(isinstance(one, DeltaAddress) for one in addresses) else {}
    if packages:
        settings["spark.jars.packages"] = ",".join(packages)
    if jars:
        settings["spark.jars"] = ",".join(jars)
    return settings


def kafka_package(version: str) -> str:
    """The Maven artifact by which this Spark reads and writes Kafka."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version}"


def avro_package(version: str) -> str:
    """The Maven artifact by which this Spark reads Avro."""
    return f"org.apache.spark:spark-avro_{SCALA}:{version}"


def delta_package(version: str) -> str:
    """The Maven artifact by which this Spark reads and writes Delta tables; of an unknown release without a version."""
    minor = ".".join(version.split(".")[:2])
    return f"io.delta:{_DELTA_RELEASES.get(minor, f'delta-spark_{minor}_{SCALA}')}"


@contextmanager
def needing(session: SparkSession, what: str) -> Iterator[None]:
    """Say which package this Spark lacks for `what` (kafka, delta or avro), instead of Spark's own words."""
    try:
        yield
    except (PySparkException, TypeError) as failure:
        text = str(failure)
        if what == "avro" and (isinstance(failure, TypeError) or any(sign in text for sign in _NO_AVRO)):
            raise missing(session.version, what) from None
        if any(sign in text for sign in _NOT_FOUND) or (what == "delta" and "DELTA_CONFIGURE" in text):
            raise missing(session.version, what) from None
        raise


def missing(version: str, what: str) -> UsageError:
    """The message about a package that is not there."""
    named: Mapping[str, str] = {
        "kafka": kafka_package(version),
        "avro": avro_package(version),
        "delta": delta_package(version),
    }
    artifact = named[what]
    more = ""
    if what == "delta":
        more = "; the session needs Delta's extension and catalog, too, which `weft run` sets (docs/delta.md)"
        if artifact.count(":") < 2:
            more = f" (its newest release; if there is none, Delta does not support Spark {version} yet){more}"
    return UsageError(
        f"Spark {version} has no package for {what} here: it needs {artifact}. Give it to `weft run` with "
        f"--packages {artifact}, or to your own session as spark.jars.packages{more}"
    )
