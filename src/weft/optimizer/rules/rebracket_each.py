"""The rule `rebracket_each`."""

from __future__ import annotations

from weft.algebra.composites import Composite
from weft.optimizer.chains import Shape
from weft.optimizer.joins import Joins


def rebracket_each(joins: Joins, shape: Shape) -> Composite:
    """Put other brackets around the operands of Step's any next.

    Before: `(A/a ;? B/b) ;? C/c`. After, for the shape `(0, (1, 2))`: `A/a ;? (B/b ;? C/c)`.

    Side condition: the shape brackets the operands in their order; operands whose duration is asked for stay whole.
    Sound because any next is an ordinary join, which is associative: every condition is evaluated at the lowest join
    that binds its variables, and conditions on the duration of the whole at the outermost join.
    """
    return joins.bracketed(shape)
