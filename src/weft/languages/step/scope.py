"""What can be read at a place of a Step pattern, and what cannot, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from weft.algebra.composites import Composite
from weft.errors import did_you_mean
from weft.languages.conditions import Families
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.languages.step import syntax
from weft.languages.syntax import Field, Name
from weft.schema import EventType

Reason = OneOf["union", "negation"]


@dataclass(frozen=True)
class LoweredPattern:
    """A lowered pattern: the variables a condition above it can read, and those it cannot."""

    pattern: Composite
    readable: frozenset[str]
    unreadable: Mapping[str, Reason]

    def with_pattern(self, pattern: Composite) -> LoweredPattern:
        """The same variables, of a pattern around this one."""
        return LoweredPattern(pattern, self.readable, self.unreadable)

    def hidden(self, reason: Reason) -> Mapping[str, Reason]:
        """All its variables, as unreadable."""
        return {**dict.fromkeys(self.readable, reason), **self.unreadable}


def beside(pattern: Composite, left: LoweredPattern, right: LoweredPattern) -> LoweredPattern:
    """A pattern made of two, both of which can be read."""
    return LoweredPattern(pattern, left.readable | right.readable, {**left.unreadable, **right.unreadable})


@dataclass(frozen=True)
class Variables:
    """The variables of a query and the types their events are of."""

    leaves: Mapping[str, syntax.Leaf]
    types: Mapping[str, EventType]
    defined: Defined = NOTHING_DEFINED

    def families(self, field: Field, findings: Findings) -> Families:
        """What a field of a known variable can be; one that its type does not have is reported."""
        name = self.leaves[field.variable.text].type.text
        type_ = self.types.get(name)
        if type_ is None:
            return self.defined.families(name, field.attribute, findings)
        kind = type_.kind_of(field.attribute.text)
        if kind is None and name in self.defined.types:
            return self.defined.families(name, field.attribute, findings)
        if kind is None:
            message = f"external {type_.name!r} has no field {field.attribute.text!r}"
            hint = did_you_mean(field.attribute.text, [name for name, _ in type_.attributes]) or "it has no fields"
            findings.error("unknown-field", message, field.attribute.span, hint)
            return None
        return frozenset({kind.family})

    def report_unreadable(
        self, name: Name, unreadable: Mapping[str, Reason], projected: bool, findings: Findings
    ) -> None:
        """Say why a variable cannot be read at a place."""
        reason = unreadable.get(name.text)
        if reason == "union":
            message = f"{name.text!r} stands below a '|': a match may have none"
            hint = "put the condition inside its branch of the '|'"
            if projected:
                hint = "project fields outside the '|' only, or *, or write a query for each branch"
            findings.error("field-below-union", message, name.span, hint)
        elif reason == "negation":
            message = f"{name.text!r} stands behind a '!': no match has one"
            hint = f"conditions on it go into its own brackets, and may read other events there: !{name.text}[…]"
            findings.error("field-of-negation", message, name.span, hint)
        elif name.text in self.leaves:
            message = f"{name.text!r} is not part of what this condition joins"
            hint = "put the condition at the operator that has all its events on its two sides"
            findings.error("out-of-reach", message, name.span, hint)
        else:
            aliases = {leaf.type.text: alias for alias, leaf in self.leaves.items()}
            alias = aliases.get(name.text)
            hint = f"its alias here is {alias!r}" if alias else did_you_mean(name.text, self.leaves) or ""
            findings.error("unknown-variable", f"nothing is called {name.text!r} here", name.span, hint)


def variables_of(
    query: syntax.Query, types: Mapping[str, EventType], defined: Defined, findings: Findings
) -> Variables:
    """The variables of a query; those used twice, and types that are not declared, are reported."""
    leaves: dict[str, syntax.Leaf] = {}
    for leaf in query.pattern.walk():
        if not isinstance(leaf, syntax.Leaf):
            continue
        name = leaf.variable
        if leaf.type.text not in types and not defined.has(leaf.type.text):
            hint = did_you_mean(leaf.type.text, [*types, *defined.types]) or f"declare it: external {leaf.type.text}(…)"
            findings.error("unknown-type", f"there is no external {leaf.type.text!r}", leaf.type.span, hint)
        if name.text in leaves:
            message = f"a second {name.text!r} in this pattern"
            hint = f"give each its own alias: {leaf.type.text}/{leaf.type.text}1, {leaf.type.text}/{leaf.type.text}2"
            findings.error("duplicate-variable", message, name.span, hint)
        leaves.setdefault(name.text, leaf)
    return Variables(leaves, types, defined)
