"""Compile conditions on occurrences for `weft.kernels.joins.joint`: quick tests, and code with its bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import Protocol

import numpy as np

from weft.algebra.predicates import MIRRORED, Attribute, Comparison, Expression, Literal, Predicate
from weft.algebra.terms import Elapsed, Every, Previous, conjuncts
from weft.kernels.joins import joint
from weft.kernels.machine import machine
from weft.runtime.data.events import Int64s
from weft.runtime.machine.code import OPERATORS, Code, Instruction, Quantified, Terms, refused
from weft.runtime.operators.event_store import Columns
from weft.runtime.operators.joins.layout import What

_MOST_TICKS = 1 << 60
_MOST_TESTS = 2  # values that an entry of `weft.kernels.joins.buckets` has space for


@dataclass(frozen=True)
class View:
    """The occurrences that a condition reads, and how their variables are found.

    `pair`: two operands, the left of which is earlier. `run`: a run, or its last member, and a candidate.
    `alone`: one occurrence without a predecessor; `start`: the same where a run may begin.
    `nodes` are the nodes of the left and right occurrence, `variables` the variables that each binds.
    """

    kind: OneOf["pair", "run", "alone", "start"]
    nodes: tuple[int, ...]
    variables: tuple[tuple[str, ...], ...]
    bound: frozenset[str] = frozenset()  # variables that the left occurrence always binds

    def find(self, variable: str) -> tuple[int, int, int]:
        """Return which side binds a variable, at which node, and its number there."""
        if self.kind == "pair" and variable not in self.variables[0]:
            return joint.ON_RIGHT, self.nodes[1], self.variables[1].index(variable)
        side = joint.ON_EITHER if self.kind == "run" else joint.ON_LEFT
        return side, self.nodes[0], self.variables[0].index(variable)

    def find_before(self, variable: str) -> tuple[int, int, int] | None:
        """Find a variable in the predecessor, or return None if the predecessor cannot bind it."""
        side, node, number = self.find(variable)
        if self.kind in ("alone", "start") or side == joint.ON_RIGHT:
            return None
        return joint.ON_LEFT, node, number


def _span(part: Predicate) -> tuple[int, int] | None:
    """Match a comparison of the total length with an integer: its operator and its ticks, or None."""
    match part:
        case Comparison(symbol, Elapsed(None, None), Literal(int(ticks))) if not isinstance(ticks, bool):
            return (OPERATORS[symbol], ticks) if abs(ticks) < _MOST_TICKS else None
    return None


class SlotNumbers(Protocol):
    """Protocol that finds the slot in which a node's occurrences have the event of a variable."""

    def slot(self, node: int, what: What, variable: int) -> int:
        """Return the place of a slot, which is added if it is new."""
        ...


class _Bound(Terms):
    """Bindings of one condition: a line for each slot of the machine, and for each of its results."""

    def __init__(self, view: View, layouts: SlotNumbers, columns: Columns) -> None:
        self._view = view
        self._layouts = layouts
        self._columns = columns
        self.slots: dict[object, Instruction] = {}
        self.times: dict[Instruction, int] = {}

    def lines(self) -> list[Instruction]:
        """Return the lines; the line of a list includes the space that all lists take."""
        size = machine.LIST * len(self.slots)
        slots = [(kind, x, y, size if kind == joint.EACH_OF else 0) for kind, x, y, _ in self.slots.values()]
        return [*slots, *self.times]

    def line(self, term: Expression) -> Instruction:
        """See `Terms.line`."""
        match term:
            case Attribute(name, variable):
                return self._attribute(self._event(*self._view.find(variable or "")), name)
            case Previous(Attribute(name, variable)):
                found = self._view.find_before(variable or "")
                assert found is not None
                return self._attribute(self._event(*found), name)
            case Every(Attribute(name)):
                return self._attribute(self._list(term), name)
            case Elapsed(first, last):
                whole = joint.ON_RIGHT if self._view.kind == "run" else joint.ON_EITHER
                times = joint.TIME, self._time(first, "start"), self._time(last, "end"), whole
                return machine.RESULT, self.times.setdefault(times, len(self.times)), 0, 0
        raise refused(term)

    def quantified(self, atom: Predicate) -> Quantified | None:
        """Return what the condition quantifies over, or None if it holds vacuously without a predecessor.

        A condition with `Every` must hold for every event. See `Terms.quantified`.
        """
        parts = list(atom.walk())
        before = [self._view.find_before(part.attribute.variable or "") for part in parts if isinstance(part, Previous)]
        every = dict.fromkeys(part for part in parts if isinstance(part, Every))
        if None in before or (every and self._view.kind == "start"):
            return None
        known = dict.fromkeys(found for found in before if found is not None)
        return Quantified([self._event(*found) for found in known], [self._list(term) for term in every])

    def _attribute(self, slot: int, name: str) -> Instruction:
        return machine.ATTRIBUTE, slot, self._columns.number(name), 0

    def _event(self, side: int, node: int, number: int) -> int:
        line = joint.EVENT_OF, side, self._layouts.slot(node, "event", number), 0
        return self._slot(line, line)

    def _list(self, term: Every) -> int:
        side, _, number = self._view.find(term.attribute.variable or "")
        return self._slot(term, (joint.EACH_OF, joint.ON_LEFT if side == joint.ON_EITHER else side, number, 0))

    def _slot(self, term: object, line: Instruction) -> int:
        self.slots.setdefault(term, line)
        return list(self.slots).index(term)

    def _time(self, variable: str | None, what: OneOf["start", "end"]) -> int:
        if variable is None:
            return -1
        side, node, number = self._view.find(variable)
        return side * joint.SIDE + self._layouts.slot(node, what, number)


class Compiler:
    """Compiles conditions, and adds the slots and columns that they need."""

    def __init__(self, layouts: SlotNumbers, columns: Columns, code: Code) -> None:
        self._layouts = layouts
        self._columns = columns
        self._code = code

    def conditions(self, conditions: Iterable[Predicate], view: View) -> Int64s:
        """Compile conditions to lines that are true when all hold, quick tests first."""
        quick: list[Instruction] = []
        slow: list[Instruction] = []
        for part in conjuncts(conditions):
            sides = (part.left, part.right) if isinstance(part, Comparison) else ()
            operands = [found for side in sides if (found := self._quick_operand(side, view)) is not None]
            if isinstance(part, Comparison) and len(operands) == 2:
                one, other = (side * joint.SIDE + slot * joint.SLOT + column for side, slot, column in operands)
                quick.append((joint.QUICK, OPERATORS[part.operator], one, other))
            elif (ticks := _span(part)) is not None and view.kind != "run":
                quick.append((joint.SPAN, *ticks, 0))
            else:
                slow += self._slow(part, view)
        return np.array([*quick, *slow], np.int64).ravel()

    def _slow(self, part: Predicate, view: View) -> list[Instruction]:
        bound = _Bound(view, self._layouts, self._columns)
        begin, end = self._code.add(part, bound)
        self._code.slots = max(self._code.slots, len(bound.slots))
        self._code.results = max(self._code.results, len(bound.times))
        return [*bound.lines(), (joint.RUN, begin, end, 0)]

    def tests(self, conditions: Iterable[Predicate], view: View) -> tuple[Int64s, tuple[Predicate, ...]]:
        """Split conditions into quick tests between the two sides, equalities first, and the rest.

        A test is an operator, and slot and column of either side.
        """
        parts = conjuncts(conditions)
        found = {part: test for part in parts if (test := self._across(part, view)) is not None}
        equal_first = sorted(found, key=lambda part: found[part][0] != OPERATORS["="])
        chosen = equal_first[:_MOST_TESTS]
        rest = tuple(part for part in parts if part not in chosen)
        return np.array([found[part] for part in chosen], np.int64).ravel(), rest

    def _across(self, part: Predicate, view: View) -> tuple[int, ...] | None:
        """Compile a comparison between attributes of both sides to a test, or return None."""
        if not isinstance(part, Comparison):
            return None
        left, right = self._quick_operand(part.left, view), self._quick_operand(part.right, view)
        if left is None or right is None or {left[0], right[0]} != {joint.ON_LEFT, joint.ON_RIGHT}:
            return None
        if left[0] == joint.ON_LEFT:
            return OPERATORS[part.operator], *left[1:], *right[1:]
        return OPERATORS[MIRRORED[part.operator]], *right[1:], *left[1:]

    def operand(self, attribute: Attribute, view: View) -> tuple[int, int]:
        """Return the slot and column of an attribute, as keys have them."""
        _, node, number = view.find(attribute.variable or "")
        return self._layouts.slot(node, "event", number), self._columns.number(attribute.name)

    def _quick_operand(self, expression: Expression, view: View) -> tuple[int, int, int] | None:
        """Return side, slot and column of an attribute (also of a predecessor that always exists), or None."""
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
        return side, self._layouts.slot(node, "event", number), self._columns.number(attribute.name)
