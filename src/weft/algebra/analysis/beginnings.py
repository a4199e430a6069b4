"""What a sequence begins with, whatever its variables are called: patterns that begin alike are told by it."""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.normal_form import clauses
from weft.algebra.analysis.renaming import rename, turned
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned


def beginning(situation: Situation, count: int) -> Situation:
    """The first slots of a sequence and the conditions on them, as a pattern with one set for each event that ends any.

    It consumes nothing and is in all partitions that the sequence is in, so whatever the policies of the sequence are:
    an event in its last slot that ends no set here is in no candidate there.
    """
    slots = situation.participants[:count]
    names = {slot.variable: f"${number}" for number, slot in enumerate(slots)}
    own = [rename(part, names) for part in clauses(situation.assertion) if mentioned(part) <= names.keys()]
    return replace(
        situation,
        participants=tuple(
            replace(
                slot,
                variable=names[slot.variable],
                repeated=Repeated.LAST,
                consumption=Consumption.REUSE,
                where=tuple(sorted((rename(part, names) for part in slot.where), key=repr)),
            )
            for slot in slots
        ),
        assertion=tuple(sorted({turned(part) for part in own}, key=repr)),
        evaluation=Evaluation.IMMEDIATE,
        cardinality=Cardinality.UNRESTRICTED,
        split=0,
        shared=0,
    )
