"""Conditions of row patterns in the form that engines evaluate: negations at the leaves, row-local parts apart.

In negation normal form a leaf is tested for TRUE only, so that an engine with two truth values (a leaf over a missing
value is false) accepts exactly the rows that SQL's three-valued logic accepts.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra.row_patterns import (
    At,
    Constant,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowLabel,
    RowPattern,
)

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_DUAL = {"and": "or", "or": "and"}


@dataclass(frozen=True)
class SplitCondition:
    """A condition split into row-local conjuncts (class a) and conjuncts that depend on the match (class b)."""

    local: tuple[RowExpression, ...]
    others: tuple[RowExpression, ...]


def negation_normal(condition: RowExpression) -> RowExpression:
    """Return a condition that is TRUE for the same rows, with negations moved to the leaves and constants folded."""
    return _is_true(condition)


def _is_true(condition: RowExpression) -> RowExpression:
    match condition:
        case RowCall("and" | "or" as function, arguments):
            return _joined(function, [_is_true(part) for part in arguments])
        case RowCall("not", (inner,)):
            return _is_false(inner)
        case RowCall("is true", (inner,)):
            return _is_true(inner)
        case RowCall("is false", (inner,)):
            return _is_false(inner)
        case Constant(value):
            return Constant(value is True)
    return condition


def _is_false(condition: RowExpression) -> RowExpression:
    """Return a condition that is TRUE where the given one is FALSE."""
    match condition:
        case RowCall("and" | "or" as function, arguments):
            return _joined(_DUAL[function], [_is_false(part) for part in arguments])
        case RowCall("not", (inner,)):
            return _is_true(inner)
        case RowCall("<" | "<=" | ">" | ">=" | "=" | "<>" as function, arguments):
            return RowCall(_OPPOSITE[function], arguments)
        case RowCall("in", (_, *items)) if Constant(None) in items:
            return Constant(False)
        case Constant(value):
            return Constant(value is False)
    return RowCall("not", (condition,))


def _joined(function: str, parts: list[RowExpression]) -> RowExpression:
    decides, neutral = (Constant(False), Constant(True)) if function == "and" else (Constant(True), Constant(False))
    flat: list[RowExpression] = []
    for part in parts:
        flat += part.arguments if isinstance(part, RowCall) and part.function == function else (part,)
    flat = [part for part in flat if part != neutral]
    if decides in flat:
        return decides
    return flat[0] if len(flat) == 1 else RowCall(function, tuple(flat)) if flat else neutral


def conjuncts(condition: RowExpression) -> tuple[RowExpression, ...]:
    """Return the parts of a conjunction; of any other condition, the condition itself."""
    return condition.arguments if isinstance(condition, RowCall) and condition.function == "and" else (condition,)


def is_row_local(expression: RowExpression, variable: str) -> bool:
    """Return whether a variable's condition reads only the current row and rows at fixed offsets from it.

    The current row is mapped to the variable, so it is the last row of the variable and of all variables.
    """
    for node in expression.walk():
        match node:
            case RowAggregate() | MatchNumber() | RowLabel():
                return False
            case At(_, variables, first, offset) if first or offset or not _includes(variables, variable):
                return False
    return True


def _includes(variables: tuple[str, ...] | None, variable: str) -> bool:
    return variables is None or variable in variables


def split_condition(query: RowPattern, variable: str) -> SplitCondition:
    """Return the condition of a variable in negation normal form, its row-local conjuncts apart."""
    condition = query.condition(variable)
    parts = () if condition is None else conjuncts(negation_normal(condition))
    parts = tuple(part for part in parts if part != Constant(True))
    local = tuple(part for part in parts if is_row_local(part, variable))
    return SplitCondition(local, tuple(part for part in parts if part not in local))
