"""Chains of next: which operands may be regrouped, which conditions move with them, and what prevents more.

EQL's `A ; B ; C` is a chain of operators with pick `next`. Brackets may change where the occurrences stay the same on
every stream; conditions decide that (each class was tested on random streams, and has its counterexample as a test
where it fails). Forms that are not known to be sound are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

from weft.algebra.analysis.binding import always_bound
from weft.algebra.composites import Composite, CompositeEvent, CompositeSequence
from weft.algebra.predicates import Comparison, Literal, Predicate
from weft.algebra.terms import Elapsed, conjuncts, looks_back, mentioned
from weft.optimizer.keys import key_name, tying_names
from weft.tree import Node

Shape = int | tuple["Shape", "Shape"]  # brackets: the number of an operand, or two shapes
Path = tuple[int, ...]  # the way to an operator inside of brackets: 0 for the left one, 1 for the right one


class Refusal(NamedTuple):
    """Why a part was left unchanged, and the condition that prevents a rewrite, if one does.

    Otherwise it concerns some `parts` of the query, or the whole.
    """

    reason: str
    condition: Predicate | None = None
    parts: tuple[Node, ...] = ()


@dataclass(frozen=True)
class OperandChain:
    """Operands in order and the conditions between them, for which all brackets have the same occurrences.

    `among` are skip conditions, each of the lowest operator that binds its variables; `where` is asked of the whole.
    `shape` is how it was written, `keys` the attributes that tie the operands of every operator.
    """

    operands: tuple[Composite, ...]
    among: tuple[Predicate, ...]
    where: tuple[Predicate, ...]
    shape: Shape
    keys: tuple[str, ...]
    refusals: tuple[Refusal, ...] = ()

    def with_operands(self, operands: tuple[Composite, ...]) -> OperandChain:
        """The same chain of other operands, which bind the same variables."""
        return replace(self, operands=operands)

    def built(self, shape: Shape, where: Mapping[Path, Sequence[Predicate]]) -> Composite:
        """The pattern with these brackets, and with plain conditions at the operators on these paths."""
        return self._built(shape, self.among, where, ())

    def _built(
        self, shape: Shape, among: Sequence[Predicate], where: Mapping[Path, Sequence[Predicate]], path: Path
    ) -> Composite:
        if isinstance(shape, int):
            return self.operands[shape]
        below: list[Composite] = []
        left_over = list(among)
        for side, part in enumerate(shape):
            names = {name for number in leaves_of(part) for name in self.operands[number].variables}
            inside = [test for test in left_over if mentioned(test) <= names]
            left_over = [test for test in left_over if not mentioned(test) <= names]
            below.append(self._built(part, inside, where, (*path, side)))
        return CompositeSequence(below[0], below[1], "next", tuple(where.get(path, ())), tuple(left_over))


def leaves_of(shape: Shape) -> Iterator[int]:
    """The numbers of the operands in brackets, in order."""
    if isinstance(shape, int):
        yield shape
    else:
        yield from leaves_of(shape[0])
        yield from leaves_of(shape[1])


def is_next(node: object) -> TypeGuard[CompositeSequence]:
    """Whether a pattern is EQL's next."""
    return isinstance(node, CompositeSequence) and node.pick == "next"


def chain_of(node: CompositeSequence) -> OperandChain:
    """The chain that ends with an operator; operands that must stay whole are operands of it."""
    keys = tying_names(node)
    opening = _Opening(keys)
    part = opening.open(node)
    shape = numbered(part.shape, iter(range(len(part.operands))))
    return OperandChain(
        tuple(part.operands), tuple(part.among), tuple(part.where), shape, keys, tuple(opening.refusals)
    )


class _Part(NamedTuple):
    """A piece of a chain; in its shape all operands are 0."""

    operands: list[Composite]
    among: list[Predicate]
    where: list[Predicate]
    shape: Shape


def _alone(operand: Composite) -> _Part:
    return _Part([operand], [], [], 0)


def numbered(shape: Shape, numbers: Iterator[int]) -> Shape:
    """Brackets with other numbers of operands."""
    return next(numbers) if isinstance(shape, int) else (numbered(shape[0], numbers), numbered(shape[1], numbers))


class _Opening:
    """Takes a chain apart from its first operand on, as far as conditions allow."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self.refusals: list[Refusal] = []

    def open(self, node: Composite) -> _Part:
        """The operands of a left spine; an operator that must keep its operands is the first operand of the rest."""
        if not is_next(node):
            return _alone(node)
        left = self.open(node.left)
        refusals: list[Refusal] = []
        for right in (self._right(node.right), _alone(node.right)):
            refusal = self._refusal(node, left, right)
            if refusal is None:
                self.refusals += refusals
                return _Part(
                    [*left.operands, *right.operands],
                    [*left.among, *conjuncts(node.among), *right.among],
                    [*left.where, *conjuncts(node.where)],
                    (left.shape, right.shape),
                )
            refusals = [refusal]
        self.refusals += refusals
        return _alone(node)

    def _right(self, node: Composite) -> _Part:
        """The operands of a right operand, where nothing but whole keys ties them."""
        if not is_next(node):
            return _alone(node)
        forbidding = [test for test in conjuncts(node.among) if key_name(test) not in self._keys]
        forbidding += conjuncts(node.where)
        if forbidding:
            self.refusals.append(
                Refusal("a condition inside a right operand decides there, so it stays", forbidding[0])
            )
            return _alone(node)
        left, right = self._right(node.left), self._right(node.right)
        among = [*left.among, *conjuncts(node.among), *right.among]
        return _Part([*left.operands, *right.operands], among, [], (left.shape, right.shape))

    def _refusal(self, node: CompositeSequence, left: _Part, right: _Part) -> Refusal | None:
        """Why an operator cannot be taken apart into these operands; None if it can."""
        sure = always_bound(node.left) | always_bound(node.right)
        for test in (*conjuncts(node.among), *conjuncts(node.where)):
            if looks_back(test):
                return Refusal("PREV and ALL speak of what the operator has on its left", test)
            if not mentioned(test) <= sure:
                return Refusal("a variable below | may be unbound, so its condition stays with its operator", test)
        first, second = left.operands[0], right.operands[0]
        for test in conjuncts(node.among):
            of_neighbours = len(left.operands) == 1 and mentioned(test) <= {*first.variables, *second.variables}
            if key_name(test) not in self._keys and not of_neighbours and not _bounds_time(test, first, right.operands):
                reason = "FILTER passes over events, and is not between the first operand and its neighbour"
                return Refusal(reason, test)
        return None


def _bounds_time(test: Predicate, first: Composite, others: Sequence[Composite]) -> bool:
    """Whether a condition is a bound of time from the first event on: once it is exceeded, it stays so."""
    match test:
        case Comparison("<" | "<=", Elapsed(str() as begin, str() as end), Literal()):
            ends = [operand.variable for operand in others if isinstance(operand, CompositeEvent)]
            return isinstance(first, CompositeEvent) and first.variable == begin and end in ends
    return False
