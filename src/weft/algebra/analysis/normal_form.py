"""Conditions in conjunctive normal form, so that each part is tested as soon as its variables are bound (EPN §3.3).

There are two truth values only: a comparison that is undefined is false and its negation true. So the laws of Boolean
algebra hold as they are, but a negated comparison is not the opposite comparison: `NOT a[x] < 3` holds of an event
without x, `a[x] >= 3` does not. Negations stay where they are, at the comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from weft.algebra.predicates import Always, And, Attribute, Comparison, Not, Or, Predicate

Clause = tuple[Predicate, ...]  # literals, one of which must hold
NEVER = Or(())


class Equality(NamedTuple):
    """An attribute of one variable that must equal an attribute of another: what an index is made for."""

    left: Attribute
    right: Attribute


def clauses(conditions: Iterable[Predicate], limit: int = 64) -> tuple[Predicate, ...]:
    """The conditions as clauses that must all hold: literals, or an `Or` of literals; each once, in order.

    A condition that would become more than `limit` clauses stays as it is, for their number can grow exponentially.
    A condition that can never hold becomes `NEVER`.
    """
    found: dict[Predicate, None] = {}
    for condition in conditions:
        parts = _clauses(condition, negated=False, limit=limit)
        whole = [condition] if parts is None else [_joined(clause) for clause in parts]
        found |= dict.fromkeys(whole)
    return tuple(found)


def equality_of(clause: Predicate) -> Equality | None:
    """The equality that a clause is, None when it is something else."""
    match clause:
        case Comparison("=", Attribute(_, one) as left, Attribute(_, other) as right):
            return Equality(left, right) if one != other and one is not None and other is not None else None
    return None


def _clauses(condition: Predicate, *, negated: bool, limit: int) -> list[Clause] | None:
    """The clauses of a condition or of its negation, None when there are too many."""
    match condition:
        case Not(operand):
            return _clauses(operand, negated=not negated, limit=limit)
        case Always():
            return [()] if negated else []
        case And(operands) | Or(operands):
            parts = [_clauses(operand, negated=negated, limit=limit) for operand in operands]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return _either(known, limit) if isinstance(condition, Or) != negated else _all(known, limit)
    return [(Not(condition),)] if negated else [(condition,)]


def _all(parts: list[list[Clause]], limit: int) -> list[Clause] | None:
    every = list(dict.fromkeys(clause for part in parts for clause in part))
    return every if len(every) <= limit else None


def _either(parts: list[list[Clause]], limit: int) -> list[Clause] | None:
    """One of the parts holds: a clause of each, joined, in every way."""
    number = 1
    for part in parts:
        number *= len(part)
    if number > limit:
        return None
    joined = (dict.fromkeys(literal for clause in choice for literal in clause) for choice in product(*parts))
    return list(dict.fromkeys(tuple(clause) for clause in joined))


def _joined(clause: Clause) -> Predicate:
    if not clause:
        return NEVER
    return clause[0] if len(clause) == 1 else Or(clause)
