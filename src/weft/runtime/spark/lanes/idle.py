"""Which sources and partitions are idle, by the clock that triggers bring: one that is tried again decides alike."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from weft.runtime.spark.packing.runs import CLOCK, SILENCE, RunRow
from weft.runtime.spark.watermark import Lateness


def idle_names(
    reached: Iterable[str], heard: MutableMapping[str, int], rows: Iterable[RunRow], lateness: Lateness
) -> frozenset[str]:
    """The names of times that are not waited for after these rows; notes in `heard` when each was heard of."""
    rows = list(rows)
    now = next((row.first for row in rows if row.chunk == CLOCK), None)
    if now is None:
        return frozenset()
    spoke = {lateness.name_of(row.source, row.part) for row in rows if row.chunk >= 0 and row.first is not None}
    known = {name: lateness.idle_after_of(name) for name in {*lateness.awaited, *reached}}
    watched = {name: after for name, after in known.items() if after is not None}
    for name in watched:
        if name in spoke:
            heard[name] = now
        heard.setdefault(name, now)
    return frozenset(name for name, after in watched.items() if now - heard[name] >= after)


def silent_sources(silent: Iterable[str], rows: Iterable[RunRow]) -> list[str]:
    """Return the file sources that are idle after these rows: those reported as idle, until they send events."""
    found = dict.fromkeys(silent)
    found |= {str(row.source): None for row in rows if row.chunk == SILENCE}
    spoke = {str(row.source) for row in rows if row.chunk >= 0 and row.first is not None}
    return [name for name in found if name not in spoke]
