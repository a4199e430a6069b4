"""Choose the events that source operators need: letters of a batch in, numbered events out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import Predicate
from weft.kernels.joins import choosing
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.operators.joins.occurrence_store import OccurrenceStore

Mask = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]


class ChosenEvents(NamedTuple):
    """The number of the first stored event, the stored events, and the numbers that each predicate chose."""

    first: int
    relevant: Int64s  # the stored events, by place in the batch; their numbers are consecutive
    chosen: list[Int64s]

    def numbers(self, own: Mask) -> Int64s:
        """Return the numbers of those stored events that are marked in `own`, by place in the batch."""
        found: Int64s = self.first + np.flatnonzero(own[self.relevant])
        return found


class Choosing:
    """The predicates by which sources choose events, and those whose truths are stored with an event."""

    def __init__(self, taking: Sequence[Predicate], truths: Sequence[Predicate], common: Predicates) -> None:
        asked = [*taking, *truths]
        self._taking = len(taking)
        self._groups = [np.array(group) for group in common.groups(asked)]
        self._classifier = Classifier([[asked[place] for place in group] for group in self._groups], common)
        self._counts: list[int] | None = None

    def letters(self, batch: EventBatch) -> Int32s:
        """Return the letters of all events by the first group of predicates, followed by those of the others."""
        found = self._classifier.letters(batch)
        counts = [self._classifier.letter_count(group) for group in range(len(self._groups))]
        if counts != self._counts:
            self._tabulate_letters(counts)
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int32), *found])

    def _tabulate_letters(self, counts: list[int]) -> None:
        """Tabulate for each letter which sources take the event, and which stored predicates hold."""
        self._counts = counts
        self._bases = np.cumsum([0, *counts])[:-1]
        pairs: list[tuple[int, int]] = []  # a letter and a source that takes it
        known: list[tuple[int, int, bool, int, int]] = []
        others: list[int] = []
        for number, group in enumerate(self._groups):
            for letter in range(counts[number]):
                true = group[np.array(self._classifier.truths(number, letter), bool)]
                takers = true[true < self._taking].tolist()
                pairs += [(len(known), taker) for taker in takers]
                truths = sum(1 << place for place in (true[true >= self._taking] - self._taking).tolist())
                first = takers[0] if takers else self._taking
                known.append((truths, first, bool(takers), len(others), len(others) + len(takers[1:])))
                others += takers[1:]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2)
        self._known, self._others = np.array(known, np.int64).ravel(), np.array(others, np.int64)

    def _list_ends(self, letters: Int32s, total: int, begin: int, end: int) -> Int64s:
        """Return where the list of each source ends among the chosen events; the result begins with 0."""
        counts = np.zeros(len(self._known) // choosing.KNOWN, np.int64)
        choosing.count_letters(letters, total, begin, end, self._bases, counts)
        taken = np.zeros(self._taking + 1, np.int64)
        np.add.at(taken, self._pairs[:, 1] + 1, counts[self._pairs[:, 0]])
        return np.cumsum(taken)

    def take(
        self, part: EventBatch, letters: Int32s, total: int, begin: int, kept: Mask, row_store: OccurrenceStore
    ) -> ChosenEvents:
        """Store the events of a part of a batch that a source takes or that are in `kept`.

        The part begins at the place `begin` of the batch.
        """
        count, first = len(part), row_store.event_count
        if not self._groups:
            return self._keep_only(part, kept, row_store)
        ends = self._list_ends(letters, total, begin, begin + count)
        chosen, relevant = np.empty(ends[-1] + 1, np.int64), np.empty(count, np.int64)
        row_store.expect(count)
        by = choosing.LetterTakers(letters, total, begin, self._bases, self._known, self._others)
        times = choosing.EventTimes(fixed(part.positions), fixed(part.starts), fixed(part.ends))
        written = choosing.choose(by, kept, times, first, row_store.events, relevant, ends.copy(), chosen)
        row_store.add_values(part, relevant[:written])
        return ChosenEvents(first, relevant[:written], np.split(chosen, ends[1:])[:-1])

    def _keep_only(self, part: EventBatch, kept: Mask, row_store: OccurrenceStore) -> ChosenEvents:
        """Store the events that are in `kept`, when there are no sources."""
        relevant = np.flatnonzero(kept)
        return ChosenEvents(row_store.add(part, relevant), relevant, [])
