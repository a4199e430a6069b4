"""One TESLA rule on its way to the algebra."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from weft.algebra import predicates as algebra
from weft.algebra import rules
from weft.errors import did_you_mean
from weft.languages.conditions import Typed, say
from weft.languages.durations import ticks_of
from weft.languages.findings import Findings
from weft.languages.syntax import Expression, Name
from weft.languages.tesla import syntax
from weft.languages.tesla.check import check_absence, check_possible
from weft.languages.tesla.constraints import AtHand, RuleConditions
from weft.languages.tesla.scope import TeslaScope, TeslaTypes, kind_named
from weft.schema import Kind
from weft.source import Span
from weft.tree import Node

MOST = 2**31 - 1  # no window holds more events
_EXAMPLE = "each A(…) within 5 min from B"


class RuleLowering:
    """Lowers a rule, clause by clause in the order of the text, in which parameters are bound."""

    def __init__(
        self, node: syntax.Rule, scope: TeslaScope, types: TeslaTypes, time_unit: str, findings: Findings
    ) -> None:
        self._node = node
        self._scope = scope
        self._types = types
        self._time_unit = time_unit
        self._findings = findings
        self._terminator: rules.Terminator | None = None
        self._lookbacks: list[rules.LookBack] = []
        self._absences: list[tuple[rules.Absence, Span]] = []
        self._conditions: list[algebra.Predicate] = []
        self._spans: list[tuple[Node, Span]] = []  # of events
        self._is_sound = True  # whether the rule can be built: what could not be lowered was reported

    def lower(self) -> rules.Rule | None:
        """The rule, None when it cannot be built."""
        for number, clause in enumerate(self._node.clauses):
            match clause:
                case syntax.Selected() if number == 0:
                    self._lower_terminator(clause)
                case syntax.Selected():
                    self._lower_selected(clause)
                case syntax.Negated():
                    self._lower_negated(clause)
                case syntax.Condition(condition):
                    self._lower_condition(condition)
        fields = self._fields()
        consumed = self._consumed()
        if self._terminator is None or not self._is_sound:
            return None
        rule = rules.Rule(
            self._node.type.text,
            self._terminator,
            tuple(self._lookbacks),
            tuple(self._conditions),
            fields,
            consumed,
            None if self._node.label is None else self._node.label.text,
            spans=tuple(self._spans),
        )
        for absence, span in self._absences:
            check_absence(absence, rule, span, self._findings)
        return _with_absences(rule, [absence for absence, _ in self._absences])

    # ------------------------------------------------------------ clauses

    def _lower_terminator(self, clause: syntax.Selected) -> None:
        predicate = clause.predicate
        if clause.extent is not None:
            message = "the first event of a rule has no window: the others look back from it"
            hint = "put the latest event first: from B(…) and each A(…) within 5 min from B"
            self._findings.error("misplaced-window", message, clause.extent.span, hint)
        variable = predicate.variable.text
        events = self._conditions_on(predicate).events(predicate.constraints)
        self._terminator = rules.Terminator(variable, events)
        self._spans.append((events, clause.span))
        check_possible(events, predicate, self._findings)

    def _lower_selected(self, clause: syntax.Selected) -> None:
        predicate = clause.predicate
        name = predicate.variable.text
        if clause.selection is None:
            message = f"which {name} is meant is not said"
            hint = f"write each, first or last before it: {_EXAMPLE}"
            self._findings.error("no-selection", message, predicate.type.span, hint)
        if clause.count == 0:
            self._findings.error("nothing-selected", "this selects nothing", clause.span, "select at least one")
            self._is_sound = False
        events = self._conditions_on(predicate).events(predicate.constraints)
        check_possible(events, predicate, self._findings)
        within = self._window(clause)
        if within is None or clause.selection is None:
            self._is_sound = False
            return
        if within.ticks == 0:
            message = f"no {name} is before {within.anchor!r} by 0 or less, so this rule never fires"
            self._findings.warning("never-fires", message, clause.span, "give the window a length")
        count = None if clause.selection == "each" else min(clause.count or 1, MOST)
        if self._is_sound:
            self._lookbacks.append(rules.LookBack(name, events, within, clause.selection, count))
            self._spans.append((events, clause.span))

    def _window(self, clause: syntax.Selected) -> rules.Within | None:
        extent = clause.extent
        if isinstance(extent, syntax.Between):
            message = "an event is selected within a time from another one, not between two"
            self._findings.error("misplaced-between", message, extent.span, f"write {_EXAMPLE}")
            return None
        index = self._scope.events[clause.predicate.variable.text].index
        lowered = self._extent(extent, clause.predicate.span, before=index)
        return cast("rules.Within | None", lowered)

    def _lower_negated(self, clause: syntax.Negated) -> None:
        predicate = clause.predicate
        inner = RuleConditions(self._scope, self._types, self._findings, AtHand(predicate.type))
        events = inner.events(predicate.constraints)
        check_possible(events, predicate, self._findings, negated=True)
        extent = self._extent(clause.extent, clause.span)
        if extent is None:
            self._is_sound = False
        else:
            self._absences.append((rules.Absence(events, extent), clause.span))

    def _conditions_on(self, predicate: syntax.Predicate) -> RuleConditions:
        variable = predicate.variable.text
        at_hand = AtHand(predicate.type, variable, self._scope.events[variable].index)
        return RuleConditions(self._scope, self._types, self._findings, at_hand)

    # ------------------------------------------------------------ extents

    def _extent(self, extent: syntax.Extent | None, span: Span, before: int | None = None) -> rules.Extent | None:
        """The extent, None when it is missing or names what is not there; `before`: what can be named comes before."""
        match extent:
            case syntax.Within(duration, anchor):
                ticks = self._ticks(duration)
                return rules.Within(anchor.text, ticks) if self._is_known(anchor, before) else None
            case syntax.Between(first, second):
                if not all([self._is_known(first, before), self._is_known(second, before)]):
                    return None
                return rules.Between(first.text, second.text)
            case syntax.Unbounded():
                span = extent.span
        message = "a window is missing: without it all earlier events would have to be kept for ever"
        hint = f"say how far to look back: within 5 min from {next(iter(self._scope.events))}"
        self._findings.error("unbounded", message, span, hint)
        return None

    def _ticks(self, duration: syntax.Duration) -> int:
        unit = duration.unit
        if unit is None and self._node.assigned:
            unit = Name("ms", span=duration.span)  # T-Rex's windows are in milliseconds
        return ticks_of(duration.amount, unit, self._time_unit, self._findings)

    def _is_known(self, name: Name, before: int | None) -> bool:
        bound = self._scope.events.get(name.text)
        if bound is None:
            self._scope.report_unknown(name, self._findings)
            return False
        if before is not None and bound.index >= before:
            message = f"{name.text!r} is not bound yet"
            hint = "an event is within a time from the first event of the rule, or from one selected before it"
            self._findings.error("bound-later", message, name.span, hint)
            return False
        return True

    # ------------------------------------------------------------ conditions on aggregates

    def _lower_condition(self, node: Expression) -> None:
        lowering = RuleConditions(self._scope, self._types, self._findings, extents=self._extent)
        links = _links(node)
        bound = [link for link in links if self._binds(link, lowering)]
        self._conditions += [lowering.condition(link) for link in links if link not in bound]
        if not any(self._is_aggregate(part) for part in node.walk()):
            message = "a condition without an aggregate stands in the brackets of an event"
            hint = "write it there: each A(v > B.v) within 5 min from B"
            self._findings.error("misplaced-condition", message, node.span, hint)

    def _is_aggregate(self, node: Node) -> bool:
        """Whether it is an aggregate or a parameter for one, or one that was reported."""
        if isinstance(node, syntax.Parameter):
            bound = self._scope.parameters.get(node.name.text)
            return bound is None or bool(rules.summaries(bound.value))
        return isinstance(node, syntax.Aggregate)

    def _binds(self, link: Expression, lowering: RuleConditions) -> bool:
        """Bind the parameter of `$t = value`, if it is one that is not bound yet."""
        if not isinstance(link, syntax.Comparisons) or link.operators != ("=",):
            return False
        for one, other in (link.operands, link.operands[::-1]):
            if isinstance(one, syntax.Parameter) and one.name.text not in self._scope.parameters:
                self._scope.parameters[one.name.text] = lowering.value(other)
                return True
        return False

    # ------------------------------------------------------------ what is defined

    def _fields(self) -> tuple[rules.DefinedField, ...]:
        kinds: dict[str, Kind] = {}
        for declared in self._node.fields:
            if declared.name.text in kinds:
                message = f"{self._node.type.text!r} has a second field {declared.name.text!r}"
                self._findings.error("duplicate-field", message, declared.name.span)
            kinds.setdefault(declared.name.text, kind_named(declared.kind, self._findings) or Kind.TEXT)
        values = self._values(kinds)
        for declared in self._node.fields:
            if declared.name.text not in values:
                message = f"the field {declared.name.text!r} is never set, so it is null"
                hint = f"set it: where {declared.name.text} = …"
                self._findings.warning("unset-field", message, declared.span, hint)
        return tuple(rules.DefinedField(name, kind, values.get(name)) for name, kind in kinds.items())

    def _values(self, kinds: dict[str, Kind]) -> dict[str, algebra.Expression]:
        lowering = RuleConditions(self._scope, self._types, self._findings, extents=self._extent)
        values: dict[str, algebra.Expression] = {}
        for assignment in self._node.assignments:
            name = assignment.field
            found = lowering.value(assignment.value)
            if assignment.operator != "=":
                message = f"`where` sets fields with =, it does not compare with {assignment.operator}"
                hint = f"conditions stand in the brackets of an event: A({name.text} {assignment.operator} …)"
                self._findings.error("misplaced-condition", message, assignment.span, hint)
            elif name.text not in kinds:
                message = f"{self._node.type.text!r} has no field {name.text!r}"
                hint = did_you_mean(name.text, kinds) or f"declare it: define {self._node.type.text}({name.text}: int)"
                self._findings.error("unknown-field", message, name.span, hint)
            elif name.text in values:
                self._findings.error("set-twice", f"the field {name.text!r} is set twice", name.span)
            else:
                self._check_kind(found, kinds[name.text], assignment)
                values[name.text] = found.value
        return values

    def _check_kind(self, found: Typed, kind: Kind, assignment: syntax.Assignment) -> None:
        if found.families is not None and kind.family not in found.families:
            message = f"the field {assignment.field.text!r} is a {kind.family}; this is {say(found.families)}"
            hint = f"change its kind in define, or set a {kind.family}"
            self._findings.error("type-mismatch", message, assignment.value.span, hint)

    def _consumed(self) -> tuple[str, ...]:
        consumed: dict[str, None] = {}
        for name in self._node.consumed:
            if not self._is_known(name, None):
                continue
            if self._scope.events[name.text].index == 0:
                message = f"consuming {name.text!r} has no effect: a rule is tried once at each of its events"
                self._findings.warning("no-effect", message, name.span, "leave it out")
            else:
                consumed[name.text] = None
        return tuple(consumed)


def _links(node: Expression) -> list[Expression]:
    """The comparisons of a chain, one by one; the condition itself when it is none."""
    if not isinstance(node, syntax.Comparisons):
        return [node]
    pairs = zip(node.operands, node.operators, node.operands[1:], strict=False)
    return [syntax.Comparisons((a, b), (operator,), span=a.span.to(b.span)) for a, operator, b in pairs]


def _with_absences(rule: rules.Rule, absences: list[rules.Absence]) -> rules.Rule:
    """Return the rule with each absence at the first step at which all its variables are bound."""
    if not absences:
        return rule
    places = [max(rule.variables.index(name) for name in rules.mentioned(absence)) for absence in absences]
    belonging = [
        tuple(a for a, place in zip(absences, places, strict=True) if place == n) for n in range(len(rule.steps))
    ]
    lookbacks = (replace(step, absences=own) for step, own in zip(rule.lookbacks, belonging[1:], strict=True))
    return replace(rule, terminator=replace(rule.terminator, absences=belonging[0]), lookbacks=tuple(lookbacks))
