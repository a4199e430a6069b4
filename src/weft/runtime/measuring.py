"""Statistics of the events that pass: rates by type, how often conditions on single events hold, how keys repeat."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates import And, Predicate
from weft.algebra.query import Program
from weft.optimizer.atoms import conditions_of
from weft.plan.atoms import IsType
from weft.plan.one_event import at_hand, is_of_one_event
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.events import EventBatch
from weft.statistics import TICKS_PER_SECOND, Statistics

Value = tuple[str, object]  # of which kind, and what: True is not 1


class Measure:
    """Counts events as they pass; `statistics` says what they come to.

    Batches follow each other, or are `apart`: then the time between them does not count.
    """

    def __init__(self, program: Program, predicates: Predicates | None = None, *, apart: bool = False) -> None:
        atoms, self._ties = conditions_of(program)
        self._atoms = [atom for atom in atoms if is_of_one_event(atom.predicate)]
        asked = [[_of_type(atom.type, at_hand(atom.predicate))] for atom in self._atoms]
        self._classifier = Classifier(asked, predicates)
        self._ticks = TICKS_PER_SECOND.get(program.time_unit, 1000.0)
        self._types: Counter[str] = Counter()
        self._held = [0] * len(self._atoms)
        self._values: dict[tuple[str, str], Counter[Value]] = {
            side: Counter() for tie in self._ties for side in tie.sides
        }
        self._apart = apart
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
                self._types[entry["values"]] += entry["counts"]
        for number, letters in enumerate(self._classifier.letters(batch)):
            for letter in range(self._classifier.letter_count(number)):
                if self._classifier.truths(number, letter)[0]:
                    self._held[number] += int((letters == letter).sum())
        for (type_, name), values in self._values.items():
            if name in batch.columns:
                rows = pc.equal(batch.types, type_)
                for kind in ("numbers", "texts", "booleans"):
                    _count(getattr(batch.columns[name], kind), rows, kind, values)

    def statistics(self) -> Statistics:
        """What was seen. A span of no time counts as one tick."""
        seconds = max(self._span, 1) / self._ticks
        rates = {type_: count / seconds for type_, count in sorted(self._types.items())}
        selectivity = {
            atom.text: held / self._types[atom.type]
            for atom, held in zip(self._atoms, self._held, strict=True)
            if self._types[atom.type]
        }
        for tie in self._ties:
            one, other = (self._values[side] for side in tie.sides)
            pairs = one.total() * other.total()
            if pairs:
                selectivity[tie.text] = sum(count * other[value] for value, count in one.items()) / pairs
        return Statistics(rates, selectivity, origin="measured", ticks_per_second=self._ticks)


def _of_type(type_: str, predicate: Predicate) -> Predicate:
    return And((IsType(type_), predicate))


def _count(column: pa.Array | None, rows: pa.Array, kind: str, values: Counter[Value]) -> None:
    if column is None:
        return
    for entry in pc.value_counts(column.filter(rows).drop_null()).to_pylist():
        values[kind, entry["values"]] += entry["counts"]
