"""The rule `order_conditions`."""

from __future__ import annotations

from collections.abc import Callable

from weft.algebra.patterns import Correlate, Pattern
from weft.algebra.predicates import Predicate
from weft.tree import Node


def order_conditions(node: Node, rank: Callable[[Predicate], float]) -> Node:
    """Test the conditions over several events in the order of their ranks, the highest first.

    Before: `Correlate(Correlate(p, a < b), a = c)`. After: `Correlate(Correlate(p, a = c), a < b)`, if that ranks so.

    Side condition: none; only conditions on the same pattern are reordered. Sound because each filters the valuations
    independently of the rest; the innermost is tested first.
    """
    if not isinstance(node, Correlate):
        return node
    conditions: list[Predicate] = []
    pattern: Pattern = node
    while isinstance(pattern, Correlate):
        conditions.insert(0, pattern.condition)
        pattern = pattern.pattern
    for condition in sorted(conditions, key=rank, reverse=True):  # stable: equal ranks stay as written
        pattern = Correlate(pattern, condition)
    return pattern
