"""The rule `spread_key`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from weft.algebra.composites import Composite
from weft.algebra.predicates import Attribute, Comparison
from weft.algebra.terms import mentioned
from weft.optimizer.chains import OperandChain
from weft.optimizer.keys import key_name


def spread_key(chain: OperandChain) -> OperandChain:
    """Rewrite the key equalities of a chain to neighbours, so that any bracketing has an equality at every operator.

    Before: `(A a ; B b)[FILTER(a.k = b.k)] ; C c [FILTER(a.k = c.k)]`. After: `… ; C c [FILTER(b.k = c.k)]`.

    Side condition: equalities of one attribute connect the operands of every operator. Sound because all events on the
    left of an operator then agree in the attribute, so each of them can represent all.
    """
    among = [test for test in chain.among if key_name(test) not in chain.keys]
    for name in chain.keys:
        tied = [_tied_variable(chain, operand, name) for operand in chain.operands]
        among += [Comparison("=", Attribute(name, one), Attribute(name, other)) for one, other in pairwise(tied)]
    return replace(chain, among=tuple(among))


def _tied_variable(chain: OperandChain, operand: Composite, name: str) -> str:
    """The variable that ties an operand: that which conditions name."""
    named = {variable for test in chain.among if key_name(test) == name for variable in mentioned(test)}
    return next(variable for variable in operand.variables if variable in named)
