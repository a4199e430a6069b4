"""Evaluation of the conditions of composite patterns, over the current bindings and the preceding occurrence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar, cast

from weft.algebra.meaning import values
from weft.algebra.meaning.occurrences import Occurrence
from weft.algebra.meaning.values import EventDict, Value, ValueScope
from weft.algebra.predicates import And, Attribute, Expression, Not, Or, Predicate
from weft.algebra.terms import Contains, Elapsed, Every, Previous, mentioned
from weft.tree import Node

AnyNode = TypeVar("AnyNode", bound=Node)
NOTHING = Occurrence((), ())


@dataclass(frozen=True)
class ConditionView:
    """What a condition can read where it is evaluated.

    `now` holds all current bindings, `before` the preceding occurrence, `every` the events `Every` ranges over, and
    `whole` the occurrence whose duration `Elapsed` without variables measures.
    """

    now: Occurrence
    before: Occurrence
    every: Occurrence
    whole: Occurrence

    def events(self, occurrence: Occurrence, variable: str | None) -> list[EventDict]:
        """The attributes of the events an occurrence binds to a variable."""
        return [event.attributes for event in occurrence.of(variable or "")]


def alone(occurrence: Occurrence) -> ConditionView:
    """An occurrence before which there was nothing."""
    return ConditionView(occurrence, NOTHING, occurrence, occurrence)


def all_hold(conditions: Iterable[Predicate], view: ConditionView) -> bool:
    """Whether all conditions hold."""
    return all(holds(condition, view) for condition in conditions)


def holds(condition: Predicate, view: ConditionView) -> bool:
    """Whether a condition holds."""
    match condition:
        case And(operands):
            return all(holds(operand, view) for operand in operands)
        case Or(operands):
            return any(holds(operand, view) for operand in operands)
        case Not(operand):
            return not holds(operand, view)
    previous = [node for node in condition.walk() if isinstance(node, Previous)]
    if any(not view.events(view.before, node.attribute.variable) for node in previous):
        return True
    wholes = list(dict.fromkeys(node for node in condition.walk() if isinstance(node, Every)))
    choices = [view.events(view.every, node.attribute.variable) for node in wholes]
    return all(_holds_for(condition, view, dict(zip(wholes, choice, strict=True))) for choice in product(*choices))


def value_of(expression: Expression, view: ConditionView) -> Value | None:
    """The value of an expression without `Every`."""
    return values.shown(_as_attributes(expression), _scope(expression, view, {}))


def _holds_for(condition: Predicate, view: ConditionView, chosen: Mapping[Every, EventDict]) -> bool:
    """Whether a condition without connectives holds when each `Every` means the one event chosen for it."""
    scope = _scope(condition, view, chosen)
    plain = _as_attributes(condition)
    if isinstance(plain, Contains):
        text, part = values.evaluate(plain.operand, scope), values.evaluate(plain.part, scope)
        return isinstance(text, str) and isinstance(part, str) and part in text
    return values.holds(plain, scope)


def _as_attributes(node: AnyNode) -> AnyNode:
    """The terms written as attributes of variables that only `_scope` knows."""

    def rewrite(part: Node) -> Node:
        match part:
            case Previous(attribute) | Every(attribute):
                return Attribute(attribute.name, repr(part))
            case Elapsed():
                return Attribute("ticks", repr(part))
        return part

    return cast(AnyNode, node.transform(rewrite))


def _scope(node: Node, view: ConditionView, chosen: Mapping[Every, EventDict]) -> ValueScope:
    """The event that each variable, and each term as `_as_attributes` writes it, reads."""
    events: dict[str | None, EventDict] = {
        variable: _last(view.events(view.now, variable)) for variable in mentioned(node)
    }
    for part in node.walk():
        match part:
            case Previous(attribute):
                events[repr(part)] = _last(view.events(view.before, attribute.variable))
            case Every():
                events[repr(part)] = chosen[part]
            case Elapsed():
                events[repr(part)] = {"ticks": _elapsed(part, view)}
    return ValueScope(events)


def _elapsed(term: Elapsed, view: ConditionView) -> int | None:
    firsts = [event.start for event in view.now.of(term.first)] if term.first else [view.whole.start]
    lasts = [event.end for event in view.now.of(term.last)] if term.last else [view.whole.end]
    return max(lasts) - min(firsts) if firsts and lasts else None


def _last(events: Sequence[EventDict]) -> EventDict:
    return events[-1] if events else {}
