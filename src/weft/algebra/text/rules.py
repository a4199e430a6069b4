"""Rules as indented text: one look-back per line, absences below what they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.algebra.predicates import Predicate
from weft.algebra.rules import Absence, Between, Events, Extent, LookBack, Rule, Summary, Terminator, Within
from weft.tree import Node

INDENT = "  "
Show = Callable[[Node], str]  # an expression or predicate in one line


def rule_lines(rule: Rule, show: Show) -> Iterator[str]:
    """A rule: what it defines, what it looks at, in the order in which it does."""
    yield f"rule {rule.name}" + (f" ({rule.label})" if rule.label else "")
    for field in rule.fields:
        value = "null" if field.value is None else show(field.value)
        yield f"{INDENT}field {field.name}: {field.kind.value} = {value}"
    for step in rule.steps:
        yield INDENT + step_text(step, show)
        yield from (2 * INDENT + absence_text(absence, show) for absence in step.absences)
    yield from (f"{INDENT}provided {show(condition)}" for condition in rule.conditions)
    if rule.consumes:
        yield f"{INDENT}consuming {', '.join(rule.consumes)}"


def step_text(step: Terminator | LookBack, show: Show) -> str:
    """A terminator or look-back, without its absences."""
    taken = f"{_events(step.events, show)} as {step.variable}"
    if isinstance(step, Terminator):
        return f"at {taken}"
    count = "" if step.count in (None, 1) else f"{step.count} "
    return f"{step.pick} {count}{taken} {_extent(step.within)}"


def absence_text(absence: Absence, show: Show) -> str:
    """An absence in one line."""
    return f"without {_events(absence.events, show)} {_extent(absence.extent)}"


def summary_text(summary: Summary, show: Show) -> str:
    """A summary in one line."""
    attribute = "" if summary.attribute is None else f".{summary.attribute}"
    return f"{summary.function}({_events(summary.events, show)}{attribute} {_extent(summary.extent)})"


def _events(events: Events, show: Show) -> str:
    parts = [_conditions(events.static, show), _conditions(events.related, show)]
    if not events.related:
        return f"{events.type}[{parts[0]}]" if events.static else events.type
    return f"{events.type}[{' | '.join(parts)}]" if events.static else f"{events.type}[| {parts[1]}]"


def _conditions(conditions: tuple[Predicate, ...], show: Show) -> str:
    return "; ".join(map(show, conditions))


def _extent(extent: Extent) -> str:
    match extent:
        case Within(anchor, ticks):
            return f"within {ticks} from {anchor}"
        case Between(first, second):
            return f"between {first} and {second}"
    return type(extent).__name__.lower()
