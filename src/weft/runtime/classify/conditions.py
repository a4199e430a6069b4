"""Conditions of composite patterns as predicates on the event at hand, which the classifier answers."""

from __future__ import annotations

import re

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
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
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
    Matches,
    Negative,
    Not,
    Or,
)


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
    """A condition on a variable as one on the event at hand."""

    def rewrite(node: object) -> object:
        match node:
            case Attribute(name):
                return Attribute(name)
            case Contains(operand, Literal(part)):
                return Matches(operand, re.escape(str(part)))
        return node

    return predicate.transform(rewrite)  # type: ignore[arg-type, return-value]
