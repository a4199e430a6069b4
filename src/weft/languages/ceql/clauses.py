"""PARTITION BY, WITHIN and LIMIT, lowered and checked."""

from __future__ import annotations

from fractions import Fraction
from math import inf

from weft.algebra.query import Window
from weft.errors import did_you_mean
from weft.languages.ceql import syntax
from weft.languages.ceql.scope import CeqlScope
from weft.languages.durations import LONGEST, TICKS
from weft.languages.findings import Findings
from weft.source import Span

NANOSECONDS = {
    unit: TICKS[short]
    for unit, short in (("MILLISECOND", "ms"), ("SECOND", "s"), ("MINUTE", "min"), ("HOUR", "h"), ("DAY", "d"))
}
_UNITS = [word for unit in ("EVENT", *NANOSECONDS) for word in (unit, f"{unit}S")]


def lower_partition(
    clause: syntax.Partition | None, scope: CeqlScope, findings: Findings
) -> tuple[tuple[str, ...], ...]:
    """The key parts; an attribute that no event of FROM has is reported."""
    if clause is None:
        return ()
    for part in clause.parts:
        for name in part:
            _check_attribute(name, scope, findings)
    return tuple(tuple(name.text for name in part) for part in clause.parts)


def lower_limit(clause: syntax.Limit | None, findings: Findings) -> int | None:
    """The limit, a whole number from 0."""
    if clause is None:
        return None
    if clause.amount < 0 or not isinstance(clause.amount, int):
        findings.error("bad-limit", "LIMIT takes a whole number from 0", clause.span)
        return None
    return clause.amount


def lower_span(spans: tuple[syntax.Amount, ...], place: Span, time_unit: str, findings: Findings) -> int | None:
    """A span of time in ticks, at least one."""
    total = Fraction(0)
    for part in spans:
        unit = _unit(part, findings)
        if unit is None:
            return None
        if unit == "EVENT" or part.amount < 0:
            findings.error("bad-window", "this takes a time", place, "write a unit of time, as in 10 MINUTES")
            return None
        total += Fraction(str(min(part.amount, LONGEST))) * NANOSECONDS[unit]
    ticks = total / TICKS[time_unit]
    if ticks < 1:
        message = f"this is shorter than one tick of the input's time, which is in {time_unit}"
        findings.error("bad-window", message, place, "write a longer time")
    return max(1, min(ticks.numerator // ticks.denominator, LONGEST))


def lower_window(clause: syntax.Within, scope: CeqlScope, time_unit: str, findings: Findings) -> Window | None:
    """The window; time spans become ticks of the input's time unit."""
    if clause.attribute is not None:
        return _attribute_window(clause, clause.attribute, scope, findings)
    amounts = [(amount, _unit(amount, findings)) for amount in clause.spans]
    if any(part.amount < 0 for part in clause.spans):
        findings.error("bad-window", "a window cannot be negative", clause.span)
        return None
    if "EVENT" in (unit for _, unit in amounts):
        return _event_window(clause, findings)
    return _time_window(clause, amounts, time_unit, findings)


def _attribute_window(clause: syntax.Within, name: syntax.Name, scope: CeqlScope, findings: Findings) -> Window:
    if (clause.amount or 0) < 0:
        findings.error("bad-window", "a window cannot be negative", clause.span)
    kinds = _check_attribute(name, scope, findings)
    if kinds and not any(family == "number" for family in kinds):
        message = f"a window needs numbers, and {name.text!r} is a {' or a '.join(sorted(kinds))}"
        findings.error("type-mismatch", message, name.span)
    return Window("attribute", clause.amount or 0, name.text, _jump(clause, findings))


def _jump(clause: syntax.Within, findings: Findings) -> int | float | None:
    """By how much a value may be above all before it without being doubted; infinite: by any amount."""
    jump = clause.jump
    if isinstance(jump, syntax.Name):
        if jump.text.upper() == "ANY":
            return inf
        findings.error("bad-window", f"{jump.text!r} is no jump", jump.span, "write JUMP 1000, or JUMP ANY")
        return None
    if jump is not None and jump < 0:
        findings.error("bad-window", "a jump cannot be negative", clause.span, "write JUMP 1000, or JUMP ANY")
    return jump


def _event_window(clause: syntax.Within, findings: Findings) -> Window | None:
    amount = clause.spans[0].amount
    if len(clause.spans) > 1 or not isinstance(amount, int):
        what = "events cannot be combined with other units" if len(clause.spans) > 1 else "events come in whole numbers"
        findings.error("bad-window", what, clause.span, "WITHIN 10 EVENTS, or WITHIN 1 HOUR 30 MINUTES")
        return None
    return Window("events", min(amount, LONGEST))


def _time_window(
    clause: syntax.Within, amounts: list[tuple[syntax.Amount, str | None]], time_unit: str, findings: Findings
) -> Window | None:
    total = Fraction(0)
    for part, unit in amounts:
        if unit is None:
            return None
        total += Fraction(str(min(part.amount, LONGEST))) * NANOSECONDS[unit]
    ticks = total / TICKS[time_unit]
    if 0 < ticks < 1:
        message = f"this window is shorter than one tick of the input's time, which is in {time_unit}"
        findings.warning("window-below-tick", message, clause.span, "only events of the same time fit into it")
    return Window("time", min(ticks.numerator // ticks.denominator, LONGEST))


def _unit(part: syntax.Amount, findings: Findings) -> str | None:
    """A unit's word in the singular."""
    word = part.unit.text.upper()
    if word in _UNITS:
        return word.removesuffix("S")
    hint = did_you_mean(word, _UNITS) or ""
    if not hint.startswith("did"):
        hint = "units are EVENTS, DAYS, HOURS, MINUTES, SECONDS and MILLISECONDS"
    findings.error("unknown-unit", f"there is no unit {part.unit.text!r}", part.unit.span, hint)
    return None


def _check_attribute(name: syntax.Name, scope: CeqlScope, findings: Findings) -> set[str] | None:
    """The kinds of an attribute of the events of FROM, reported when none has it."""
    kinds = scope.kinds_anywhere(name.text)
    if kinds is not None and not kinds:
        hint = did_you_mean(name.text, scope.attributes())
        findings.error("unknown-attribute", f"no event of FROM has an attribute {name.text!r}", name.span, hint)
    return None if kinds is None else {kind.family for kind in kinds}
