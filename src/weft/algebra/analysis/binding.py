"""Which variables every occurrence of a composite pattern binds."""

from __future__ import annotations

from weft.algebra.composites import Composite, CompositeEvent, CompositeUnion, Without


def always_bound(pattern: Composite) -> frozenset[str]:
    """The variables that every occurrence binds."""
    match pattern:
        case CompositeUnion():
            return frozenset()
        case CompositeEvent(_, variable):
            return frozenset((variable,))
        case Without(inner):
            return always_bound(inner)
    parts = [always_bound(child) for child in pattern.children() if isinstance(child, Composite)]
    return frozenset().union(*parts)
