"""Chains of Step's any next: ordinary joins, which may be regrouped where every condition has its variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.algebra.composites import Composite, CompositeSequence
from weft.algebra.predicates import Predicate
from weft.algebra.terms import Elapsed, conjuncts, looks_back, mentioned
from weft.optimizer.chains import Shape, leaves_of, numbered


@dataclass(frozen=True)
class Joins:
    """Operands in order, and conditions: those in `whole` bound the total duration, all else reads variables."""

    operands: tuple[Composite, ...]
    where: tuple[Predicate, ...]
    whole: tuple[Predicate, ...]
    shape: Shape

    def with_operands(self, operands: tuple[Composite, ...]) -> Joins:
        """The same joins of other operands, which bind the same variables."""
        return replace(self, operands=operands)

    def bracketed(self, shape: Shape) -> Composite:
        """The joins with other brackets; every condition is at the lowest join that binds its variables."""
        return self._built(shape, self.where, self.whole)

    def stretch(self, shape: Shape) -> Composite:
        """A part of the joins by itself, with the conditions that it binds."""
        return self._built(shape, [test for test in self.where if mentioned(test) <= self._variables(shape)])

    def _built(self, shape: Shape, where: Sequence[Predicate], whole: tuple[Predicate, ...] = ()) -> Composite:
        if isinstance(shape, int):
            return self.operands[shape]
        # An operand has no place for conditions: those of one operand alone are at the join above it.
        bound = [frozenset() if isinstance(part, int) else self._variables(part) for part in shape]
        inside = [[test for test in where if mentioned(test) and mentioned(test) <= names] for names in bound]
        own = [test for test in where if test not in inside[0] and test not in inside[1]]
        below = [self._built(part, tests) for part, tests in zip(shape, inside, strict=True)]
        return CompositeSequence(below[0], below[1], "each", (*own, *whole))

    def _variables(self, shape: Shape) -> frozenset[str]:
        return frozenset(name for number in leaves_of(shape) for name in self.operands[number].variables)


def joins_of(node: CompositeSequence) -> Joins:
    """The joins that end with an operator; operands whose duration is asked for stay whole."""
    whole = tuple(test for test in conjuncts(node.where) if _speaks_of_the_whole(test))
    if any(looks_back(test) for test in conjuncts(node.where)):
        return Joins((node,), (), (), 0)
    parts = [_opened(side) for side in (node.left, node.right)]
    where = [*(test for test in conjuncts(node.where) if test not in whole), *parts[0][1], *parts[1][1]]
    shape = numbered((parts[0][2], parts[1][2]), iter(range(len(parts[0][0]) + len(parts[1][0]))))
    return Joins((*parts[0][0], *parts[1][0]), tuple(where), whole, shape)


def _opened(node: Composite) -> tuple[list[Composite], list[Predicate], Shape]:
    tests = conjuncts(node.where) if isinstance(node, CompositeSequence) else ()
    if (
        not isinstance(node, CompositeSequence)
        or node.pick != "each"
        or any(looks_back(t) or _speaks_of_the_whole(t) for t in tests)
    ):
        return [node], [], 0
    left, right = _opened(node.left), _opened(node.right)
    return [*left[0], *right[0]], [*tests, *left[1], *right[1]], (left[2], right[2])


def _speaks_of_the_whole(test: Predicate) -> bool:
    return any(isinstance(part, Elapsed) for part in test.walk())
