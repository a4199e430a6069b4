"""The rule `spread_key`."""

from __future__ import annotations

from weft.optimizer.chains import chain_of, is_next
from weft.tree import Node


def spread_key(node: Node) -> Node:
    """Let the key of a chain tie neighbours.

    Before: `(A a ; B b)[FILTER(a.k = b.k)] ; C c [FILTER(a.k = c.k)]`. After: `… ; C c [FILTER(b.k = c.k)]`.

    Side condition: equalities of one attribute tie the operands of every operator. Sound because what an operator has
    on its left then agrees in the attribute, so each of its events can stand for all.
    """
    if not is_next(node):
        return node
    chain = chain_of(node)
    return chain.spread().as_written() if chain.keys else node
