"""The rule `rebracket_next`."""

from __future__ import annotations

from weft.optimizer.chains import Shape, chain_of, is_next, leaves_of
from weft.tree import Node


def rebracket_next(node: Node, shape: Shape) -> Node:
    """Put other brackets around the operands of a chain.

    Before: `(A a ; B b) ; C c`. After, for the shape `(0, (1, 2))`: `A a ; (B b ; C c)`.

    Side condition: the shape brackets the operands that `chain_of` finds, in their order; those it keeps whole stay so.
    Sound because next is associative: without conditions; per key; and under skip conditions that look from the first
    operand at its neighbour, or bound the time since the first event. Plain conditions are asked of the whole, or lower
    where the first operand is.
    """
    if not is_next(node):
        return node
    chain = chain_of(node)
    if list(leaves_of(shape)) != list(range(len(chain.operands))) or len(chain.operands) < 2:
        return node
    return chain.spread().bracketed(shape)
