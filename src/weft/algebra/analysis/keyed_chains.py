"""Keyed chains: single events with equal keys, each the next of its kind after the previous one.

This is EQL's sequence where only key equalities connect the events.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.algebra.analysis.one_event import is_of_one_event, own_predicate
from weft.algebra.analysis.spans import Span, least, span_of
from weft.algebra.composites import Composite, CompositeEvent, CompositeSequence, Conditions, Without
from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.terms import conjuncts

MOST_STEPS = 30  # an event has two bits for each, and one more


class ChainEvent(NamedTuple):
    """An event of a keyed chain, and what it must satisfy for the chain to continue."""

    source: CompositeEvent
    needed: tuple[Predicate, ...] = ()  # on the current event
    within: Span = None  # the most ticks from the start of the first event to the end of this one


class ChainParts(NamedTuple):
    """The events of a keyed chain, and the attributes that must be equal in all of them."""

    key: tuple[str, ...]
    events: tuple[ChainEvent, ...]
    unwanted: CompositeEvent | None = None  # no such event with the same key may stand between two events


def chain_parts(pattern: Composite) -> ChainParts | None:
    """The parts of the keyed chain that a pattern is, or None if it is none."""
    if isinstance(pattern, Without):
        return _without(pattern)
    follows: list[CompositeSequence] = []
    while isinstance(pattern, CompositeSequence):
        follows.insert(0, pattern)
        pattern = pattern.left
    if not follows or len(follows) >= MOST_STEPS or not _is_simple(pattern):
        return None
    keys = {_key_of(_unbounded(follow), follow.right) for follow in follows}
    events = [_event_of(follow) for follow in follows]
    if None in keys or len(keys) > 1 or None in events or not isinstance(pattern, CompositeEvent):
        return None
    (key,) = keys
    return ChainParts(key or (), (ChainEvent(pattern), *(event for event in events if event is not None)))


def _without(pattern: Without) -> ChainParts | None:
    """A chain of two events with an unwanted one between them."""
    chain, unwanted = chain_parts(pattern.pattern), pattern.unwanted
    if chain is None or len(chain.events) > 2 or chain.unwanted or pattern.when != "between":
        return None
    if not isinstance(unwanted, CompositeEvent) or _key_of(pattern.where, unwanted) != chain.key:
        return None
    return chain._replace(unwanted=unwanted) if _is_simple(unwanted) else None


def _is_simple(pattern: Composite) -> bool:
    """Whether a pattern is an event that is selected by its own attributes only."""
    return isinstance(pattern, CompositeEvent) and all(map(is_of_one_event, conjuncts(pattern.where)))


def _key_of(conditions: Conditions, right: Composite) -> tuple[str, ...] | None:
    """Return the attributes in which an event equals those before it, or None if it has further conditions."""
    names: set[str] = set()
    for test in conjuncts(conditions):
        match test:
            case Comparison("=", Attribute(name, one), Attribute(same, other)) if name == same:
                if (one in right.variables) == (other in right.variables):
                    return None
                names.add(name)
            case _:
                return None
    return tuple(sorted(names))


def _event_of(follow: CompositeSequence) -> ChainEvent | None:
    """The event with which a sequence ends, or None if the sequence asks for more than a chain can."""
    if follow.pick != "next" or not isinstance(follow.right, CompositeEvent) or not _is_simple(follow.right):
        return None
    bounds = (_most(test, follow) for test in conjuncts((*follow.among, *follow.where)))
    needed: list[Predicate] = []
    for test in conjuncts(follow.where):
        own = own_predicate(follow.right, test)
        if own is not None:
            needed.append(own)
        elif _most(test, follow) is None:
            return None
    return ChainEvent(follow.right, tuple(needed), least(*bounds))


def _unbounded(follow: CompositeSequence) -> tuple[Predicate, ...]:
    """What decides which event is next, without upper bounds on the duration: candidates come by their end.

    After one that is too late there are only such, so it does not matter whether a bound skips or rejects it.
    """
    return tuple(test for test in conjuncts(follow.among) if _most(test, follow) is None)


def _most(test: Predicate, follow: CompositeSequence) -> Span:
    """The most ticks that a sequence may take, if a test says that and nothing else."""
    exact = isinstance(test, Comparison) and test.operator != "="
    return span_of(test, follow) if exact else None
