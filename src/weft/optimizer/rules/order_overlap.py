"""The rule `order_overlap`."""

from __future__ import annotations

from weft.algebra.composites import Overlap
from weft.algebra.terms import looks_back
from weft.tree import Node


def order_overlap(node: Node) -> Node:
    """Exchange the operands of `,`.

    Before: `A a, B b`. After: `B b, A a`.

    Side condition: no condition reads the preceding occurrence (the left operand), and no operator above depends on the
    order of occurrences with equal times and events. Sound because sharing a time and sharing no event are symmetric.
    The operator is not associative: in `(A, B), C` the third need not overlap the first, so brackets stay.
    """
    if not isinstance(node, Overlap) or any(looks_back(test) for test in node.where):
        return node
    return Overlap(node.right, node.left, node.where)
