"""All that differs between the supported releases of Spark; no other module asks which release it runs on.

Each branch says with which oldest supported release it can be removed.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark import accumulators
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.errors import UsageError

__all__ = [
    "DataSource",
    "DataSourceStreamReader",
    "InputPartition",
    "ReadAllAvailable",
    "StatefulProcessor",
    "SupportsTriggerAvailableNow",
]

# PySpark says so each time that it looks for pandas 3. weft hands it Arrow batches, and frames of plain columns only.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)

Release = tuple[int, int]
OLDEST: Release = (3, 5)  # for batches
OLDEST_FOR_STREAMS: Release = (4, 0)  # transformWithStateInPandas, Python data sources
OLDEST_FOR_CONNECTED_STREAMS: Release = (4, 1)  # the former, of a client of Spark Connect
FIRST_UNKNOWN: Release = (5, 0)


def release_of(version: str) -> Release:
    """The release that a version belongs to: 4.0.5 and 4.0.0.dev1 are of 4.0."""
    major, minor = re.findall(r"\d+", f"{version}.0")[:2]
    return int(major), int(minor)


RELEASE = release_of(pyspark.__version__)
MEASURES_BATCHES = RELEASE >= (4, 0)  # whether rows for Python are bounded by their bytes; always from 4.0 on


def check_release() -> None:
    """Refuse a Spark that weft does not work with."""
    if not OLDEST <= RELEASE < FIRST_UNKNOWN:
        raise UsageError(
            f"weft needs PySpark {_text(OLDEST)} or newer, below {_text(FIRST_UNKNOWN)}, "
            f"and PySpark {pyspark.__version__} is installed"
        )


def require_streams(what: str, oldest: Release = OLDEST_FOR_STREAMS) -> None:
    """Refuse a stream where Spark lacks stateful Python operators, or what these need."""
    if oldest > RELEASE:
        raise UsageError(
            f"{what} need PySpark {_text(oldest)} or newer, and PySpark {pyspark.__version__} is installed"
        )
    if not _has("google.protobuf"):  # by it Spark talks to stateful operators
        raise UsageError(
            f"{what} need the package protobuf, which PySpark {pyspark.__version__} uses and does not bring: "
            "pip install protobuf"
        )


def require_table_functions() -> None:
    """Refuse table functions in SQL where Spark has none that take tables and say their columns."""
    if RELEASE < (4, 0):
        raise UsageError(f"weft_match needs PySpark 4.0 or newer, and PySpark {pyspark.__version__} is installed")


def require_stream_of(frame: Any) -> None:
    """Refuse a streaming frame that this release has no stateful Python operators for."""
    if hasattr(frame, "_jdf"):
        require_streams("streams")
    else:
        require_streams("streams through Spark Connect", OLDEST_FOR_CONNECTED_STREAMS)


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # nor has it a parent, or a process was told that there is none
        return False


def _text(release: Release) -> str:
    return ".".join(map(str, release))


# Base classes that 3.5 lacks: modules that define streams are loaded there, too, and nobody gets as far as to use them.
# Plain imports from 4.0 on.
try:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming import StatefulProcessor
except ImportError:

    class DataSource:  # type: ignore[no-redef]
        """A source that is not there."""

    DataSourceStreamReader = InputPartition = StatefulProcessor = DataSource

# Sources are told from where they read on, and when a trigger is the last, from 4.2 on. Plain imports then.
try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

    SOURCES_KNOW_THEIR_START = True
except ImportError:
    SOURCES_KNOW_THEIR_START = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What is not said of sources."""

    ReadAllAvailable = SupportsTriggerAvailableNow


def started(writer: Any, every: str | None) -> Any:
    """Start a query that triggers every so often, or (None) until all that is there has been read.

    Before 4.2 the trigger `availableNow` reads all of a Python source at once: the query is stopped then.
    """
    if every is not None or SOURCES_KNOW_THEIR_START:
        trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": every}
        return writer.trigger(**trigger).start()
    query = writer.trigger(processingTime="0 seconds").start()

    def stop_when_read() -> None:
        with suppress(Exception):  # who waits for the query says why it failed
            query.processAllAvailable()
            query.stop()

    threading.Thread(target=stop_when_read, name="weft-read", daemon=True).start()
    return query


# Where Spark has the class that writes checkpoints by Hadoop's older interface of file systems; one place from 4.1 on.
_STREAMING = "org.apache.spark.sql.execution.streaming."
PLAIN_CHECKPOINT_FILES = (
    _STREAMING + ("checkpointing." if RELEASE >= (4, 1) else "") + ("FileSystemBasedCheckpointFileManager")
)


def arrow_fields(columns: Any) -> pa.Schema:
    """The fields of Spark's columns as they come to a task; `timezone` is of 4.2 and newer."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(columns, timezone="UTC") if RELEASE >= (4, 2) else to_arrow_schema(columns)


def by_partition(frame: Any, column: str, numbers: Sequence[int]) -> Any:
    """The frame with rows dealt out to partitions by a column of numbers, in turn; to be simplified with 4.0.

    Before 4.1 by hashes: those of `numbers` are of one partition each.
    """
    count = len(numbers)
    if RELEASE >= (4, 1):
        return frame.repartitionById(count, F.col(column) % count)
    hashed = ", ".join(map(str, numbers))
    return frame.repartition(count, F.expr(f"element_at(array({hashed}), {column} % {count} + 1)"))


def is_frame(value: Any) -> bool:
    """Whether this is a DataFrame; until 3.5 those of Spark Connect are of another class."""
    return isinstance(value, DataFrame) or type(value).__module__ == "pyspark.sql.connect.dataframe"


def to_arrow(frame: Any) -> pa.Table:
    """The rows of a frame, collected; `toArrow` from 4.0 on."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if not hasattr(frame, "_jdf"):  # Spark Connect
        return frame._session.client.to_table(frame._plan.to_proto(frame._session.client))[0]
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else arrow_fields(frame.schema).empty_table()


def from_arrow(session: Any, table: pa.Table, columns: Any) -> Any:
    """A frame of the rows of a table; those of Arrow are taken as they are from 4.0 on."""
    if RELEASE >= (4, 0):
        return session.createDataFrame(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return session.createDataFrame(rows, columns)


def silence_accumulators() -> None:
    """Let the threads that collect accumulators say nothing when Spark's Java is gone. One name before 4.1."""
    for name in ("AccumulatorServer", "AccumulatorTCPServer", "AccumulatorUnixServer"):
        server = getattr(accumulators, name, None)
        if server is not None:
            server.handle_error = lambda *_: None


def is_observed(observation: Any) -> bool:
    """Whether an observation has its values: from 3.5.3 on Spark has a promise of them."""
    java = observation._jo
    try:
        return bool(java.future().isCompleted())
    except Py4JError:
        return bool(java.getRowOrEmpty().isDefined())
