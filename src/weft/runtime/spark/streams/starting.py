"""What a streaming query needs of its session: set while the query starts, and put back as the user had it.

Spark reads these settings once, from the session, when a query starts, and the user starts it: perhaps much later, and
of a frame made from ours. So the writer's `start` is watched; a plan tells by a name in it how many lanes it has. Where
lanes keep their state in files, their tasks are told the folder, beside the checkpoint, by properties of the thread.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.errors import UsageError
from weft.runtime.spark.session import STATELESS_SETTINGS, STREAMING_SETTINGS

_NAME = "weft_lanes_"
_LANES = re.compile(_NAME + r"(\d+)")
OPERATOR = "weft_match_"  # how the work of lanes with state in files is called in plans
_FILES = re.compile(OPERATOR + r"(\d+)")
_WATCHED = "_weft_watched"
_GIVEN = "_weft_given"  # of a writer: where its checkpoint is, and its name
_LOCATION = "checkpointLocation"


def packed_column(lanes: int) -> str:
    """The name of the column in which the operator's output is packed: it says how many lanes there are."""
    return f"{_NAME}{lanes}"


def place_of(number: int) -> str:
    """The property that says where an operator keeps its state."""
    return f"weft.state.{number}"


def watch_starts(frame: DataFrame) -> None:
    """See to it that queries with lanes start with as many partitions as lanes, whoever starts them."""
    writer = type(frame.writeStream)
    if not getattr(writer, _WATCHED, False):
        for name in ("start", "toTable"):
            setattr(writer, name, _watched(getattr(writer, name)))
        for name in ("option", "options", "queryName"):
            setattr(writer, name, _noted(getattr(writer, name)))
        setattr(writer, _WATCHED, True)


def _watched(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def started(writer: Any, *given: Any, **named: Any) -> Any:
        session, plan = _session_and_plan(writer)
        lanes = [int(lanes) for lanes in _LANES.findall(plan)]
        operators = list(dict.fromkeys(map(int, _FILES.findall(plan))))
        if not lanes and not operators:
            return start(writer, *given, **named)
        wanted = STREAMING_SETTINGS if lanes else STATELESS_SETTINGS
        partitions = {"spark.sql.shuffle.partitions": str(max(lanes))} if lanes else {}
        folder = _state_folder(session, {**getattr(writer, _GIVEN, {}), **named}) if operators else Path()
        places = {place_of(number): str(folder / str(at)) for at, number in enumerate(operators)}
        with settings(session, {**wanted, **partitions}), _properties(session, places):
            return start(writer, *given, **named)

    return started


def _noted(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of the writer to record its checkpoint or its name."""

    @wraps(method)
    def noted(writer: Any, *given: Any, **named: Any) -> Any:
        told = {"queryName": given[0]} if method.__name__ == "queryName" and given else dict(named)
        if method.__name__ == "option":
            key, value = [*given, named.get("value")][:2] if given else (named.get("key"), named.get("value"))
            told = {str(key): value}
        setattr(writer, _GIVEN, {**getattr(writer, _GIVEN, {}), **told})
        return method(writer, *given, **named)

    return noted


def _state_folder(session: SparkSession, given: dict[str, Any]) -> Path:
    """The folder for the state of a query's operators; one that goes away with the process if it has no checkpoint."""
    location = next((value for name, value in given.items() if name.lower() == _LOCATION.lower()), None)
    usual = session.conf.get("spark.sql.streaming.checkpointLocation", None)
    if location is None and usual and given.get("queryName"):
        location = f"{usual}/{given['queryName']}"
    if location is None:
        folder = tempfile.mkdtemp(prefix="weft-stream-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)
    path = re.sub(r"^file:(//)?(?=/)", "", str(location))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path):
        raise UsageError(
            f"the checkpoint {location} is not a folder of this machine, where weft.match keeps the state of a stream: "
            "use weft.match(…, state='spark')"
        )
    return Path(path).absolute() / "weft"


@contextmanager
def _properties(session: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Set properties of the thread, which the thread of a query inherits when it starts."""
    for name, value in wanted.items():
        session.sparkContext.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name in wanted:
            session.sparkContext.setLocalProperty(name, None)


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
