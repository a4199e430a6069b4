"""The rule `reorder_union`."""

from __future__ import annotations

from weft.algebra.composites import Composite, CompositeUnion
from weft.optimizer.chains import Shape, leaves_of
from weft.tree import Node


def reorder_union(node: Node, shape: Shape, keep_order: bool = False) -> Node:
    """Join the branches of a union in another order.

    Before: `(A a | B b) | C c`. After, for the shape `((1, 2), 0)`: `(B b | C c) | A a`.

    Side condition: the shape has each branch once. Where the result depends on the order of occurrences with equal
    times and events (below Step's greedy next and iterations, `keep_order`), the branches keep their order. Sound
    because union is associative and, but for that order, commutative.
    """
    if not isinstance(node, CompositeUnion):
        return node
    branches = branches_of(node)
    numbers = list(leaves_of(shape))
    if sorted(numbers) != list(range(len(branches))) or (keep_order and numbers != sorted(numbers)):
        return node
    return _built(branches, shape)


def branches_of(node: Composite) -> list[Composite]:
    """The branches of a union of unions, from left to right."""
    if not isinstance(node, CompositeUnion):
        return [node]
    return [*branches_of(node.left), *branches_of(node.right)]


def _built(branches: list[Composite], shape: Shape) -> Composite:
    if isinstance(shape, int):
        return branches[shape]
    return CompositeUnion(_built(branches, shape[0]), _built(branches, shape[1]))
