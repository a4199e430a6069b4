"""The rule `order_overlap`."""

from __future__ import annotations

from weft.algebra.composites import Overlap
from weft.algebra.terms import looks_back
from weft.tree import Node


def order_overlap(node: Node) -> Node:
    """Exchange the operands of `,`.

    Before: `A a, B b`. After: `B b, A a`.

    Side condition: no condition speaks of what came before (the left operand), and nobody above tells occurrences with
    equal times and events apart by their order. Sound because to share a time and to share no event are symmetric. It
    is not associative: in `(A, B), C` the third need not meet the first, so brackets stay.
    """
    if not isinstance(node, Overlap) or any(looks_back(test) for test in node.where):
        return node
    return Overlap(node.right, node.left, node.where)
