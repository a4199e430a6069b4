"""Sessions of a key: an event opens one if the gap since the last event of the key is too long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.query import Query
from weft.plan.automaton.cea import existence, opening_column
from weft.runtime.classify.classifier import Classifier
from weft.runtime.data.events import Column, EventBatch, Int64s

LONG_AGO = -(1 << 63)  # before all times


class SessionTracker:
    """Stores when the last event of each partition ended."""

    def __init__(self, query: Query) -> None:
        assert query.session is not None
        self.column = opening_column(query)
        self.partition = query.partition
        self.gap = query.session
        self.ends = np.full(1, LONG_AGO, np.int64)
        self._classifier = Classifier([[existence(query)]])

    def marked(self, batch: EventBatch, slots: npt.NDArray[np.int32]) -> EventBatch:
        """Add an attribute that says whether an event opens a session."""
        slots = slots if len(slots) else np.zeros(len(batch), np.int32)
        letters = self._classifier.letters(batch)[0]
        known = [self._classifier.truths(0, letter)[0] for letter in range(self._classifier.letter_count(0))]
        exists = np.array(known, bool)[letters] & (slots >= 0)
        rows = np.flatnonzero(exists)
        order = rows[np.argsort(slots[rows], kind="stable")]
        own, ends = slots[order], np.asarray(batch.ends)[order]
        self.reserve(int(own.max(initial=0)) + 1)
        first = np.concatenate(([True], own[1:] != own[:-1])) if len(own) else np.zeros(0, bool)
        before = np.where(first, self.ends[own], np.concatenate(([0], ends[:-1])) if len(own) else ends)
        opening = np.zeros(len(batch), bool)
        opening[order] = (before == LONG_AGO) | (ends - before > self.gap)
        self.ends[own] = ends  # of several, the last is written last
        return replace(batch, columns={**batch.columns, self.column: Column(booleans=pa.array(opening))})

    def reserve(self, slots: int) -> None:
        """Reserve space for partitions 0..slots."""
        more = slots - len(self.ends)
        if more > 0:
            self.ends = np.concatenate([self.ends, np.full(max(more, len(self.ends)), LONG_AGO, np.int64)])

    def live(self, count: int, time: int) -> npt.NDArray[np.bool_]:
        """Return which partitions have a session that may continue."""
        self.reserve(count)
        return np.asarray(self.ends[:count] >= time - self.gap)

    def clear(self, slots: Int64s | npt.NDArray[np.int32]) -> None:
        """Clear partitions, so that their slots can be reused."""
        self.ends[slots[slots < len(self.ends)]] = LONG_AGO
