"""Rules that say nothing: conditions no event satisfies, absences that exclude what is wanted, endless cycles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weft.algebra.analysis.rule_graph import histories_without_end, instant_cycles
from weft.algebra.numbers import worth
from weft.algebra.predicates import Attribute, Comparison, Literal, Predicate, Value
from weft.algebra.rules import Absence, Events, LookBack, Rule, Within
from weft.algebra.text.program import expression_text
from weft.languages.findings import Findings
from weft.languages.tesla import syntax
from weft.source import Span

# ---------------------------------------------------------------- conditions that contradict each other


def check_possible(events: Events, predicate: syntax.Predicate, findings: Findings, *, negated: bool = False) -> None:
    """Warn when no event can be as it is wanted."""
    contradiction = _contradiction(events.static)
    if not contradiction:
        return
    conditions = " and ".join(map(expression_text, contradiction))
    if negated:
        message = f"no {events.type} has {conditions}, so this excludes nothing"
        findings.warning("no-effect", message, predicate.span, "correct the conditions, or leave the negation out")
    else:
        message = f"no {events.type} has {conditions}, so this rule never fires"
        findings.warning("never-fires", message, predicate.span, "correct the conditions, or leave the rule out")


def _contradiction(conditions: Iterable[Predicate]) -> Sequence[Predicate]:
    """Conditions on one attribute that no value satisfies together; empty when none are found."""
    by_attribute: defaultdict[str, list[tuple[Comparison, Value]]] = defaultdict(list)
    for condition in conditions:
        match condition:
            case Comparison(_, Attribute(name), Literal(value)):
                by_attribute[name].append((condition, value))
            case Comparison("<" | ">" | "<>", left, right) if left == right:
                return [condition]
    for found in by_attribute.values():
        for number, one in enumerate(found):
            for other in found[:number]:
                if not _is_possible(one, other):
                    return [other[0], one[0]]
    return []


def _is_possible(one: tuple[Comparison, Value], other: tuple[Comparison, Value]) -> bool:
    """Whether some value satisfies both comparisons with constants, as far as two comparisons show it."""
    (a, x), (b, y) = one, other
    if _family(x) != _family(y):
        return False
    if "=" in (a.operator, b.operator):
        fixed, operator, bound = (x, b.operator, y) if a.operator == "=" else (y, a.operator, x)
        return _compares(fixed, operator, bound)
    if "<>" in (a.operator, b.operator) or a.operator[0] == b.operator[0]:
        return True
    (low, lower), (high, upper) = (x, a), (y, b)
    if a.operator[0] == "<":
        (low, lower), (high, upper) = (high, upper), (low, lower)
    are_closed = lower.operator == ">=" and upper.operator == "<="
    return _compares(low, "<=" if are_closed else "<", high)


def _compares(left: Value, operator: str, right: Value) -> bool:
    a, b = (value if isinstance(value, bool | str) else worth(value) for value in (left, right))
    less, equal = a < b, a == b  # type: ignore[operator]
    return {"<": less, "<=": less or equal, ">": not less and not equal, ">=": not less, "=": equal, "<>": not equal}[
        operator
    ]


def _family(value: Value) -> type:
    return type(value) if isinstance(value, bool | str) else float


# ---------------------------------------------------------------- absences


def check_absence(absence: Absence, rule: Rule, span: Span, findings: Findings) -> None:
    """Warn when a rule wants an event and its absence in the same time, or an absence at no time."""
    if isinstance(absence.extent, Within) and absence.extent.ticks == 0:
        findings.warning("no-effect", "a window of 0 excludes nothing", span, "give the window a length")
    wanted = next((lookback for lookback in rule.lookbacks if _excludes(absence, lookback)), None)
    if wanted is not None:
        message = f"this excludes every {wanted.variable} that is looked for, so this rule never fires"
        findings.warning("never-fires", message, span, "make the conditions or the windows different")


def _excludes(absence: Absence, wanted: LookBack) -> bool:
    """Whether every event that the look-back can take is one that must be absent."""
    return (
        isinstance(absence.extent, Within)
        and absence.extent.anchor == wanted.within.anchor
        and absence.extent.ticks >= wanted.within.ticks
        and absence.events.type == wanted.events.type
        and set(absence.events.static) <= set(wanted.events.static)
        and set(absence.events.related) <= set(wanted.events.related)
    )


# ---------------------------------------------------------------- cycles


def check_cycles(lowered: Sequence[tuple[syntax.Rule, Rule]], findings: Findings, running: Sequence[Rule] = ()) -> None:
    """Refuse rules that fire each other at one instant; warn of events whose history never ends."""
    rules = [*running, *(rule for _, rule in lowered)]
    instant = instant_cycles(rules)
    for cycle in instant:
        path = " <- ".join((*cycle, cycle[0]))
        at = next(node for node, rule in lowered if rule.name in cycle and rule.terminator.events.type in cycle)
        message = f"this fires for ever, at one instant: {path}"
        hint = "start one of these rules at another event, and look back at this one: each X(…) within 5 min from A"
        findings.error("instant-cycle", message, at.clauses[0].span, hint)
    for cycle in histories_without_end(rules):
        if not any(name in found for found in instant for name in cycle):
            path = " <- ".join((*cycle, cycle[0]))
            here = [node for node, rule in lowered if rule.name in cycle and _binds(rule, cycle)]
            if not here:
                continue  # it was there before
            message = f"events may be made of events of their own type without end: {path}"
            hint = "each keeps the positions of all events it is made of; they may become many"
            findings.warning("endless-history", message, here[0].type.span, hint)


def _binds(rule: Rule, cycle: Sequence[str]) -> bool:
    """Whether a rule is a step of the cycle, from the type that it defines to the one after it."""
    after = cycle[(cycle.index(rule.name) + 1) % len(cycle)]
    return any(step.events.type == after for step in rule.steps)
