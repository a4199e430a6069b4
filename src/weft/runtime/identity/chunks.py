"""Consecutive events and their identities, which are computed for events in matches.

Only events of one instant (equal ends and starts) can have equal identifying attributes, and these are adjacent: the
rank of an event among equal ones depends only on the events of its instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.matches.identify import identify_events, rank_events
from weft.runtime.data import blocks
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.identity.words import event_words

UInt64s = npt.NDArray[np.uint64]
MOST_ALIKE = 64  # of longer instants, ranks are found by sorting


class Attributes(NamedTuple):
    """The attributes that identify events for a query, and those in which events of equal rank differ."""

    names: tuple[str, ...]
    alike: tuple[str, ...]


class Instant:
    """The last events of a chunk that have the same times: the next ones may be equal to them."""

    def __init__(
        self,
        times: tuple[int, int],
        events: EventBatch | None,
        before: Instant | None = None,
        words: Mapping[Attributes, UInt64s] | None = None,
    ) -> None:
        self.times = times
        self._events, self._before = events, before
        self._words = dict(words or {})

    def words(self, attributes: Attributes) -> UInt64s:
        """Return the hashes of the attributes by which events may be equal, in any order."""
        found = self._words.get(attributes)
        if found is None:
            own = np.empty(0, np.uint64) if self._events is None else event_words(self._events, attributes.alike)
            found = own if self._before is None else np.concatenate([self._before.words(attributes), own])
            self._words[attributes] = found
        return found


class Identities(NamedTuple):
    """Two halves of the identity of each event of a chunk, where it is known, and the attributes used."""

    high: UInt64s
    low: UInt64s
    words: UInt64s
    ranks: Int64s
    known: npt.NDArray[np.bool_]

    def since(self, row: int) -> Identities:
        """Those of the events from a row on."""
        return Identities(self.high[row:], self.low[row:], self.words[row:], self.ranks[row:], self.known[row:])


NONE: Mapping[Attributes, Identities] = {}


def bare(positions: Int64s, starts: Int64s, ends: Int64s) -> EventBatch:
    """Events of which only the times are left."""
    return EventBatch(pa.nulls(len(positions), pa.string()), starts, ends, positions)


class Chunk:
    """Events in stream order; `lead` are preceding events with the times of the first, if any.

    `known` are their identities, if the events themselves were released.
    """

    def __init__(self, events: EventBatch, lead: Instant | None, known: Mapping[Attributes, Identities] = NONE) -> None:
        self.positions, self.starts, self.ends = events.positions, events.starts, events.ends
        self._events = None if known else events
        self._lead = lead if lead is not None and lead.times == self._times(0) else None
        self._known = dict(known)

    def __len__(self) -> int:
        return len(self.positions)

    def _times(self, row: int) -> tuple[int, int]:
        return int(self.ends[row]), int(self.starts[row])

    def last_instant(self) -> Instant:
        """The events at its end that have the same times."""
        assert self._events is not None
        first = int(np.searchsorted(self.ends, self.ends[-1]))
        first += int(np.searchsorted(self.starts[first:], self.starts[-1]))
        return Instant(self._times(-1), blocks.slice(self._events, first), self._lead if first == 0 else None)

    def since(self, position: int) -> Chunk:
        """The events from a position on, and those before it that have the times of the first of them."""
        row = int(np.searchsorted(self.positions, position))
        row = int(self._first_alike[row]) if row < len(self) else row
        if row == 0:
            return self
        if self._events is None:
            rest = Chunk(bare(*(part[row:] for part in (self.positions, self.starts, self.ends))), None)
            rest._events = None
        else:
            rest = Chunk(blocks.slice(self._events, row), None)
        rest._known = {own: found.since(row) for own, found in self._known.items()}
        return rest

    @cached_property
    def _first_alike(self) -> Int64s:
        """Return for each event the first one with the same times."""
        rows = np.arange(len(self))
        new = np.ones(len(self), bool)
        new[1:] = (self.ends[1:] != self.ends[:-1]) | (self.starts[1:] != self.starts[:-1])
        found: Int64s = np.maximum.accumulate(np.where(new, rows, 0))
        return found

    def rows_of(self, positions: Int64s) -> Int64s:
        """Return the rows of events at ascending positions, or -1 for events that are not here."""
        first = int(self.positions[0])
        if int(self.positions[-1]) - first + 1 == len(self):
            rows = positions - first
            return np.where((rows >= 0) & (rows < len(self)), rows, -1)
        rows = np.minimum(np.searchsorted(self.positions, positions), len(self) - 1)
        return np.where(self.positions[rows] == positions, rows, -1)

    def identities(self, attributes: Attributes, rows: Int64s | None = None) -> Identities:
        """Return the identities of its events, known at least for these rows, or for all if None."""
        found = self._known.get(attributes)
        if found is None:
            count = len(self)
            high, low, words = np.zeros((3, count), np.uint64)
            found = Identities(high, low, words, np.zeros(count, np.int64), np.zeros(count, bool))
            self._known[attributes] = found
        if self._events is not None:
            missing = np.flatnonzero(~found.known) if rows is None else rows[~found.known[rows]]
            if len(missing):
                self._find(found, attributes, missing)
        return found

    def _find(self, found: Identities, attributes: Attributes, missing: Int64s) -> None:
        """Compute identities, also those of preceding events with the same times."""
        assert self._events is not None
        alike = self._first_alike
        if 4 * len(missing) > len(self):
            rows, events = np.arange(len(self)), self._events
        else:
            rows = missing
            if (alike[missing] != missing).any():
                begin, end = (np.bincount(at, minlength=len(self) + 1) for at in (alike[missing], missing + 1))
                rows = np.flatnonzero(np.cumsum(begin - end)[:-1])
            events = blocks.take(self._events, rows)
        words = event_words(events, attributes.names)
        same = words if attributes.alike == attributes.names else event_words(events, attributes.alike)
        ranks = _ranks(same, rows, alike[rows])
        if self._lead is not None and rows[0] == 0:
            first = alike[rows] == 0
            before = np.sort(self._lead.words(attributes))
            ranks[first] += np.searchsorted(before, same[first], "right") - np.searchsorted(before, same[first], "left")
        high, low = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
        starts, ends = self.starts[rows], self.ends[rows]
        identify_events(fixed(words), fixed(starts), fixed(ends), fixed(ranks), high, low)
        found.words[rows], found.ranks[rows] = words, ranks
        found.high[rows], found.low[rows], found.known[rows] = high, low, True


def _ranks(words: UInt64s, rows: Int64s, alike: Int64s) -> Int64s:
    """Return for each row how many before it have its word and its times; `alike` is the first row with these times."""
    ranks = np.zeros(len(rows), np.int64)
    if (alike == rows).all():
        return ranks
    if int((rows - alike).max()) <= MOST_ALIKE:
        rank_events(fixed(words), fixed(np.searchsorted(rows, alike)), ranks)
        return ranks
    order = np.lexsort((words, alike))
    places = np.arange(len(rows))
    new = np.ones(len(rows), bool)
    new[1:] = (words[order][1:] != words[order][:-1]) | (alike[order][1:] != alike[order][:-1])
    ranks[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return ranks
