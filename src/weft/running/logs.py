"""Log lines of runs: one for each trigger, as text or as JSON, through Python's `logging` as `weft.run`."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from weft.runtime.watching.triggers import Trigger
from weft.source import printable, printable_json

LogFormat = Literal["text", "json"]
LOGGER = logging.getLogger("weft.run")


def log_trigger(trigger: Trigger) -> None:
    """Log a trigger in one line; its numbers are in the record as `trigger`."""
    LOGGER.info("%s", trigger, extra={"trigger": trigger.to_json()})


class JsonFormatter(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Format time, level, message, and the numbers of a trigger."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        return printable_json(json.dumps({**line, **getattr(record, "trigger", {})}, ensure_ascii=False))


class TextLines(logging.Formatter):
    """A record as one line; what programs and events say cannot break it, or reach a terminal raw."""

    def format(self, record: logging.LogRecord) -> str:
        """Format time, level and message."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{at} {record.levelname.lower()} {printable(record.getMessage())}"


def show_logs(form: LogFormat, path: Path | None = None) -> None:
    """Write log lines to a file, else to standard error."""
    handler = logging.StreamHandler(sys.stderr) if path is None else logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(JsonFormatter() if form == "json" else TextLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
