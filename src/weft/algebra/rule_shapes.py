"""The shape of a rule: what is left when its constants, types and names are taken out.

Rules of one shape differ only in a row of constants, so one operator can run them all from a table.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def shape_of(rule: Rule) -> tuple[Rule, Constants]:
    """The rule with placeholders, and what they stand for; equal shapes are equal rules.

    Variables and types are numbered as they occur; windows become 0; a number becomes 0, a text the empty
    text and a truth value true. Attributes that are read stay, and so does the order of conditions.
    """
    constants = Constants(
        rule.name,
        rule.label,
        rule.variables,
        tuple(field.name for field in rule.fields),
        rule.types,
        tuple(node.ticks for node in rule.walk() if isinstance(node, Within)),
        tuple(node.value for node in rule.walk() if isinstance(node, Literal)),
    )
    blank = replace(
        constants,
        name="",
        label=None,
        variables=_numbers(rule.variables),
        fields=_numbers(constants.fields),
        types=_numbers(constants.types),
        ticks=(0,) * len(constants.ticks),
        literals=tuple(_placeholder(value) for value in constants.literals),
    )
    return _filled(rule, constants, blank), constants


def rule_of(shape: Rule, constants: Constants) -> Rule:
    """The rule of a shape and its constants: the inverse of `shape_of`."""
    return _filled(shape, shape_of(shape)[1], constants)


def _placeholder(value: Value) -> Value:
    # True and not False, which Python holds equal to 0.
    if isinstance(value, bool):
        return True
    return "" if isinstance(value, str) else 0


def _numbers(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(names)))


def _filled(rule: Rule, old: Constants, new: Constants) -> Rule:
    filled = _Filling(old, new)(rule)
    assert isinstance(filled, Rule)
    return replace(
        filled,
        name=new.name,
        label=new.label,
        fields=tuple(replace(field, name=name) for field, name in zip(filled.fields, new.fields, strict=True)),
        consumes=tuple(dict(zip(old.variables, new.variables, strict=True))[name] for name in rule.consumes),
    )


class _Filling:
    """Puts other constants into a rule, in the order of a walk."""

    def __init__(self, old: Constants, new: Constants) -> None:
        self._variables = dict(zip(old.variables, new.variables, strict=True))
        self._types = dict(zip(old.types, new.types, strict=True))
        self._ticks: Iterator[int] = iter(new.ticks)
        self._literals: Iterator[Value] = iter(new.literals)

    def __call__(self, node: Node) -> Node:
        """The node with its constants replaced; parents first, as a walk goes."""
        match node:
            case Literal():
                return Literal(next(self._literals))
            case Attribute(name, variable):
                return Attribute(name, variable and self._variables[variable])
            case Within(anchor):
                return Within(self._variables[anchor], next(self._ticks))
            case Between(first, second):
                return Between(self._variables[first], self._variables[second])
            case Events(type_):
                return Events(self._types[type_], self._all(node.static), self._all(node.related))
            case Terminator(variable, events, absences):
                return Terminator(self._variables[variable], self._one(events), self._all(absences))
            case LookBack(variable, events, within, pick, count, absences):
                parts = (self._one(events), self._one(within), pick, count, self._all(absences))
                return LookBack(self._variables[variable], *parts)
            case Rule():
                return Rule(
                    node.name,
                    self._one(node.terminator),
                    self._all(node.lookbacks),
                    self._all(node.conditions),
                    self._all(node.fields),
                )
            case DefinedField(name, kind, value):
                return DefinedField(name, kind, value and self._one(value))
        return node.map_children(self)

    def _one(self, node: AnyNode) -> AnyNode:
        return cast(AnyNode, self(node))

    def _all(self, nodes: tuple[AnyNode, ...]) -> tuple[AnyNode, ...]:
        return tuple(self._one(node) for node in nodes)
