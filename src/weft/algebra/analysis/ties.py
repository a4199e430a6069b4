"""Attributes in which all events of a match of a regular pattern agree, because equalities tie all its variables."""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.patterns import (
    Bind,
    Correlate,
    Event,
    Filter,
    Maybe,
    Pattern,
    Repeat,
    Sequence,
    Union,
    may_be_nothing,
)
from weft.algebra.predicates import Attribute, Comparison
from weft.tree import Node


def tied_attributes(pattern: Pattern) -> list[str]:
    """Return the attributes by which the pattern can be evaluated for each value by itself.

    `a[id] = b[id] AND b[id] = c[id]` over `A AS a; B+ AS b; C AS c` ties `id`. Contiguity and NOT look at events of
    other values, so a pattern with either has no such attribute.
    """
    if not all(_skips_others(node) for node in pattern.walk(Pattern)):
        return []
    equalities = list(_equalities(pattern))
    names = sorted({one.name for one, _ in equalities})
    return [name for name in names if _is_tied(pattern, [pair for pair in equalities if pair[0].name == name])]


def _skips_others(node: Node) -> bool:
    """Return whether events that the node does not bind have no influence on its matches."""
    if isinstance(node, Sequence | Repeat):
        return not node.contiguous
    return isinstance(node, Event | Bind | Union | Maybe | Filter | Correlate)


def _equalities(pattern: Pattern) -> Iterator[tuple[Attribute, Attribute]]:
    """Yield both sides of each `x[name] = y[name]` that filters the whole pattern.

    A comparison holds vacuously if one of its variables is bound to nothing, so only variables that every match binds
    count.
    """
    bound = _always_bound(pattern)
    while isinstance(pattern, Filter | Correlate):
        if isinstance(pattern, Correlate):
            match pattern.condition:
                case Comparison("=", Attribute() as one, Attribute() as other) if one.name == other.name:
                    if one.variable in bound and other.variable in bound and one.variable != other.variable:
                        yield one, other
        pattern = pattern.pattern


def _is_tied(pattern: Pattern, equalities: list[tuple[Attribute, Attribute]]) -> bool:
    """Return whether equalities of one attribute reach an event of every leaf."""
    group = {equalities[0][0].variable}
    for _ in equalities:  # each pass adds at least one variable, or there is none to add
        group |= {name for pair in equalities for name in _variables(pair) if not group.isdisjoint(_variables(pair))}
    return all(not group.isdisjoint(names) for names in _leaves(pattern))


def _variables(pair: tuple[Attribute, Attribute]) -> set[str | None]:
    return {pair[0].variable, pair[1].variable}


def _leaves(pattern: Pattern, outer: frozenset[str] = frozenset()) -> Iterator[frozenset[str]]:
    """Yield the variables that the event of each leaf is bound to."""
    if isinstance(pattern, Event):
        yield outer.union(pattern.names)
    if isinstance(pattern, Bind):
        outer |= {pattern.name}
    for child in pattern.children():
        if isinstance(child, Pattern):
            yield from _leaves(child, outer)


def _always_bound(pattern: Pattern) -> frozenset[str]:
    """Return the variables that every match binds to at least one event."""
    match pattern:
        case Event():
            return frozenset(pattern.names)
        case Bind(inner, name):
            return _always_bound(inner) | (frozenset() if may_be_nothing(inner) else {name})
        case Sequence(left, right):
            return _always_bound(left) | _always_bound(right)
        case Union(left, right):
            return _always_bound(left) & _always_bound(right)
        case Repeat(inner) | Filter(inner) | Correlate(inner):
            return _always_bound(inner)
    return frozenset()
