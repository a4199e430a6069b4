"""Warnings: patterns that can never match, or never before the end of the input, and so are probably not meant."""

from __future__ import annotations

from weft.algebra.contexts import FromFor, FromUntil, Whole
from weft.algebra.policies import Evaluation, Repeated
from weft.algebra.predicates import And, Not, Or, Predicate
from weft.algebra.situations import Situation
from weft.algebra.terms import mentioned
from weft.languages.epn import syntax
from weft.languages.findings import Findings


def warn(node: syntax.Pattern, situation: Situation, findings: Findings) -> None:
    """Warn of what is doubtful about a pattern."""
    if situation.kind in ("any", "absence"):
        _warn_of_slots_that_stay_empty(node, situation, findings)
    _warn_of_own_opener(node, situation, findings)
    waits = situation.kind == "absence" or situation.evaluation is Evaluation.DEFERRED
    if waits and situation.context == Whole(by=situation.context.by):
        message = "without a context this pattern reports nothing before the end of the input"
        hint = "for an unbounded stream, write a context: context fixed 10 minutes"
        findings.warning("no-context", message, node.kind.span, hint)
    elif situation.context == Whole(by=situation.context.by) and _keeps_events(situation):
        message = "without a span of time in its context this pattern keeps its events for ever"
        hint = "for an unbounded stream, bound its context: context sliding 1 hour every 1 minute"
        findings.warning("no-context", message, node.kind.span, hint)


def _keeps_events(situation: Situation) -> bool:
    """Return whether events are kept waiting for others in slots without a bound on their number."""
    waiting = [slot for slot in situation.participants if slot.repeated is not Repeated.OVERRIDE]
    return situation.kind in ("sequence", "all") and len(situation.participants) > 1 and bool(waiting)


def _warn_of_own_opener(node: syntax.Pattern, situation: Situation, findings: Findings) -> None:
    """An event that opens a context is in it, so that its own kind is never absent there."""
    context = situation.context
    if situation.kind != "absence" or not isinstance(context, FromFor | FromUntil) or situation.assertion:
        return
    for participant in node.participants:
        if participant.type.text == context.opener:
            message = f"a {context.opener} opens the context and is in it, so this absence is never found"
            hint = "look at windows instead: context sliding 10 minutes every 1 minute by …; or open by another event"
            findings.warning("absence-of-opener", message, participant.span, hint)


def _warn_of_slots_that_stay_empty(node: syntax.Pattern, situation: Situation, findings: Findings) -> None:
    empty = [
        participant
        for participant, variable in zip(node.participants, situation.variables, strict=True)
        if not all(_can_be(condition, True, variable) for condition in situation.assertion)
    ]
    hint = "its candidates are single events: join conditions on different participants by or"
    if len(empty) == len(node.participants):
        where = next(clause for clause in node.clauses if isinstance(clause, syntax.Where))
        always = "so it always holds" if situation.kind == "absence" else "so it never matches"
        findings.warning("never-satisfied", f"no candidate can satisfy this assertion, {always}", where.span, hint)
        return
    for participant in empty:
        message = f"no {participant.type.text} alone can satisfy the assertion"
        findings.warning("never-satisfied", message, participant.span, hint)


def _can_be(condition: Predicate, wanted: bool, variable: str) -> bool:
    """Whether a condition can be true (or false) when only this variable is bound.

    Every comparison is taken for itself, so the answer may be yes where it should be no, but never the reverse.
    """
    match condition:
        case Not(operand):
            return _can_be(operand, not wanted, variable)
        case And(operands):
            return (all if wanted else any)(_can_be(operand, wanted, variable) for operand in operands)
        case Or(operands):
            return (any if wanted else all)(_can_be(operand, wanted, variable) for operand in operands)
    # A comparison with an attribute of an empty slot is false.
    return not wanted or mentioned(condition) <= {variable}
