"""What is allowed in a row pattern and probably not meant."""

from __future__ import annotations

from weft.algebra.row_patterns import At, Cast, Constant, RowCall, RowExpression, RowLabel, RowPattern
from weft.languages.findings import Findings
from weft.languages.sql import syntax

# Operators and functions that give null as soon as one argument is null.
_STRICT = frozenset({"+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "like", "negate", "not", "div"})


def warn(query: RowPattern, node: syntax.MatchRecognize, findings: Findings) -> None:
    """Report what is allowed and probably not meant."""
    if not query.order:
        hint = "write ORDER BY: without it rows are taken as they come, and a result cannot be repeated"
        findings.warning("no-order", "the order of rows is not given", node.span, hint)
    for item in node.defines:
        condition = query.condition(item.variable.folded)
        if condition is not None and is_always_null(condition):
            message = f"the condition of {item.variable.text!r} is always null: no row is mapped to it"
            by_label = any(isinstance(part, RowLabel) for part in condition.walk())
            hint = "the variable of a later row is not known yet while a row is tested" if by_label else "write IS NULL"
            findings.warning("always-null", message, item.condition.span, hint)
        elif condition is not None and condition in (Constant(False), Constant(None)):
            message = f"the condition of {item.variable.text!r} is never true: no row is mapped to it"
            findings.warning("never-true", message, item.condition.span)


def is_always_null(condition: RowExpression) -> bool:
    """Whether a condition is null for every row, as far as its constants say."""
    match condition:
        case Constant(None):
            return True
        case At(RowLabel(), _, first, _, shift) if shift > 0 and not first:
            return True
        case Cast(argument):
            return is_always_null(argument)
        case RowCall(function, arguments) if function in _STRICT:
            return any(is_always_null(argument) for argument in arguments)
        case RowCall("and" | "or", arguments):
            return all(is_always_null(argument) for argument in arguments)
        case RowCall("in", (value, *_)):
            return is_always_null(value)
    return False
