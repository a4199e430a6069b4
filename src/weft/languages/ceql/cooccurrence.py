"""Which variables of a pattern can be bound in one match, to find filters that cannot have an effect."""

from __future__ import annotations

from weft.algebra import patterns

Variables = frozenset[str]


def bound_together(pattern: patterns.Pattern, asked: Variables) -> frozenset[Variables]:
    """The subsets of `asked` that some valuation of the pattern may bind, filters left out of account."""
    match pattern:
        case patterns.Event():
            return frozenset({asked.intersection(pattern.names)})
        case patterns.Bind(inner, name):
            return frozenset(found | asked.intersection({name}) for found in bound_together(inner, asked))
        case patterns.Sequence(left, right):
            return _joined(bound_together(left, asked), bound_together(right, asked))
        case patterns.Repeat(inner):
            found = bound_together(inner, asked)
            for _ in asked:  # each round can add one variable at least, or nothing ever more
                found |= _joined(found, found)
            return found
        case patterns.Union(left, right):
            return bound_together(left, asked) | bound_together(right, asked)
        case patterns.Maybe(inner):
            return bound_together(inner, asked) | {frozenset()}
        case patterns.Filter(inner) | patterns.Correlate(inner):
            return bound_together(inner, asked)
    return frozenset({frozenset()})


def _joined(left: frozenset[Variables], right: frozenset[Variables]) -> frozenset[Variables]:
    return frozenset(one | two for one in left for two in right)
