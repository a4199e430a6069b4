"""The rule `drop_always_where`."""

from __future__ import annotations

from weft.algebra.patterns import Filter
from weft.algebra.predicates import Always
from weft.tree import Node


def drop_always_where(node: Node) -> Node:
    """Drop a filter that everything passes.

    Before: `Filter(p, x, Always)`. After: `p`.

    Side condition: none. Sound because every event bound to x satisfies Always, so the filter keeps all
    valuations of p.
    """
    match node:
        case Filter(pattern, _, Always()):
            return pattern
    return node
