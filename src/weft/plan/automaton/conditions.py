"""Conditions over several events, compiled to the tables their kernel reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from weft.algebra.predicates import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    Literal,
    Monotone,
    Negative,
    Predicate,
    Value,
)
from weft.plan.automaton.cea import Automaton, Condition, Slot
from weft.plan.automaton.determinize import Label
from weft.tree import Node

Kind = str  # "pair", "general", "rising", "whole" or "same"
Instruction = tuple[str, int, int]  # operation, slot or constant, column


@dataclass(frozen=True)
class CompiledCondition:
    """One condition: when it is tested, what it reads, and its two sides as code for a stack machine."""

    kind: Kind
    operator: str
    scoped: bool
    slots: tuple[int, ...]  # all its slots
    singles: tuple[int, ...]  # those read event by event
    wholes: tuple[int, ...]  # those without whose events it says nothing
    left: tuple[Instruction, ...]
    right: tuple[Instruction, ...]


@dataclass(frozen=True)
class CompiledConditions:
    """All conditions of a query, and which attributes of an event they read."""

    slots: tuple[Slot, ...]
    attributes: tuple[str, ...]
    constants: tuple[Value, ...]
    conditions: tuple[CompiledCondition, ...]
    label_slots: tuple[tuple[int, ...], ...]
    label_enters: tuple[tuple[int, ...], ...]
    orders_text: bool  # some condition asks which of two values is greater


@dataclass
class _Compiler:
    slots: dict[Slot, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    constants: dict[tuple[type, Value], int] = field(default_factory=dict)

    def slot(self, condition: int, attribute: Attribute) -> int:
        assert attribute.variable is not None
        return self.slots.setdefault((condition, attribute.variable), len(self.slots))

    def column(self, attribute: Attribute) -> int:
        return -1 if attribute.name == "*" else self.attributes.setdefault(attribute.name, len(self.attributes))

    def code(self, condition: int, expression: Expression) -> Iterable[Instruction]:
        """Operands first, then the operation."""
        match expression:
            case Literal(value):
                yield "constant", self.constants.setdefault((type(value), value), len(self.constants)), 0
            case Attribute():
                yield "attribute", self.slot(condition, expression), self.column(expression)
            case Aggregate(function, attribute):
                yield function, self.slot(condition, attribute), self.column(attribute)
            case Negative(operand):
                yield from self.code(condition, operand)
                yield "negate", 0, 0
            case Arithmetic(operator, left, right):
                yield from self.code(condition, left)
                yield from self.code(condition, right)
                yield operator, 0, 0
            case _:
                raise AssertionError(f"not an expression of a condition: {expression!r}")


def compile_conditions(automaton: Automaton, labels: Sequence[Label]) -> CompiledConditions:
    """The tables of a query's conditions."""
    compiler = _Compiler()
    conditions = automaton.conditions
    compiled = [_compile(compiler, number, condition) for number, condition in enumerate(conditions)]
    slots = tuple(compiler.slots)
    compiled += [implied for condition in compiled for implied in _implied(condition, automaton, slots)]
    return CompiledConditions(
        slots,
        tuple(compiler.attributes),
        tuple(value for _, value in compiler.constants),
        tuple(compiled),
        tuple(tuple(sorted(compiler.slots[slot] for slot in label.slots)) for label in labels),
        tuple(tuple(sorted(label.enters)) for label in labels),
        any(_orders(condition.predicate) for condition in conditions),
    )


def _compile(compiler: _Compiler, number: int, condition: Condition) -> CompiledCondition:
    predicate = condition.predicate
    if isinstance(predicate, Monotone):
        slot = compiler.slot(number, predicate.attribute)
        code = tuple(compiler.code(number, predicate.attribute))
        operator = "<" if predicate.direction == "INCREASING" else ">"
        return CompiledCondition("rising", operator, condition.scoped, (slot,), (slot,), (), code, ())
    assert isinstance(predicate, Comparison), f"not a condition: {predicate!r}"
    left = tuple(compiler.code(number, predicate.left))
    right = tuple(compiler.code(number, predicate.right))
    singles = tuple(dict.fromkeys(slot for operation, slot, _ in left + right if operation == "attribute"))
    folds = {(slot, operation) for operation, slot, _ in left + right if operation.isupper()}
    wholes = tuple(sorted({slot for slot, operation in folds if operation != "COUNT"}))
    everything = tuple(sorted({*singles, *(slot for slot, _ in folds)}))
    if folds:
        kind = "whole"
    elif len(left) == len(right) == 1 and len(singles) == 2:
        kind = "pair"
    else:
        kind = "general"
    return CompiledCondition(kind, predicate.operator, condition.scoped, everything, singles, wholes, left, right)


def _implied(condition: CompiledCondition, automaton: Automaton, slots: Sequence[Slot]) -> Iterable[CompiledCondition]:
    """What an equality of two variables says of one of them alone.

    If every match binds a, then `a[x] = b[y]` for all pairs asks all events of b to have the same y. This can
    be tested before any a is known.
    """
    if condition.kind != "pair" or condition.operator != "=" or condition.scoped:
        return
    sides = condition.left[0], condition.right[0]
    for (_, slot, column), (_, other, _) in (sides, sides[::-1]):
        if _is_always_filled(automaton, slots[other]):
            code = (("attribute", slot, column),)
            yield CompiledCondition("same", "=", False, (slot,), (slot,), (), code, ())


def _is_always_filled(automaton: Automaton, slot: Slot) -> bool:
    """Whether no run can do without an event in the slot."""
    others = {number for number, atom in enumerate(automaton.atoms) if slot not in atom.slots}
    front: set[int] = others & automaton.first
    reached = front
    while front:
        front = {after for atom in front for after in automaton.near[atom] | automaton.far[atom]} & others - reached
        reached = reached | front
    return not reached & automaton.last


def _orders(predicate: Predicate) -> bool:
    """Whether the condition can depend on the order of two texts."""
    if isinstance(predicate, Monotone) or (isinstance(predicate, Comparison) and predicate.operator not in ("=", "<>")):
        return True
    nodes: Iterable[Node] = predicate.walk()
    return any(isinstance(node, Aggregate) and node.function in ("MIN", "MAX") for node in nodes)
