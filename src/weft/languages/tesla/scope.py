"""What a TESLA rule can speak of: event types and their attributes, the events it binds, and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.errors import did_you_mean
from weft.languages.ceql.declarations import KINDS
from weft.languages.ceql.scope import IMPLICIT
from weft.languages.conditions import Families, Typed
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.languages.tesla import syntax
from weft.schema import Catalog, Kind
from weft.source import Span

Attributes = dict[str, Families]  # what each attribute can be


def kind_named(name: Name, findings: Findings) -> Kind | None:
    """The kind of that name; one that does not exist is reported."""
    kind = KINDS.get(name.text.lower())
    if kind is None:
        near = did_you_mean(name.text.lower(), KINDS) or ""
        hint = near if near.startswith("did") else "kinds are int, double, string and bool"
        findings.error("unknown-kind", f"there is no kind {name.text!r}", name.span, hint)
    return kind


class TeslaTypes:
    """The event types whose attributes are known: those that rules define, running ones too, and those of a schema."""

    def __init__(self, rules: tuple[syntax.Rule, ...], catalog: Catalog, defined: Defined = NOTHING_DEFINED) -> None:
        given = list(catalog.all_types())
        self._are_given = bool(given)
        self._defined = defined
        self._known: dict[str, Attributes] = {}
        for type_ in given:
            for name, kind in (*type_.attributes, *IMPLICIT.items()):
                self._add(type_.name, name, kind)
        for type_name, fields in defined.types.items():
            self._known.setdefault(type_name, {})
            for field_name, field_kind in fields.items():
                self._add(type_name, field_name, field_kind)
        for rule in rules:
            self._known.setdefault(rule.type.text, {})
            for declared in rule.fields:
                self._add(rule.type.text, declared.name.text, KINDS.get(declared.kind.text.lower()))

    def _add(self, type_: str, attribute: str, kind: Kind | None) -> None:
        """Note what an attribute can be. It is not known when a kind is not, and grows when declared differently."""
        attributes = self._known.setdefault(type_, {})
        families = frozenset({kind.family}) if kind else None
        before = attributes.get(attribute, frozenset())
        attributes[attribute] = None if families is None or before is None else before | families

    def require(self, type_: Name, assigned: frozenset[str] | None, findings: Findings) -> None:
        """Report a type that does not exist, as far as that is known: `assigned` are those a rule numbers."""
        if assigned is not None and type_.text not in assigned:
            message = f"{type_.text!r} has no number in the Assign of this rule"
            hint = did_you_mean(type_.text, assigned)
            if hint is None or not hint.startswith("did"):
                hint = f"add it: Assign …, 17 => {type_.text}"
            findings.error("unknown-type", message, type_.span, hint)
        elif self._are_given and type_.text not in self._known and not self._defined.has(type_.text):
            hint = did_you_mean(type_.text, self._known)
            findings.error("unknown-type", f"there is no event type {type_.text!r}", type_.span, hint)

    def families(self, type_: str, attribute: Name, findings: Findings) -> Families:
        """What an attribute of a type can be; an attribute that the type does not have is reported."""
        known = self._known.get(type_)
        if known is None:
            return None
        if attribute.text not in known and attribute.text not in IMPLICIT:
            message = f"event type {type_!r} has no attribute {attribute.text!r}"
            hint = did_you_mean(attribute.text, known) or "it is defined without attributes"
            findings.error("unknown-attribute", message, attribute.span, hint)
            return None
        if attribute.text in known:
            return known[attribute.text]
        return frozenset({IMPLICIT[attribute.text].family})


@dataclass(frozen=True)
class BoundEvent:
    """An event that a rule binds: its type, and its place among them."""

    type: Name
    index: int


@dataclass
class TeslaScope:
    """The events a rule binds, by name, and the parameters bound so far."""

    events: Mapping[str, BoundEvent]
    rule: syntax.Rule
    parameters: dict[str, Typed] = field(default_factory=dict)

    def report_unknown(self, name: Name, findings: Findings) -> None:
        """Report a name that no event of the rule has."""
        aliases = [alias for alias, bound in self.events.items() if bound.type.text == name.text]
        if aliases:
            hint: str | None = f"its name here is {' or '.join(map(repr, aliases))}"
        elif name.text in _nameless_types(self.rule):
            hint = "negations and aggregates bind no event that could be named"
        else:
            hint = did_you_mean(name.text, self.events)
        findings.error("unknown-variable", f"nothing is called {name.text!r} here", name.span, hint)


def scope_of(rule: syntax.Rule, findings: Findings) -> TeslaScope | None:
    """The names of a rule; None when a name is used twice, as then nothing more can be said."""
    events: dict[str, BoundEvent] = {}
    is_clear = True
    for clause in rule.clauses:
        if not isinstance(clause, syntax.Selected):
            continue
        name, type_ = clause.predicate.variable, clause.predicate.type
        if name.text in events:
            line = findings.source.location(events[name.text].type.span.start)[0]
            message = f"a second {name.text!r} in this rule (the first is in line {line})"
            hint = f"give it a name of its own: {type_.text}(…) as {_free_name(type_.text, events)}"
            findings.error("duplicate-variable", message, name.span, hint)
            is_clear = False
        events.setdefault(name.text, BoundEvent(type_, len(events)))
    return TeslaScope(events, rule) if is_clear else None


def _nameless_types(rule: syntax.Rule) -> set[str]:
    """The types of negations and aggregates, whose events have no names."""
    return {
        node.type.text
        for part in (*rule.clauses, *rule.assignments)
        if not isinstance(part, syntax.Selected)
        for node in part.walk()
        if isinstance(node, syntax.Predicate | syntax.Aggregate)
    }


def _free_name(type_: str, events: Mapping[str, BoundEvent]) -> str:
    return next(name for number in range(2, 99) if (name := f"{type_[:1].upper()}{number}") not in events)


def bindings_in(rule: syntax.Rule) -> dict[str, Span]:
    """Where each parameter could be bound first: for a hint to one that is used too early."""
    found: dict[str, Span] = {}
    for clause in rule.clauses:
        if isinstance(clause, syntax.Negated):
            continue
        for node in clause.walk():
            if isinstance(node, syntax.Binding):
                found.setdefault(node.parameter.text, node.span)
            elif isinstance(node, syntax.Comparisons) and "=" in node.operators:
                for operand in node.operands:
                    if isinstance(operand, syntax.Parameter):
                        found.setdefault(operand.name.text, node.span)
    return found
