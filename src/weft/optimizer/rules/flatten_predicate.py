"""The rule `flatten_predicate`."""

from __future__ import annotations

from weft.algebra.predicates import Always, And, Not, Or, Predicate
from weft.tree import Node


def flatten_predicate(node: Node) -> Node:
    """Write a Boolean combination without nesting that says nothing.

    Before: `(a AND (b AND true)) AND NOT NOT c`. After: `a AND b AND c`.

    Side condition: none. Sound because a predicate is true or false and nothing else (a comparison with a
    missing attribute is false), so conjunction and disjunction are associative, `true` is neutral in a
    conjunction, and two negations cancel.
    """
    match node:
        case Not(Not(inner)):
            return inner
        case And(operands):
            kept = [part for operand in operands for part in _parts(operand, And) if part != Always()]
            return _combined(And, kept, Always())
        case Or(operands):
            kept = [part for operand in operands for part in _parts(operand, Or)]
            if Always() in kept:
                return Always()
            return _combined(Or, kept, node)
    return node


def _parts(operand: Predicate, kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    return operand.operands if isinstance(operand, kind) else (operand,)


def _combined(kind: type[And] | type[Or], parts: list[Predicate], nothing: Predicate) -> Predicate:
    distinct = tuple(dict.fromkeys(parts))
    if not distinct:
        return nothing
    return distinct[0] if len(distinct) == 1 else kind(distinct)
