"""The shape of a rule: what is left when its constants, types and names are taken out.

Rules of one shape differ only in a row of constants, so one operator can run them all from a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar, cast

from weft.algebra.predicates import Attribute, Literal, Value
from weft.algebra.rules import Between, DefinedField, Events, LookBack, Rule, Terminator, Within
from weft.tree import Node

AnyNode = TypeVar("AnyNode", bound=Node)


@dataclass(frozen=True)
class Constants:
    """What a rule has beside its shape. Types, ticks and literals are in the order of a walk over the rule."""

    name: str
    label: str | None
    variables: tuple[str, ...]
    fields: tuple[str, ...]
    types: tuple[str, ...]  # each once; an equal type in two places is part of the shape
    ticks: tuple[int, ...]
    literals: tuple[Value, ...]
    number: int = 0


def shape_of(rule: Rule) -> tuple[Rule, Constants]:
    """Return the rule with placeholders instead of constants, and the constants. Equal shapes are equal rules.

    Variables and types are numbered as they occur; windows become 0; a number becomes 0, a text the empty
    text and a truth value true. The attributes read and the order of conditions are kept.
    """
    taking = _Taking(rule)
    shape = taking.rule(rule, "", None, _numbers(rule.fields))
    fields = tuple(field.name for field in rule.fields)
    constants = Constants(
        rule.name,
        rule.label,
        rule.variables,
        fields,
        tuple(taking.types),
        tuple(taking.ticks),
        tuple(taking.literals),
        rule.number,
    )
    return shape, constants


def rule_of(shape: Rule, constants: Constants) -> Rule:
    """The rule of a shape and its constants: the inverse of `shape_of`."""
    rule = _Giving(constants).rule(shape, constants.name, constants.label, constants.fields)
    return replace(rule, number=constants.number)


def _numbers(items: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(items)))


class _Replacing:
    """Replaces the constants of a rule, in the order of a walk over it."""

    variables: dict[str, str]

    def type_for(self, type_: str) -> str:
        """What a type becomes."""
        raise NotImplementedError

    def ticks_for(self, ticks: int) -> int:
        """What a window becomes."""
        raise NotImplementedError

    def literal_for(self, value: Value) -> Value:
        """What a constant becomes."""
        raise NotImplementedError

    def rule(self, rule: Rule, name: str, label: str | None, fields: tuple[str, ...]) -> Rule:
        """The rule with its constants replaced, under another name and with fields of other names."""
        return Rule(
            name,
            self._one(rule.terminator),
            self._all(rule.lookbacks),
            self._all(rule.conditions),
            tuple(
                DefinedField(new, field.kind, field.value and self._one(field.value))
                for field, new in zip(rule.fields, fields, strict=True)
            ),
            tuple(self.variables[variable] for variable in rule.consumes),
            label,
        )

    def __call__(self, node: Node) -> Node:
        """The node with its constants replaced; parents first, as a walk goes."""
        match node:
            case Literal(value):
                return Literal(self.literal_for(value))
            case Attribute(name, variable):
                return Attribute(name, variable and self.variables[variable])
            case Within(anchor, ticks):
                return Within(self.variables[anchor], self.ticks_for(ticks))
            case Between(first, second):
                return Between(self.variables[first], self.variables[second])
            case Events(type_):
                return Events(self.type_for(type_), self._all(node.static), self._all(node.related))
            case Terminator(variable, events, absences):
                return Terminator(self.variables[variable], self._one(events), self._all(absences))
            case LookBack(variable, events, within, pick, count, absences):
                parts = (self._one(events), self._one(within), pick, count, self._all(absences))
                return LookBack(self.variables[variable], *parts)
        return node.map_children(self)

    def _one(self, node: AnyNode) -> AnyNode:
        return cast(AnyNode, self(node))

    def _all(self, nodes: tuple[AnyNode, ...]) -> tuple[AnyNode, ...]:
        return tuple(self._one(node) for node in nodes)


class _Taking(_Replacing):
    """Takes the constants out and leaves placeholders."""

    def __init__(self, rule: Rule) -> None:
        self.variables = dict(zip(rule.variables, _numbers(rule.variables), strict=True))
        self.types: dict[str, str] = {}
        self.ticks: list[int] = []
        self.literals: list[Value] = []

    def type_for(self, type_: str) -> str:
        return self.types.setdefault(type_, str(len(self.types)))

    def ticks_for(self, ticks: int) -> int:
        self.ticks.append(ticks)
        return 0

    def literal_for(self, value: Value) -> Value:
        self.literals.append(value)
        # True and not False, which Python holds equal to 0.
        if isinstance(value, bool):
            return True
        return "" if isinstance(value, str) else 0


class _Giving(_Replacing):
    """Puts constants where the placeholders are."""

    def __init__(self, constants: Constants) -> None:
        self.variables = dict(zip(_numbers(constants.variables), constants.variables, strict=True))
        self._types = constants.types
        self._ticks = iter(constants.ticks)
        self._literals = iter(constants.literals)

    def type_for(self, type_: str) -> str:
        return self._types[int(type_)]

    def ticks_for(self, ticks: int) -> int:
        return next(self._ticks)

    def literal_for(self, value: Value) -> Value:
        return next(self._literals)
