"""Statistics of the events that pass: rates by type, how often conditions on events and on pairs of them hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow.compute as pc

from weft.algebra.analysis.one_event import at_hand, is_of_one_event
from weft.algebra.predicates import And, Predicate
from weft.algebra.query import Program
from weft.optimizer.atoms import conditions_of
from weft.plan.atoms import IsType
from weft.runtime.classify.classifier import Classifier
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.watching.value_counts import ValueCounts
from weft.statistics import TICKS_PER_SECOND, Statistics
from weft.stored import Plain

MOST_CONDITIONS, FEW_CONDITIONS = 1 << 10, 1 << 6  # that are measured
SAMPLED = 16  # one event of so many is looked at while a program runs
STRETCH, PIECE = 1 << 9, 1 << 12  # so many at least that follow each other, and so many at most of a batch
MOST_SAVED = 1 << 12  # different values that are kept with the state of a stream


class Measure:
    """Counts events as they pass; `statistics` says what they come to.

    Batches follow each other, or are `apart`: then the time between them does not count. Without `ties`, comparisons of
    two events, whose values have to be kept, and all but the first conditions are left out.
    """

    def __init__(
        self, program: Program, *, apart: bool = False, rewritten: Program | None = None, ties: bool = True
    ) -> None:
        atoms, compared = conditions_of(program, rewritten)
        self._ties = compared[:MOST_CONDITIONS] if ties else []
        own = [atom for atom in atoms if is_of_one_event(atom.predicate)]
        self._atoms = own[: MOST_CONDITIONS if ties else FEW_CONDITIONS]
        asked = [[_of_type(atom.type, at_hand(atom.predicate))] for atom in self._atoms]
        self._classifier = Classifier(asked)
        self.ticks = TICKS_PER_SECOND.get(program.time_unit, 1000.0)  # in a second
        self._apart = apart
        self.clear()

    def clear(self) -> None:
        """Reset the measurement."""
        self.types: Counter[str] = Counter()
        self._held = [0] * len(self._atoms)
        self._values = {side: ValueCounts() for tie in self._ties for side in tie.sides}
        self._first: int | None = None
        self._before = self._span = 0  # ticks, without the batches that follow each other now and with them

    def look(self, batch: EventBatch) -> None:
        """Take note of some events."""
        if not len(batch):
            return
        if self._first is None or self._apart:
            self._first = int(batch.starts[0])
            self._before = self._span
        self._span = self._before + int(batch.ends[-1]) - self._first
        for entry in pc.value_counts(batch.types).to_pylist():
            if entry["values"] is not None:
                self.types[entry["values"]] += entry["counts"]
        for number, letters in enumerate(self._classifier.letters(batch)):
            for letter in range(self._classifier.letter_count(number)):
                if self._classifier.truths(number, letter)[0]:
                    self._held[number] += int((letters == letter).sum())
        for (type_, name), values in self._values.items():
            if name in batch.columns:
                values.add(batch.columns[name], pc.equal(batch.types, type_))

    @property
    def asked(self) -> dict[str, tuple[int, int]]:
        """Of how many events each condition on one event is true, and of how many it was asked."""
        held = zip(self._atoms, self._held, strict=True)
        return {atom.text: (count, self.types[atom.type]) for atom, count in held}

    def saved(self) -> Plain | None:
        """What was counted, as plain data, or None if there are too many different values to keep."""
        if sum(map(len, self._values.values())) > MOST_SAVED:
            return None
        values = [found.saved() for found in self._values.values()]
        return {"types": dict(self.types), "held": self._held, "span": self._span, "values": values}

    def resume(self, saved: Plain) -> None:
        """Go on from what another one of the same program has saved, apart from it."""
        self.types.update(saved["types"])
        self._held, self._span = list(saved["held"]), saved["span"]
        for found, kept in zip(self._values.values(), saved["values"], strict=True):
            found.resume(kept)

    def statistics(self) -> Statistics:
        """What was seen. A span of no time counts as one tick."""
        seconds = max(self._span, 1) / self.ticks
        rates = {type_: count / seconds for type_, count in sorted(self.types.items())}
        selectivity = {
            atom.text: held / self.types[atom.type]
            for atom, held in zip(self._atoms, self._held, strict=True)
            if self.types[atom.type]
        }
        for tie in self._ties:
            one, other = (self._values[side] for side in tie.sides)
            pairs = one.total * other.total
            if pairs:
                selectivity[tie.text] = one.holding(tie.operator, other) / pairs
        return Statistics(rates, selectivity, origin="measured", ticks_per_second=self.ticks)


class Sampling:
    """What a running program counts: events by type, and how often its conditions hold, in a sample of what passes."""

    def __init__(self, program: Program, rewritten: Program) -> None:
        self._measure = Measure(program, apart=True, rewritten=rewritten)
        self._seen = self._sampled = self._left = 0
        self._times: tuple[int, int] | None = None  # the first start, and the last end

    def look(self, batch: EventBatch) -> None:
        """Take note of some events: of many, the first ones, so that this costs next to nothing."""
        if not len(batch):
            return
        self._seen += len(batch)
        first = int(batch.starts[0]) if self._times is None else self._times[0]
        self._times = first, int(batch.ends[-1])
        if self._left <= 0 and self._sampled * SAMPLED <= self._seen:
            self._left = STRETCH
        if self._left > 0:
            part = blocks.slice(batch, 0, PIECE)
            self._measure.look(part)
            self._sampled += len(part)
            self._left -= len(part)

    def statistics(self) -> Statistics:
        """What was seen so far."""
        found = self._measure.statistics()
        if self._times is None:
            return found
        seconds = max(self._times[1] - self._times[0], 1) / found.ticks_per_second
        share = self._seen / self._sampled / seconds
        return replace(found, rates={type_: count * share for type_, count in sorted(self._measure.types.items())})


def _of_type(type_: str, predicate: Predicate) -> Predicate:
    return And((IsType(type_), predicate))
