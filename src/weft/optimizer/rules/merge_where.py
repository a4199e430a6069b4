"""The rule `merge_where`."""

from __future__ import annotations

from weft.algebra.patterns import Where
from weft.algebra.predicates import And
from weft.tree import Node


def merge_where(node: Node) -> Node:
    """Make one filter of two on the same variable.

    Before: `Where(Where(p, x, a), x, b)`. After: `Where(p, x, a AND b)`.

    Side condition: the variable is the same. Sound because every event bound to x satisfies a, and every
    one satisfies b, iff every one satisfies both.
    """
    match node:
        case Where(Where(pattern, inner, first), outer, second) if inner == outer:
            return Where(pattern, inner, And((first, second)))
    return node
