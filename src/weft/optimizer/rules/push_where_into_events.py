"""The rule `push_where_into_events`."""

from __future__ import annotations

from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import Predicate
from weft.tree import Node


def push_where_into_events(node: Node) -> Node:
    """Move a filter on a variable down to the events that are bound to it.

    Before: `Filter(Sequence(Bind(A, x), B), x, p)`. After: `Sequence(Bind(Where(A, A, p), x), B)`.

    Side condition: none; where x is bound to nothing the filter goes away, as it holds there vacuously.
    Sound because the filter asks the same of each event bound to x, one by one: a valuation of a sequence,
    a repetition or a union passes iff its parts do, `Bind(p, x)` binds exactly the events marked in p, and
    filters commute with each other.
    """
    match node:
        case Filter(pattern, variable, predicate):
            return _pushed(pattern, variable, predicate)
    return node


def _pushed(pattern: Pattern, variable: str | None, predicate: Predicate) -> Pattern:
    """Return the filtered pattern; with `variable` None every marked event is filtered."""
    match pattern:
        case Event() as event:
            return _filtered(pattern, event, variable, predicate)
        case Filter(Event() as event):
            return _filtered(pattern, event, variable, predicate)
        case Other():
            return pattern
        case Bind(inner, name):
            return Bind(_pushed(inner, None if name == variable else variable, predicate), name)
        case Sequence(left, right, contiguous):
            return Sequence(_pushed(left, variable, predicate), _pushed(right, variable, predicate), contiguous)
        case Union(left, right):
            return Union(_pushed(left, variable, predicate), _pushed(right, variable, predicate))
        case Repeat(inner, contiguous):
            return Repeat(_pushed(inner, variable, predicate), contiguous)
        case Maybe(inner):
            return Maybe(_pushed(inner, variable, predicate))
        case Filter(inner, other, known):
            return Filter(_pushed(inner, variable, predicate), other, known)
        case Correlate(inner, condition):
            return Correlate(_pushed(inner, variable, predicate), condition)
    return pattern if variable is None else Filter(pattern, variable, predicate)


def _filtered(pattern: Pattern, event: Event, variable: str | None, predicate: Predicate) -> Pattern:
    """A pattern of one event, filtered if the variable is bound to that event."""
    bound = variable is None or variable in event.names
    return Filter(pattern, event.type, predicate) if bound else pattern
