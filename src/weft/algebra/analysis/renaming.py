"""Renaming of variables: detect patterns that are equal up to variable names, so that they are evaluated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar, cast

from weft.algebra.composites import Composite, CompositeEvent, Without
from weft.algebra.predicates import MIRRORED, Attribute, Comparison, Literal, Predicate
from weft.algebra.terms import Elapsed, conjuncts
from weft.tree import Node

AnyNode = TypeVar("AnyNode", bound=Node)


def rename(node: AnyNode, names: Mapping[str, str]) -> AnyNode:
    """The pattern or condition with its variables renamed; those that are not in `names` stay."""

    def new(variable: str | None) -> str | None:
        return variable and names.get(variable, variable)

    renamed: Node
    match node:
        case CompositeEvent(type_, variable, where):
            renamed = CompositeEvent(type_, names.get(variable, variable), tuple(rename(part, names) for part in where))
        case Attribute(name, variable):
            renamed = Attribute(name, new(variable))
        case Elapsed(first, last):
            renamed = Elapsed(new(first), new(last))
        case _:
            renamed = node.map_children(lambda child: rename(child, names))
    return cast(AnyNode, renamed)


def canonical(pattern: Composite) -> tuple[Composite, tuple[str, ...]]:
    """The pattern with numbers for variables and its conditions sorted, and what the variables were called.

    Two patterns have equal canonical forms iff they are the same up to the names of variables, the order of conditions
    and the sides of comparisons; the occurrences of one are then those of the other, renamed.
    """
    names = tuple(node.variable for node in pattern.walk(Composite) if isinstance(node, CompositeEvent))
    numbers = {name: str(number) for number, name in enumerate(names)}
    numbered = pattern if all(name == number for name, number in numbers.items()) else rename(pattern, numbers)
    return cast(Composite, numbered.transform(_sort_conditions)), names


def signature(pattern: Composite, operands: Sequence[str]) -> str:
    """A text that is equal for patterns with equal canonical forms, made of those of the operands: this is quick."""
    own = {field.name: getattr(pattern, field.name) for field in fields(pattern)}
    conditions = [name for name in ("where", "among") if own.get(name)]
    if conditions:
        names = (*pattern.variables, *(pattern.unwanted.variables if isinstance(pattern, Without) else ()))
        numbers = {name: str(number) for number, name in enumerate(names)}
    parts = [type(pattern).__name__]
    for name, value in own.items():
        if name in conditions:
            parts.append(f"{name}={sorted({repr(turned(rename(part, numbers))) for part in conjuncts(value)})}")
        elif name not in ("where", "among", "variable") and not isinstance(value, Composite):
            parts.append(f"{name}={value!r}")
    return f"({' '.join([*parts, *operands])})"


def turned(condition: Predicate) -> Predicate:
    """Normalise a comparison between attributes, or with a constant: `b.k = a.k` becomes `a.k = b.k`.

    Comparisons that read more than the current event (PREV, ALL) are returned unchanged.
    """
    match condition:
        case Comparison(operator, (Attribute() | Literal()) as left, (Attribute() | Literal()) as right):
            if (isinstance(left, Literal), repr(left)) > (isinstance(right, Literal), repr(right)):
                return Comparison(MIRRORED[operator], right, left)
    return condition


def _sort_conditions(node: Node) -> Node:
    """A pattern's conditions, conjunctions taken apart, each once, in the order of their texts."""
    if not isinstance(node, Composite):
        return node
    found = {field.name: getattr(node, field.name) for field in fields(node) if field.name in ("where", "among")}
    kept: dict[str, tuple[Predicate, ...]] = {
        # Told apart by their texts: as values True, 1 and 1.0 are equal.
        name: tuple(
            part for _, part in sorted({repr(part): part for part in map(turned, conjuncts(conditions))}.items())
        )
        for name, conditions in found.items()
    }
    return node if kept == found else replace(node, **kept)
