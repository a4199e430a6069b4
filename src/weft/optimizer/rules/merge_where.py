"""The rule `merge_where`."""

from __future__ import annotations

from weft.algebra.patterns import Filter
from weft.algebra.predicates import And
from weft.tree import Node


def merge_where(node: Node) -> Node:
    """Make one filter of two on the same variable.

    Before: `Filter(Where(p, x, a), x, b)`. After: `Filter(p, x, a AND b)`.

    Side condition: the variable is the same. Sound because every event bound to x satisfies a, and every
    one satisfies b, iff every one satisfies both.
    """
    match node:
        case Filter(Filter(pattern, inner, first), outer, second) if inner == outer:
            return Filter(pattern, inner, And((first, second)))
    return node
