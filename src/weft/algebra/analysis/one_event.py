"""Conditions that read one event only, as predicates on the current event."""

from __future__ import annotations

import re

from weft.algebra.composites import Composite, CompositeEvent
from weft.algebra.predicates import (
    Always,
    And,
    Arithmetic,
    Attribute,
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
)
from weft.algebra.terms import Contains

_OF_ONE_EVENT = (
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Contains,
    In,
    Like,
    Literal,
    RegexMatch,
    Negative,
    Not,
    Or,
)


def own_predicate(operand: Composite, test: Predicate) -> Predicate | None:
    """A test that reads nothing but the event of an operand, as a predicate on the current event."""
    if not isinstance(operand, CompositeEvent) or not is_of_one_event(test) or _variables(test) != {operand.variable}:
        return None
    return at_hand(test)


def _variables(predicate: Predicate) -> set[str | None]:
    return {node.variable for node in predicate.walk() if isinstance(node, Attribute)}


def is_of_one_event(predicate: Predicate) -> bool:
    """Whether the classifier can answer a condition of a composite pattern."""
    for node in predicate.walk():
        if not isinstance(node, _OF_ONE_EVENT):
            return False
        if isinstance(node, Contains) and not (isinstance(node.operand, Attribute) and _is_text(node.part)):
            return False
    return True


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def at_hand(predicate: Predicate) -> Predicate:
    """A condition on a variable as one on the current event."""

    def rewrite(node: object) -> object:
        match node:
            case Attribute(name):
                return Attribute(name)
            case Contains(operand, Literal(part)):
                return RegexMatch(operand, re.escape(str(part)))
        return node

    return predicate.transform(rewrite)  # type: ignore[arg-type, return-value]
