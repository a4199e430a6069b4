"""Which sources and partitions are idle, by the clock that triggers bring: one that is tried again decides alike."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Final

from weft.runtime.spark.lanes.runs import RunRow
from weft.runtime.spark.watermark import Lateness

CLOCK: Final = -3  # the chunk of rows without events whose `first` is the time, in nanoseconds since 1970


def idle_names(
    reached: Iterable[str], heard: MutableMapping[str, int], rows: Iterable[RunRow], lateness: Lateness
) -> frozenset[str]:
    """The names of times that are not waited for after these rows; notes in `heard` when each was heard of."""
    rows = list(rows)
    now = next((row.first for row in rows if row.chunk == CLOCK), None)
    after = lateness.idle_after
    if now is None or after is None:
        return frozenset()
    spoke = {lateness.name_of(row.source, row.part) for row in rows if row.chunk >= 0 and row.first is not None}
    watched = [name for name in {*lateness.awaited, *reached} if lateness.is_clocked(name)]
    for name in watched:
        if name in spoke:
            heard[name] = now
        heard.setdefault(name, now)
    return frozenset(name for name in watched if now - heard[name] >= after)
