"""The input events that a plan can use, by the predicates of the places where its queries bind or test events.

Events that satisfy none of the predicates in `seen` have no effect, so they need not be sent to a matcher. Those that
satisfy none in `bound` are in no match: they only affect adjacency, and their attributes are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.algebra.chains import Chain
from weft.algebra.composites import Composite, CompositeEvent
from weft.algebra.patterns import Other
from weft.algebra.predicates import Always, And, Attribute, Comparison, Predicate
from weft.plan.atoms import IsType
from weft.plan.one_event import source_predicates
from weft.plan.operators import AutomatonOp, JoinOp, PhysicalOp, Plan
from weft.plan.partitioning.replicated import FIRST, OWN

_MARKS = (Attribute(OWN), Attribute(FIRST))


@dataclass(frozen=True)
class Uses:
    """Predicates on single events; `seen` is None if any event may matter."""

    bound: tuple[Predicate, ...]
    seen: tuple[Predicate, ...] | None


def uses_of(plan: Plan) -> Uses:
    """Return what a plan can use, of all its operators together.

    Derived events have places among all events of the input.
    """
    if any(layer.feeders for layer in plan.layers):
        return Uses((Always(),), None)
    found = [_uses(operator) for operator in plan.operators]
    bound = _distinct(predicate for own in found for predicate in own.bound)
    if plan.relevant_types is None or any(own.seen is None for own in found):
        return Uses(bound, None)
    return Uses(bound, _distinct(predicate for own in found for predicate in own.seen or ()))


def _uses(operator: PhysicalOp) -> Uses:
    match operator:
        case AutomatonOp(_, query, automaton):
            if any(isinstance(node, Other | Chain) for node in query.pattern.walk()):
                return Uses((Always(),), None)
            bound = tuple(And(atom.guard) for atom in automaton.atoms if atom.names)
            if query.session is not None or query.relevant_types is None:
                return Uses(bound, None)
            return Uses(bound, tuple(And(atom.guard) for atom in automaton.atoms))
        case JoinOp():
            sources = tuple(
                source_predicates(node)[0]
                for query in operator.queries.values()
                for node in query.walk(Composite)
                if isinstance(node, CompositeEvent)
            )
            return Uses(sources, sources)
    kinds = [query.relevant_types for query in operator.queries.values()]
    if any(own is None for own in kinds):
        return Uses((Always(),), None)
    named = tuple(IsType(name) for name in sorted(frozenset().union(*(own for own in kinds if own is not None))))
    return Uses(named, named)


def _distinct(predicates: Iterator[Predicate]) -> tuple[Predicate, ...]:
    return tuple({repr(predicate): predicate for predicate in map(_unmarked, predicates)}.values())


def _unmarked(predicate: Predicate) -> Predicate:
    """Remove the parts of a predicate that only lanes can evaluate, since this is applied before events have lanes."""
    if not isinstance(predicate, And):
        return predicate
    marked = (isinstance(one, Comparison) and one.left in _MARKS for one in predicate.operands)
    return And(tuple(one for one, is_marked in zip(predicate.operands, marked, strict=True) if not is_marked))
