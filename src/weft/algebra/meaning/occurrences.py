"""Occurrences of composite patterns, and the orders they stand in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from weft.algebra.meaning.stream import Happening, positions_of


@dataclass(frozen=True)
class Occurrence:
    """The times (start, end) of each constituent, by end and start, and the events that each variable is bound to."""

    times: tuple[tuple[int, int], ...]
    bound: tuple[tuple[str, tuple[Happening, ...]], ...]

    @cached_property
    def start(self) -> int:
        """The earliest start of a constituent."""
        return min(start for start, _ in self.times)

    @cached_property
    def end(self) -> int:
        """The latest end of a constituent."""
        return max(end for _, end in self.times)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The positions of the input events that it is made of, ascending."""
        return positions_of(self.events)

    @cached_property
    def events(self) -> frozenset[Happening]:
        """Its events, in no order."""
        return frozenset(event for _, events in self.bound for event in events)

    def of(self, variable: str) -> tuple[Happening, ...]:
        """The events bound to a variable, in order."""
        return dict(self.bound).get(variable, ())

    def is_before(self, other: Occurrence) -> bool:
        """Whether it has ended when the other starts."""
        return self.end < other.start


def occurrence_of(event: Happening, variable: str) -> Occurrence:
    """An event alone."""
    return Occurrence(((event.start, event.end),), ((variable, (event,)),))


def joined(*parts: Occurrence) -> Occurrence:
    """Join several occurrences into one: all their constituents, and their bindings in order."""
    bound: dict[str, tuple[Happening, ...]] = {}
    for part in parts:
        for variable, events in part.bound:
            bound[variable] = bound.get(variable, ()) + events
    times = sorted((time for part in parts for time in part.times), key=lambda time: (time[1], time[0]))
    return Occurrence(tuple(times), tuple(sorted(bound.items(), key=lambda pair: pair[0])))


def later(occurrence: Occurrence, ticks: int) -> Occurrence:
    """Return the occurrence with a point in time, `ticks` after its end, as its last constituent."""
    point = occurrence.end + ticks
    return Occurrence((*occurrence.times, (point, point)), occurrence.bound)


def in_processing_order(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Each occurrence once, by end, start and places of events; those that agree in these stay as they came."""
    return sorted(dict.fromkeys(found), key=lambda one: (one.end, one.start, sorted(e.place for e in one.events)))


def history_key(occurrence: Occurrence) -> tuple[float, ...]:
    """Sorts by complete history: the list of all times from its end; one that runs out is the larger."""
    history = [time for constituent in occurrence.times for time in constituent]
    return (*reversed(history), math.inf)
