"""Warnings about standstill, from the triggers of a run: a silent source that blocks the rest, and time that does not
advance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.runtime.watching.triggers import Trigger

STANDSTILL_TIMEOUT_S = 60.0  # seconds


class Standstill:
    """Watch the progress of the sources of a run, and the watermark. Each standstill is reported once."""

    def __init__(self, sources: Sequence[str] | Mapping[str, str], patience: float = STANDSTILL_TIMEOUT_S) -> None:
        # By the names of their times, which are the numbers of sources unless partitions have times of their own.
        self._sources = sources if isinstance(sources, Mapping) else {str(n): s for n, s in enumerate(sources)}
        self._patience = patience
        self._since: dict[str, tuple[int | None, float]] = {}  # how far something had come, and since when
        self._told: set[str] = set()

    def look(self, trigger: Trigger) -> list[str]:
        """What is to be said after a trigger."""
        if not trigger.lanes:
            return []
        lane = trigger.lanes[0]  # all know the same
        furthest = max(lane.reached.values(), default=None)
        found = []
        for number, name in self._sources.items():
            reached = lane.reached.get(number)
            seconds = self._still(name, reached, trigger.at)
            behind = furthest is not None and (reached is None or reached < furthest)
            if behind and trigger.held and self._is_news(name, seconds):
                found.append(
                    f"the source {name} has sent nothing new for {seconds:,.0f} s, and {trigger.held:,} events of "
                    "others wait for it: --idle-after SECONDS waits no longer than that"
                )
        seconds = self._still("", lane.watermark, trigger.at)
        silent = any(name in self._told for name in self._sources.values())
        if trigger.events and trigger.held and not silent and self._is_news("", seconds):
            found.append(
                f"time stands still: events have come for {seconds:,.0f} s, none of them later than {furthest}, and "
                f"{trigger.held:,} wait for a later one: are their times right, in the unit of --time-unit?"
            )
        return found

    def _still(self, what: str, now: int | None, at: float) -> float:
        """For how many seconds something has not moved."""
        before = self._since.get(what)
        if before is None or before[0] != now:
            self._since[what] = now, at
            self._told.discard(what)
        return at - self._since[what][1]

    def _is_news(self, what: str, seconds: float) -> bool:
        if seconds < self._patience or what in self._told:
            return False
        self._told.add(what)
        return True
