"""Drop events that no query can use, and attributes of events that no match can include, before they are sent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Predicate
from weft.plan.operators import Plan
from weft.runtime.classify.classifier import Classifier
from weft.runtime.data import blocks
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.lanes.routing import relevant
from weft.runtime.lanes.uses import uses_of
from weft.runtime.watching.census import streams_of

BOUND = "\0bound"  # a mark of events: a match may show them
Mask = npt.NDArray[np.bool_]


class Sieve:
    """Filter for the events of a plan, chunk by chunk, by types and by conditions on single events.

    If more than a `share` of a chunk is needed, only types decide. Of a type that the plan names at least the first
    event stays in a chunk, because users are warned about types that never occur.
    """

    def __init__(self, plan: Plan, share: float = 0.5) -> None:
        uses = uses_of(plan)
        self._share, self._types = share, plan.relevant_types
        self._seen = None if uses.seen is None or streams_of(plan.program) else _AnyOf(uses.seen)
        self._bound = _AnyOf(uses.bound) if uses.seen is None else None  # else nearly all that is seen is bound

    def __call__(self, events: EventBatch) -> EventBatch:
        """Return the events that matter; those that a match may show are marked if they are the minority."""
        if not len(events):
            return events
        if self._seen is not None:
            kept = self._seen(events)
            if np.count_nonzero(kept) > self._share * len(kept):
                return relevant(events, self._types)
            kept[_firsts_left_out(events, kept, self._types or ())] = True
            return relevant(blocks.take(events, np.flatnonzero(kept)), self._types)
        events = relevant(events, self._types)
        if self._bound is not None and events.rows is not None:
            bound = self._bound(events)
            if np.count_nonzero(bound) <= self._share * len(bound):
                return replace(events, columns={**events.columns, BOUND: Column(booleans=pa.array(bound))})
        return events


class _AnyOf:
    """Evaluates for which events one of several predicates holds."""

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self._classifier = Classifier([predicates])

    def __call__(self, events: EventBatch) -> Mask:
        letters = self._classifier.letters(events)[0]
        count = self._classifier.letter_count(0)
        held: Mask = np.array([any(self._classifier.truths(0, letter)) for letter in range(count)])[letters]
        return held


def _firsts_left_out(events: EventBatch, kept: Mask, types: Collection[str]) -> list[int]:
    """Return the place of the first event of each of these types without a kept event."""
    coded = events.types if pa.types.is_dictionary(events.types.type) else events.types.dictionary_encode()
    codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy()
    present = set(np.unique(codes[kept]).tolist())
    left_out = [at for at, name in enumerate(coded.dictionary.to_pylist()) if name in types and at not in present]
    return [first for at in left_out if codes[first := int(np.argmax(codes == at))] == at]
