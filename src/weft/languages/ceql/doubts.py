"""Warnings: formulas that are allowed and usually mean something else than what is wanted."""

from __future__ import annotations

from weft.algebra.query import Window
from weft.languages.ceql import syntax
from weft.languages.durations import TICKS
from weft.languages.findings import Findings

# Windows that are no larger are taken to hold few events, so that all choices of them are few too.
FEW_EVENTS = 20
SHORT_TIME = 10 * TICKS["min"]


def warn(node: syntax.Query, window: Window | None, time_unit: str, findings: Findings) -> None:
    """Warn of what is doubtful about a query's formula."""
    grows = _all_are_wanted(node) and _holds_many(window, time_unit)
    for part in node.formula.walk():
        match part:
            case syntax.Sequence(left, right, contiguous=False):
                # Of `A ; NOT(B) ; C`, whichever way it is grouped, one of the two has it at its edge.
                _warn_of_negation(_last(left), findings)
                _warn_of_negation(_first(right), findings)
            case syntax.Repeated(_, contiguous=False) if grows:
                message = "every choice of these events is a separate match: each further event doubles their number"
                hint = "write :+ for events next to each other, SELECT MAX or LAST for the longest or latest, or LIMIT"
                findings.warning("exponential", message, part.span, hint)


def _warn_of_negation(part: syntax.Formula, findings: Findings) -> None:
    if isinstance(part, syntax.Negated):
        message = "this asks for some event that is not one, and says nothing about the events beside it"
        hint = "to say that none comes between A and C: A : NOT(B):+ : C OR A : C"
        findings.warning("negation-with-gaps", message, part.span, hint)


def _first(formula: syntax.Formula) -> syntax.Formula:
    while isinstance(formula, syntax.Sequence):
        formula = formula.left
    return formula


def _last(formula: syntax.Formula) -> syntax.Formula:
    while isinstance(formula, syntax.Sequence):
        formula = formula.right
    return formula


def _all_are_wanted(node: syntax.Query) -> bool:
    return node.strategy in (None, "ALL") and node.limit is None and node.session is None and node.top is None


def _holds_many(window: Window | None, time_unit: str) -> bool:
    """Return whether the window can hold enough events that reporting every combination is unlikely to be intended."""
    match window:
        case Window("events", amount):
            return amount > FEW_EVENTS
        case Window("time", amount):
            return amount * TICKS[time_unit] > SHORT_TIME
    return True
