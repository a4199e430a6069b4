"""Conditions on occurrences as code for the machine of `weft.kernels.joins.joint`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import Protocol

import numpy as np

from weft.algebra.predicates import (
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    Like,
    Literal,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Value,
)
from weft.algebra.terms import Contains, Elapsed, Every, Previous, conjuncts
from weft.errors import UsageError
from weft.kernels.joins import joint
from weft.runtime.events import Int64s
from weft.runtime.joins.layout import What

_OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "=": 4, "<>": 5}
MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "=": "=",
    "<>": "<>",
}
_ARITHMETIC = {
    "+": joint.ADD,
    "-": joint.SUBTRACT,
    "*": joint.MULTIPLY,
    "/": joint.DIVIDE,
    "%": joint.REMAINDER,
}
_MOST_TICKS = 1 << 60
_MOST_TESTS = 2  # on values in entries, as `weft.kernels.joins.buckets` has them
Instruction = tuple[int, int, int, int]


@dataclass(frozen=True)
class View:
    """What a condition sees.

    `pair`: two operands, of which the left one came before. `run`: a run, or the member before, and a candidate.
    `alone`: one occurrence before which there was nothing; `start`: the same where a run may begin.
    `nodes` are the nodes of the left and right occurrence, `variables` what each binds.
    """

    kind: OneOf["pair", "run", "alone", "start"]
    nodes: tuple[int, ...]
    variables: tuple[tuple[str, ...], ...]
    bound: frozenset[str] = frozenset()  # variables that the left occurrence always binds

    def find(self, variable: str) -> tuple[int, int, int]:
        """Whose slots have a variable, at which node, and its number there."""
        if self.kind == "pair" and variable not in self.variables[0]:
            return joint.ON_RIGHT, self.nodes[1], self.variables[1].index(variable)
        side = joint.ON_EITHER if self.kind == "run" else joint.ON_LEFT
        return side, self.nodes[0], self.variables[0].index(variable)

    def find_before(self, variable: str) -> tuple[int, int, int] | None:
        """The same in what came before; None: nothing that came before can bind it."""
        side, node, number = self.find(variable)
        if self.kind in ("alone", "start") or side == joint.ON_RIGHT:
            return None
        return joint.ON_LEFT, node, number


def _span(part: Predicate) -> tuple[int, int] | None:
    """The operator and the ticks of a comparison of the length of the whole with a whole number."""
    match part:
        case Comparison(symbol, Elapsed(None, None), Literal(int(ticks))) if not isinstance(ticks, bool):
            return (_OPERATORS[symbol], ticks) if abs(ticks) < _MOST_TICKS else None
    return None


class Constants:
    """The constants and columns that code refers to by number."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.columns: list[str] = []
        self.patterns: list[Like | Matches] = []

    def constant(self, value: Value) -> int:
        """The number of a constant."""
        self.values.append(value)
        return len(self.values) - 1

    def column(self, name: str) -> int:
        """The number of an attribute."""
        if name not in self.columns:
            self.columns.append(name)
        return self.columns.index(name)

    def pattern(self, test: Like | Matches) -> int:
        """The number of what a test asks of a text."""
        same = [number for number, known in enumerate(self.patterns) if _asks_alike(known, test)]
        if not same:
            self.patterns.append(test)
        return same[0] if same else len(self.patterns) - 1


def _asks_alike(one: Like | Matches, other: Like | Matches) -> bool:
    return type(one) is type(other) and one.pattern == other.pattern


class SlotNumbers(Protocol):
    """Tells in which slot of a node's occurrences the event of a variable is."""

    def slot(self, node: int, what: What, variable: int) -> int:
        """The place of a slot; it is there from now on."""
        ...


class Compiler:
    """Compiles conditions; their slots and columns are there from then on."""

    def __init__(self, layouts: SlotNumbers, constants: Constants) -> None:
        self._layouts = layouts
        self._constants = constants
        self._code: list[Instruction] = []
        self._chosen: list[Every] = []

    def conditions(self, conditions: Iterable[Predicate], view: View) -> Int64s:
        """Code that is true when all conditions hold."""
        self._code = []
        slow = []
        for part in conjuncts(conditions):
            sides = (part.left, part.right) if isinstance(part, Comparison) else ()
            operands = [found for side in sides if (found := self._quick_operand(side, view)) is not None]
            if isinstance(part, Comparison) and len(operands) == 2:
                packed = [side * joint.SIDE + slot * joint.SLOT + column for side, slot, column in operands]
                self._emit(joint.QUICK, _OPERATORS[part.operator], *packed)
            elif (ticks := _span(part)) is not None and view.kind != "run":
                self._emit(joint.SPAN, *ticks)
            else:
                slow.append(part)
        for part in slow:
            self._predicate(part, view)
            self._emit(joint.CHECK)
        return np.array(self._code, np.int64).ravel()

    def tests(self, conditions: Iterable[Predicate], view: View) -> tuple[Int64s, tuple[Predicate, ...]]:
        """Comparisons of the left occurrence with the right one, equalities first, and the conditions that are left.

        A test is an operator, and slot and column of either side.
        """
        parts = conjuncts(conditions)
        found = {part: test for part in parts if (test := self._across(part, view)) is not None}
        equal_first = sorted(found, key=lambda part: found[part][0] != _OPERATORS["="])
        chosen = equal_first[:_MOST_TESTS]
        rest = tuple(part for part in parts if part not in chosen)
        return np.array([found[part] for part in chosen], np.int64).ravel(), rest

    def _across(self, part: Predicate, view: View) -> tuple[int, ...] | None:
        """A comparison of an attribute of the left occurrence with one of the right one, as a test."""
        if not isinstance(part, Comparison):
            return None
        left, right = self._quick_operand(part.left, view), self._quick_operand(part.right, view)
        if left is None or right is None or {left[0], right[0]} != {joint.ON_LEFT, joint.ON_RIGHT}:
            return None
        if left[0] == joint.ON_LEFT:
            return _OPERATORS[part.operator], *left[1:], *right[1:]
        return _OPERATORS[MIRRORED[part.operator]], *right[1:], *left[1:]

    def operand(self, attribute: Attribute, view: View) -> tuple[int, int]:
        """The slot and column of an attribute, as a key has them."""
        _, node, number = view.find(attribute.variable or "")
        return self._layouts.slot(node, "event", number), self._constants.column(attribute.name)

    def _emit(self, operation: int, x: int = 0, y: int = 0, z: int = 0) -> int:
        self._code.append((operation, x, y, z))
        return len(self._code) - 1

    def _here(self) -> int:
        return len(self._code) * joint.WIDTH

    def _quick_operand(self, expression: Expression, view: View) -> tuple[int, int, int] | None:
        """Side, slot and column of an attribute, now or of what surely came before; None: it is something else."""
        match expression:
            case Attribute(_, variable):
                found: tuple[int, int, int] | None = view.find(variable or "")
                attribute = expression
            case Previous(Attribute(_, variable) as attribute) if variable in view.bound:
                found = view.find_before(variable or "")
            case _:
                return None
        if found is None:
            return None
        side, node, number = found
        if side == joint.ON_EITHER and variable in view.bound:
            side = joint.ON_RIGHT
        return side, self._layouts.slot(node, "event", number), self._constants.column(attribute.name)

    # -- truths ---------------------------------------------------------------------------------

    def _predicate(self, predicate: Predicate, view: View) -> None:
        match predicate:
            case And(operands) | Or(operands):
                for operand in operands:
                    self._predicate(operand, view)
                self._emit(joint.ALL if isinstance(predicate, And) else joint.ANY, len(operands))
            case Not(operand):
                self._predicate(operand, view)
                self._emit(joint.NOT)
            case _:
                self._atom(predicate, view)

    def _atom(self, predicate: Predicate, view: View) -> None:
        """A condition without connectives: vacuous when nothing came before, and for every event of `Every`."""
        before = [view.find_before(p.attribute.variable or "") for p in predicate.walk() if isinstance(p, Previous)]
        self._chosen = list(dict.fromkeys(part for part in predicate.walk() if isinstance(part, Every)))
        if None in before or (self._chosen and view.kind == "start"):
            self._emit(joint.TRUTH, 1)
            return
        jumps = []
        for found in dict.fromkeys(found for found in before if found is not None):
            side, node, number = found
            jumps.append(self._emit(joint.VACUOUS, side, self._layouts.slot(node, "event", number)))
        if self._chosen:
            jumps.append(self._emit(joint.EVERY, len(self._chosen)))
            for term in self._chosen:
                side, _, number = view.find(term.attribute.variable or "")
                self._emit(joint.TERM, joint.ON_LEFT if side == joint.ON_EITHER else side, number)
        body = self._here()
        self._test(predicate, view)
        if self._chosen:
            self._emit(joint.REPEAT, body, len(self._chosen))
        for jump in jumps:
            operation, x, y, _ = self._code[jump]
            end = self._here()
            self._code[jump] = (operation, x, end, 0) if operation == joint.EVERY else (operation, x, y, end)

    def _test(self, predicate: Predicate, view: View) -> None:
        match predicate:
            case Always():
                self._emit(joint.TRUTH, 1)
            case Comparison(symbol, left, right):
                self._value(left, view)
                self._value(right, view)
                self._emit(joint.COMPARE, _OPERATORS[symbol])
            case Contains(operand, part):
                self._value(operand, view)
                self._value(part, view)
                self._emit(joint.CONTAINS)
            case Like(operand) | Matches(operand):
                self._value(operand, view)
                self._emit(joint.LOOKS, self._constants.pattern(predicate))
            case In(operand, values):
                for value in values:
                    self._test(Comparison("=", operand, Literal(value)), view)
                self._emit(joint.ANY, len(values)) if values else self._emit(joint.TRUTH, 0)
            case _:
                raise UsageError(f"{type(predicate).__name__} over several events runs on the engine 'meaning' only")

    # -- values ---------------------------------------------------------------------------------

    def _value(self, expression: Expression, view: View) -> None:
        match expression:
            case Literal(value):
                self._emit(joint.CONSTANT, self._constants.constant(value))
            case Attribute(name, variable):
                side, node, number = view.find(variable or "")
                self._attribute(side, node, number, name)
            case Previous(Attribute(name, variable)):
                found = view.find_before(variable or "")
                assert found is not None
                self._attribute(*found, name)
            case Every(Attribute(name)):
                self._emit(joint.CHOSEN, self._chosen.index(expression), self._constants.column(name))
            case Elapsed(first, last):
                whole = joint.ON_RIGHT if view.kind == "run" else joint.ON_EITHER
                start, end = self._time(first, "start", view), self._time(last, "end", view)
                self._emit(joint.ELAPSED, start, end, whole)
            case Negative(operand):
                self._value(operand, view)
                self._emit(joint.NEGATE)
            case Arithmetic(symbol, left, right):
                self._value(left, view)
                self._value(right, view)
                self._emit(_ARITHMETIC[symbol])
            case _:
                raise UsageError(f"{type(expression).__name__} runs on the engine 'meaning' only")

    def _attribute(self, side: int, node: int, number: int, name: str) -> None:
        slot = self._layouts.slot(node, "event", number)
        self._emit(joint.ATTRIBUTE, side, slot, self._constants.column(name))

    def _time(self, variable: str | None, what: OneOf["start", "end"], view: View) -> int:
        if variable is None:
            return -1
        side, node, number = view.find(variable)
        return side * joint.SIDE + self._layouts.slot(node, what, number)
