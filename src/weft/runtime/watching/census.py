"""Warnings about the data when few matches are found.

They concern types that never occur, streams that no query reads, and times in another unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.query import Program, Query
from weft.errors import did_you_mean
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.kinds import NANOSECONDS

RECENT = (10**18, 3 * 10**18)  # nanoseconds since 1970: from 2001 to 2065
_UNITS = ("s", "ms", "us", "ns")
SEEN = "seen:"  # before the name of a type
_ELSEWHERE, _UNIT = "elsewhere:", "unit:"
MOST_NAMES = 12


class Census:
    """Looks at events as they pass. What it counts can be added up over several parts of an input."""

    def __init__(self, program: Program) -> None:
        self.counts: Counter[str] = Counter()
        self._unit = program.time_unit
        self._streams = streams_of(program)
        self._wanted = set(types_of(program))
        self._looked = False

    def look(self, events: EventBatch) -> None:
        """Take note of some events."""
        if not len(events):
            return
        if self._wanted:
            present = _distinct(events.types)
            self._wanted.difference_update(present)
            self.counts.update({SEEN + name: 1 for name in present[:MOST_NAMES]})
            self.counts.update({SEEN + name: 1 for name in present[MOST_NAMES:] if name in self._wanted})
        if self._streams and events.streams is not None:
            for name in set(_distinct(events.streams)) - self._streams:
                self.counts[_ELSEWHERE + name] += pc.sum(pc.equal(events.streams, name)).as_py() or 0
        if not self._looked:
            self._looked = True
            self.counts.update({_UNIT + unit: 1 for unit in likelier_units(events.ends, self._unit)})


def is_census(name: str) -> bool:
    """Whether a counter is one of these."""
    return name.startswith((SEEN, _ELSEWHERE, _UNIT))


def doubts_of(
    program: Program, counts: Mapping[str, int], totals: Mapping[str, int], *, filtered: bool = False
) -> list[str]:
    """What the counts say that is probably not meant, as texts; `totals` has how many events and matches there are.

    `filtered`: events without the values that the program asks for were not looked at.

    A type may be one that must not come: it is doubted when nothing was found, or one with nearly that name comes.
    """
    seen = sorted(name.removeprefix(SEEN) for name in counts if name.startswith(SEEN))
    found = []
    for name in types_of(program) if totals.get("events") else ():
        hint = did_you_mean(name, seen) or "no other types were looked at"
        if name not in seen and (not totals.get("matches") or hint.startswith("did")):
            lack = "and the values that" if filtered else "which"
            found.append(f"no event has the type {name!r}{' ' if filtered else ', '}{lack} the program reads; {hint}")
    for key, number in counts.items():
        if key.startswith(_ELSEWHERE):
            stream = key.removeprefix(_ELSEWHERE)
            found.append(
                f"{number:,} events have {stream!r} in their attribute 'stream', and the queries read "
                f"{', '.join(sorted(streams_of(program)))} only: they took no part; rename it if it names no stream"
            )
        if key.startswith(_UNIT):
            unit = key.removeprefix(_UNIT)
            found.append(
                f"the times look like {unit} since 1970, and are taken for {program.time_unit}: "
                f"compile with time_unit={unit!r} (--time-unit {unit})"
            )
    return found


def tied_doubt(tied: int) -> list[str]:
    """Return the warning about events whose order between partitions is arbitrary."""
    if not tied:
        return []
    return [
        f"{tied:,} events have the time of an event in another partition, so that chance decided which comes first: "
        "name columns that decide, as in order='seq'"
    ]


def types_of(program: Program) -> tuple[str, ...]:
    """The types of input events that queries name."""
    defined = {query.defines for query in program.queries}
    return tuple(dict.fromkeys(t for query in program.queries for t in query.reads if t not in defined))


def streams_of(program: Program) -> frozenset[str]:
    """The streams that queries read; none if one reads any stream."""
    names: set[str] = set()
    for query in program.queries:
        universe = query.universe if isinstance(query, Query) else None
        if universe is None or any(stream == "*" for stream, _ in universe):
            return frozenset()
        names.update(stream for stream, _ in universe)
    return frozenset(names)


def likelier_units(times: Iterable[int], unit: str) -> list[str]:
    """The units in which times are of our days, when they are not in the one that is said."""
    found = np.asarray(times, np.float64)
    low, high = float(found.min()), float(found.max())

    def recent(other: str) -> bool:
        return RECENT[0] <= low * NANOSECONDS[other] and high * NANOSECONDS[other] <= RECENT[1]

    return [] if recent(unit) else [other for other in _UNITS if other != unit and recent(other)]


def _distinct(texts: pa.Array) -> list[str]:
    return [name for name in texts.unique().to_pylist() if name is not None]
