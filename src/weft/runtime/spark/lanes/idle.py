"""Which sources and partitions are idle, by the clock that triggers bring: one that is tried again decides alike."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from weft.runtime.spark.packing.runs import CLOCK, RunRow
from weft.runtime.spark.watermark import Lateness


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
