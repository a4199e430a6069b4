"""What a streaming query needs of its session: set while the query starts, and put back as the user had it.

Spark reads these settings once, from the session, when a query starts, and the user starts it: perhaps much later, and
of a frame made from ours. So the writer's `start` is watched; a plan tells by a name in it how many lanes it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.runtime.spark.session import STREAMING_SETTINGS

_NAME = "weft_lanes_"
_LANES = re.compile(_NAME + r"(\d+)")
_WATCHED = "_weft_watched"


def packed_column(lanes: int) -> str:
    """The name of the column in which the operator's output is packed: it says how many lanes there are."""
    return f"{_NAME}{lanes}"


def watch_starts(frame: DataFrame) -> None:
    """See to it that queries with lanes start with as many partitions as lanes, whoever starts them."""
    writer = type(frame.writeStream)
    if not getattr(writer, _WATCHED, False):
        for name in ("start", "toTable"):
            setattr(writer, name, _watched(getattr(writer, name)))
        setattr(writer, _WATCHED, True)


def _watched(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def started(writer: Any, *given: Any, **named: Any) -> Any:
        session, plan = _session_and_plan(writer)
        found = [int(lanes) for lanes in _LANES.findall(plan)]
        if not found:
            return start(writer, *given, **named)
        with settings(session, {**STREAMING_SETTINGS, "spark.sql.shuffle.partitions": str(max(found))}):
            return start(writer, *given, **named)

    return started


def _session_and_plan(writer: Any) -> tuple[SparkSession, str]:
    if hasattr(writer, "_write_stream"):  # Spark Connect
        command = writer._write_stream.command(writer._session.client)
        return writer._session, command.SerializeToString().decode("latin-1")
    return writer._spark, writer._df._jdf.queryExecution().logical().toString()


@contextmanager
def settings(session: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """The session with other settings for a while."""
    given = dict(session.conf.getAll)
    for name, value in wanted.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in wanted:
            if name in given:
                session.conf.set(name, given[name])
            else:
                session.conf.unset(name)
