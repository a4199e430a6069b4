"""Keys of chains: equalities of one attribute that tie the operands of every operator."""

from __future__ import annotations

from weft.algebra.analysis.binding import always_bound
from weft.algebra.composites import Composite, CompositeSequence
from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.terms import conjuncts


def key_name(test: Predicate) -> str | None:
    """The attribute that a condition equates in two variables, as in `a.k = b.k`."""
    match test:
        case Comparison("=", Attribute(name, str() as one), Attribute(other, str() as second)):
            return name if name == other and one != second else None
    return None


def tying_names(node: CompositeSequence) -> tuple[str, ...]:
    """The attributes that tie the left and the right operand of every operator of a chain, in order of their names.

    Where equalities only meet at the last operator, the ones before it do not pass events over: such an attribute is
    no key of the chain, though it connects all operands.
    """
    names = {name for test in conjuncts(node.among) if (name := key_name(test)) is not None}
    return tuple(sorted(name for name in names if _tied(node, name)))


def _tied(node: Composite, name: str) -> frozenset[str]:
    """The variables of a pattern that are known to agree in an attribute; none when an operator does not tie them."""
    if not isinstance(node, CompositeSequence) or node.pick != "next":
        return always_bound(node) if len(node.variables) == 1 else frozenset()
    left, right = _tied(node.left, name), _tied(node.right, name)
    for test in conjuncts(node.among):
        if key_name(test) == name:
            one, other = (part.variable for part in test.children() if isinstance(part, Attribute))
            if (one in left and other in right) or (one in right and other in left):
                return left | right
    return frozenset()
