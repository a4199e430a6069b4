"""The rule `lift_plain_conditions`."""

from __future__ import annotations

from weft.algebra.composites import Composite
from weft.optimizer.chains import OperandChain


def lift_plain_conditions(chain: OperandChain) -> Composite:
    """Ask the plain conditions of a chain of the whole, so that its brackets are free.

    Before: `((A a ; B b)[b.x > 3] ; C c)`. After: `((A a ; B b) ; C c)[b.x > 3]`.

    Side condition: the operators are on the left spine (a right operand with conditions stays as it is), and the
    condition neither looks back (PREV, ALL) nor reads a variable that may be unbound. Sound because a plain condition
    that fails ends the search for that left occurrence only: nothing else depends on it.
    """
    return chain.built(chain.shape, {(): chain.where})
