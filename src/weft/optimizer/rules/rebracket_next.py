"""The rule `rebracket_next`."""

from __future__ import annotations

from weft.algebra.composites import Composite
from weft.algebra.predicates import Predicate
from weft.algebra.terms import mentioned
from weft.optimizer.chains import OperandChain, Path, Shape, leaves_of


def rebracket_next(chain: OperandChain, shape: Shape) -> Composite:
    """Put other brackets around the operands of a chain.

    Before: `(A a ; B b) ; C c`. After, for the shape `(0, (1, 2))`: `A a ; (B b ; C c)`.

    Side condition: the shape brackets the operands of the chain in their order; those it keeps whole stay so.
    Sound because next is associative: without conditions; per key; and under skip conditions that look from the first
    operand at its neighbour, or bound the time since the first event. Plain conditions are asked as low as they can be
    where the first operand is.
    """
    spine: dict[Path, list[Predicate]] = {}
    for test in chain.where:
        spine.setdefault(_lowest_on_spine(chain, shape, mentioned(test)), []).append(test)
    return chain.built(shape, spine)


def _lowest_on_spine(chain: OperandChain, shape: Shape, names: frozenset[str]) -> Path:
    path: Path = ()
    while not isinstance(shape, int):
        left = shape[0]
        bound = {name for number in leaves_of(left) for name in chain.operands[number].variables}
        if isinstance(left, int) or not names <= bound:
            return path
        path, shape = (*path, 0), left
    return path
