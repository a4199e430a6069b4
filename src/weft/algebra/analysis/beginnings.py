"""Canonical prefixes of sequences, independent of variable names, by which patterns with a common prefix are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.analysis.renaming import rename, turned
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import Predicate
from weft.algebra.situations import Participant, Situation
from weft.algebra.terms import mentioned


def beginning(situation: Situation, count: int) -> Situation:
    """The first slots of a sequence and the conditions on them, as a pattern with one set for each event that ends any.

    It consumes nothing and is in all partitions that the sequence is in, so whatever the policies of the sequence are:
    an event in its last slot that ends no set here is in no candidate there.
    """
    slots = situation.participants[:count]
    names = {slot.variable: f"${number}" for number, slot in enumerate(slots)}
    own = [rename(part, names) for part in clauses(situation.assertion) if mentioned(part) <= names.keys()]
    renamed = [
        replace(
            slot,
            variable=names[slot.variable],
            where=tuple(sorted((rename(part, names) for part in slot.where), key=repr)),
        )
        for slot in slots
    ]
    return first_slots(situation, renamed, sorted({turned(part) for part in own}, key=repr), Repeated.LAST)


def first_slots(
    situation: Situation, slots: Sequence[Participant], assertion: Sequence[Predicate], repeated: Repeated
) -> Situation:
    """A situation of these slots alone, found at once and in any number; it consumes nothing."""
    return replace(
        situation,
        participants=tuple(replace(slot, repeated=repeated, consumption=Consumption.REUSE) for slot in slots),
        assertion=tuple(assertion),
        evaluation=Evaluation.IMMEDIATE,
        cardinality=Cardinality.UNRESTRICTED,
        split=0,
        shared=0,
    )
