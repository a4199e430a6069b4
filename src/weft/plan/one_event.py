"""Predicates on single events of composite patterns, for the classifier."""

from __future__ import annotations

from weft.algebra.analysis.one_event import at_hand, is_of_one_event
from weft.algebra.composites import CompositeEvent
from weft.algebra.predicates import And, Predicate
from weft.algebra.terms import conjuncts
from weft.plan.atoms import IsType


def source_predicates(source: CompositeEvent) -> tuple[Predicate, tuple[Predicate, ...]]:
    """Split the conditions of a source into a predicate for the classifier, and the others."""
    parts = conjuncts(source.where)
    easy = [part for part in parts if is_of_one_event(part)]
    rest = tuple(part for part in parts if not is_of_one_event(part))
    return And((IsType(source.type), *map(at_hand, easy))), rest
