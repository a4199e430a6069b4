"""Compile conditions and expressions to code for the machine (`weft.kernels.machine.machine`), for all operators.

An operator decides how its variables are bound: its `Terms` return the slot with the event of a variable, and the
result for a term of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from weft.algebra.predicates import (
    Always,
    And,
    Arithmetic,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Predicate,
    RegexMatch,
    Value,
)
from weft.algebra.terms import Contains
from weft.errors import UsageError
from weft.kernels.machine import machine, tagged
from weft.runtime.data.events import Int64s
from weft.runtime.machine.values import Tagged
from weft.tree import Node

OPERATORS = {
    "<": tagged.LESS,
    "<=": tagged.LESS_EQUAL,
    ">": tagged.GREATER,
    ">=": tagged.GREATER_EQUAL,
    "=": tagged.EQUAL,
    "<>": tagged.UNEQUAL,
}
_ARITHMETIC = {
    "+": tagged.ADD,
    "-": tagged.SUBTRACT,
    "*": tagged.MULTIPLY,
    "/": tagged.DIVIDE,
    "%": tagged.REMAINDER,
}
Instruction = tuple[int, int, int, int]
Constant = tuple[int, type, Value]  # CONSTANT, and what is tagged when the code is made


class Quantified(NamedTuple):
    """Slots of an atomic condition: it is true if one of some is empty, and must hold for every event of the others."""

    vacuous: Sequence[int] = ()
    every: Sequence[int] = ()


class Terms:
    """The bindings of an operator, for compiling conditions."""

    def line(self, term: Expression) -> Instruction:
        """Return the instruction that reads an attribute, or a term of the operator."""
        raise refused(term)

    def quantified(self, atom: Predicate) -> Quantified | None:
        """Return the events over which an atomic condition is quantified, or None if it is true."""
        return Quantified()


def refused(node: Node) -> UsageError:
    """Return the error for a condition that cannot be compiled."""
    return UsageError(f"{type(node).__name__} over several events runs on the engine 'meaning' only")


class Code:
    """The code of many conditions. Equal pieces are stored once."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[type, str], Like | RegexMatch] = {}
        self.longest = 1
        self.slots = self.results = 1  # as many as any piece needs: algorithms say so
        self._lines: list[Instruction | Constant] = []
        self._pieces: dict[tuple[Instruction | Constant, ...], int] = {}

    def add(self, node: Predicate | Expression, terms: Terms) -> tuple[int, int]:
        """Compile a condition or an expression; return where its code begins and ends."""
        writer = _Writer(self, terms)
        writer.condition(node) if isinstance(node, Predicate) else writer.value(node)
        piece = tuple(writer.lines)
        begin = self._pieces.setdefault(piece, len(self._lines))
        if begin == len(self._lines):
            self._lines += piece
        self.longest = max(self.longest, len(piece))
        return begin, begin + len(piece)

    def pattern(self, test: Like | RegexMatch) -> int:
        """Return the number of a text test."""
        self._patterns.setdefault((type(test), test.pattern), test)
        return list(self._patterns).index((type(test), test.pattern))

    @property
    def patterns(self) -> list[Like | RegexMatch]:
        """The text tests."""
        return list(self._patterns.values())

    def array(self, tag: Callable[[Value], Tagged]) -> Int64s:
        """Return the code for the machine, with constants as they are tagged now."""
        lines = [(machine.CONSTANT, 0, *tag(line[2])) if line[0] == machine.CONSTANT else line for line in self._lines]
        return np.array(lines, np.int64).ravel()

    def stack(self) -> Int64s:
        """Allocate the stack for any piece of code."""
        return np.zeros(tagged.VALUE * (self.longest + 1), np.int64)


class _Writer:
    """Compiles one piece of code."""

    def __init__(self, code: Code, terms: Terms) -> None:
        self.lines: list[Instruction | Constant] = []
        self._code = code
        self._terms = terms

    def _emit(self, operation: int, x: int = 0, z: int = 0) -> None:
        self.lines.append((operation, x, 0, z))

    def _constant(self, value: Value) -> None:
        self.lines.append((machine.CONSTANT, type(value), value))

    def condition(self, predicate: Predicate) -> None:
        """Add code that leaves a truth."""
        match predicate:
            case And(operands) | Or(operands):
                for operand in operands:
                    self.condition(operand)
                self._gather(machine.ALL if isinstance(predicate, And) else machine.ANY, len(operands))
            case Not(operand):
                self.condition(operand)
                self._emit(machine.NOT)
            case _:
                self._atom(predicate)

    def _gather(self, operation: int, count: int) -> None:
        """Combine `count` truths by AND or OR; without any, AND is true and OR is false."""
        self._emit(operation, count) if count else self._constant(operation == machine.ALL)

    def _atom(self, predicate: Predicate) -> None:
        """Add code for an atomic condition, for all events over which it is quantified."""
        asked = self._terms.quantified(predicate)
        if asked is None:
            self._constant(True)
            return
        begins = [(machine.VACUOUS, slot) for slot in asked.vacuous] + [(machine.EVERY, slot) for slot in asked.every]
        first = len(self.lines)
        for operation, slot in begins:
            self._emit(operation, slot)
        self._test(predicate)
        body = len(self.lines) - first - len(begins)
        for inner, slot in enumerate(reversed(asked.every)):  # loops lie in each other: each goes back behind its begin
            self._emit(machine.REPEAT, slot, body + 2 * inner + 1)
        for place, (operation, slot) in enumerate(begins):
            ends = len(begins) - place if operation == machine.EVERY else len(asked.every)
            skipped = len(begins) - place - 1 + body + ends
            self.lines[first + place] = (operation, slot, 0, skipped)

    def _test(self, predicate: Predicate) -> None:
        match predicate:
            case Always():
                self._constant(True)
            case Comparison(symbol, left, right):
                self.value(left)
                self.value(right)
                self._emit(machine.COMPARE, OPERATORS[symbol])
            case Contains(operand, part):
                self.value(operand)
                self.value(part)
                self._emit(machine.CONTAINS)
            case Like(operand) | RegexMatch(operand):
                self.value(operand)
                self._emit(machine.LOOKS, self._code.pattern(predicate))
            case In(operand, values):
                for value in values:
                    self._test(Comparison("=", operand, Literal(value)))
                self._gather(machine.ANY, len(values))
            case _:
                raise refused(predicate)

    def value(self, expression: Expression) -> None:
        """Add code that leaves a value."""
        match expression:
            case Literal(value):
                self._constant(value)
            case Negative(operand):
                self.value(Arithmetic("-", Literal(0), operand))
            case Arithmetic(symbol, left, right):
                self.value(left)
                self.value(right)
                self._emit(machine.CALCULATE, _ARITHMETIC[symbol])
            case _:
                self.lines.append(self._terms.line(expression))
