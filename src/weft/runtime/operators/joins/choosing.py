"""Which events operators take, and what else they want to know of them: letters of a batch in, numbered events out."""

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
from weft.runtime.operators.occurrence_store import OccurrenceStore

Mask = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]


class Taken(NamedTuple):
    """The number of the first event that is remembered, as others follow, and what each predicate chose."""

    first: int
    relevant: Int64s  # those that are remembered, by place in the batch
    chosen: list[Int64s]

    def numbers(self, own: Mask) -> Int64s:
        """The numbers of some of the events that are remembered, marked by place in the batch."""
        found: Int64s = self.first + np.flatnonzero(own[self.relevant])
        return found


class Choosing:
    """The predicates by which events are taken, and those whose truths are kept with them."""

    def __init__(self, taking: Sequence[Predicate], truths: Sequence[Predicate], common: Predicates) -> None:
        asked = [*taking, *truths]
        self._taking = len(taking)
        self._groups = [np.array(group) for group in common.groups(asked)]
        self._classifier = Classifier([[asked[place] for place in group] for group in self._groups], common)
        self._counts: list[int] | None = None

    def letters(self, batch: EventBatch) -> Int32s:
        """The letters of all events by one group of predicates, then by the next."""
        found = self._classifier.letters(batch)
        counts = [self._classifier.letter_count(group) for group in range(len(self._groups))]
        if counts != self._counts:
            self._learn(counts)
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int32), *found])

    def _learn(self, counts: list[int]) -> None:
        """Note for each letter who takes it and what is true."""
        self._counts = counts
        self._bases = np.cumsum([0, *counts])[:-1]
        pairs: list[tuple[int, int]] = []  # of a letter and one who takes it
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

    def _ends(self, letters: Int32s, total: int, begin: int, end: int) -> Int64s:
        """Where the numbers of the events end that each takes: nobody's at 0, and those of the last at their count."""
        counts = np.zeros(len(self._known) // choosing.KNOWN, np.int64)
        choosing.count_letters(letters, total, begin, end, self._bases, counts)
        taken = np.zeros(self._taking + 1, np.int64)
        np.add.at(taken, self._pairs[:, 1] + 1, counts[self._pairs[:, 0]])
        return np.cumsum(taken)

    def take(
        self, part: EventBatch, letters: Int32s, total: int, begin: int, kept: Mask, arena: OccurrenceStore
    ) -> Taken:
        """Remember the events of a part of a batch that somebody takes, or that are kept; it begins at a place."""
        count, first = len(part), arena.event_count
        if not self._groups:
            return self._keep(part, kept, arena)
        ends = self._ends(letters, total, begin, begin + count)
        chosen, relevant = np.empty(ends[-1] + 1, np.int64), np.empty(count, np.int64)
        arena.expect(count)
        by = choosing.LetterTakers(letters, total, begin, self._bases, self._known, self._others)
        times = choosing.EventTimes(fixed(part.positions), fixed(part.starts), fixed(part.ends))
        written = choosing.choose(by, kept, times, first, arena.events, relevant, ends.copy(), chosen)
        arena.add_values(part, relevant[:written])
        return Taken(first, relevant[:written], np.split(chosen, ends[1:])[:-1])

    def _keep(self, part: EventBatch, kept: Mask, arena: OccurrenceStore) -> Taken:
        """Remember the events that are kept: nobody takes more."""
        relevant = np.flatnonzero(kept)
        return Taken(arena.add(part, relevant), relevant, [])
