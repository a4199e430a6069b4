"""Warnings in the log of a run: what triggers show that is probably not meant."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from weft.runtime.spark.files.log import Changes, change_of
from weft.runtime.watching.standstill import Standstill
from weft.runtime.watching.triggers import Trigger

LOG = logging.getLogger("weft.run")
REASONS = 5  # that are told


def warners(log: Path, sources: Sequence[str] | Mapping[str, str]) -> list[Callable[[Trigger], None]]:
    """What is to be called after each trigger; `log`: of the files that were found."""
    return [Late().look, partial(_tell_changes, Changes(log)), partial(_tell_standstill, Standstill(sources))]


class Late:
    """Logs how many events came late, at the end of each trigger that had some."""

    def __init__(self) -> None:
        self._seen = 0

    def look(self, trigger: Trigger) -> None:
        """After a trigger."""
        self._seen += trigger.late
        if trigger.late:
            LOG.warning(
                "trigger %d: %s came late and took no part, %s since the run started (the rejects have them): "
                "--delay says how late events may be",
                trigger.number,
                f"{trigger.late:,} event{'s' * (trigger.late > 1)}",
                f"{self._seen:,}",
            )


class Unreadable:
    """Logs the first event or file that could not be read, for each of a few reasons."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, rejects: pa.Table) -> None:
        """After a trigger, with the rows of its rejects."""
        for place, reason in zip(rejects["id"].to_pylist(), rejects["reason"].to_pylist(), strict=True):
            if reason not in self._told and len(self._told) < REASONS and not reason.startswith("late: "):
                self._told.add(reason)
                LOG.warning(
                    "%s could not be read: %s (the rejects have it, and all like it)", place or "an event", reason
                )


def _tell_standstill(standstill: Standstill, trigger: Trigger) -> None:
    """Log a source that blocks the rest, and a watermark that does not advance."""
    for line in standstill.look(trigger):
        LOG.warning("%s", line)


def _tell_changes(changes: Changes, trigger: Trigger) -> None:
    """Log the files that were found to have changed; they are rejected, too."""
    for found in changes.new():
        if found.grown is not None:
            LOG.warning("the file %s %s", found.path, change_of(found.grown))
