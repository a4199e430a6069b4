"""Warnings in the log of a run: what triggers show that is probably not meant."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from weft.runtime.spark.files.log import Changes, change_of
from weft.runtime.watching.standstill import Standstill
from weft.runtime.watching.triggers import Trigger

LOG = logging.getLogger("weft.run")


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


def _tell_standstill(standstill: Standstill, trigger: Trigger) -> None:
    """Log a source that blocks the rest, and a watermark that does not advance."""
    for line in standstill.look(trigger):
        LOG.warning("%s", line)


def _tell_changes(changes: Changes, trigger: Trigger) -> None:
    """Log the files that were found to have changed; they are rejected, too."""
    for found in changes.new():
        if found.grown is not None:
            LOG.warning("the file %s %s", found.path, change_of(found.grown))
