"""What an EQL query can speak of: its variables, the event types they are of, and the attributes those have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.errors import did_you_mean
from weft.languages.ceql.declarations import KINDS
from weft.languages.ceql.scope import IMPLICIT
from weft.languages.conditions import Families
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.eql import syntax
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.schema import Catalog, EventType, Kind


@dataclass(frozen=True)
class EqlScope:
    """The variables of a query, and the declared types, or None if nothing is declared or can be checked."""

    leaves: Mapping[str, syntax.Leaf]
    types: Mapping[str, EventType] | None
    defined: Defined = NOTHING_DEFINED

    def families(self, variable: Name, attribute: Name, findings: Findings) -> Families:
        """What an attribute of a variable can be; an attribute that its type does not have is reported."""
        name = self.leaves[variable.text].type.text
        type_ = (self.types or {}).get(name)
        if type_ is None:
            return self.defined.families(name, attribute, findings)
        kind = type_.kind_of(attribute.text) or IMPLICIT.get(attribute.text)
        if kind is None and name in self.defined.types:
            return self.defined.families(name, attribute, findings)
        if kind is None:
            message = f"event type {type_.name!r} has no attribute {attribute.text!r}"
            hint = did_you_mean(attribute.text, [name for name, _ in type_.attributes])
            findings.error("unknown-attribute", message, attribute.span, hint or "it is declared without attributes")
            return None
        return frozenset({kind.family})


def scope_of(
    query: syntax.Query, types: Mapping[str, EventType] | None, defined: Defined, findings: Findings
) -> EqlScope:
    """The variables of a query's pattern; those used twice, and types that are not declared, are reported."""
    leaves: dict[str, syntax.Leaf] = {}
    for leaf in query.pattern.walk():
        if not isinstance(leaf, syntax.Leaf):
            continue
        name = leaf.variable
        if types is not None and leaf.type.text not in types and not defined.has(leaf.type.text):
            hint = did_you_mean(leaf.type.text, [*types, *defined.types])
            findings.error("unknown-type", f"there is no event type {leaf.type.text!r}", leaf.type.span, hint)
        if name.text in leaves:
            line = findings.source.location(leaves[name.text].span.start)[0]
            message = f"a second {name.text!r} in this pattern (the first is in line {line})"
            hint = f"give each its own alias, as in {leaf.type.text} x ; {leaf.type.text} y"
            findings.error("duplicate-variable", message, name.span, hint)
        leaves.setdefault(name.text, leaf)
    return EqlScope(leaves, types, defined)


def declared_catalog(program: syntax.Program, findings: Findings) -> Catalog:
    """The event types that the program's sources declare."""
    types: dict[str, EventType] = {}
    for source in program.definitions:
        if not isinstance(source, syntax.Source):
            continue
        if source.type.text in types:
            hint = "a source is defined once; a pattern may use it several times, with an alias for each"
            findings.error("duplicate-source", f"a second source {source.type.text!r}", source.type.span, hint)
        types[source.type.text] = EventType(source.type.text, _attributes(source, findings))
    return Catalog(types=tuple(types.values()))


def _attributes(source: syntax.Source, findings: Findings) -> tuple[tuple[str, Kind], ...]:
    attributes: dict[str, Kind] = {}
    for attribute in source.attributes:
        kind = KINDS.get(attribute.kind.text.lower())
        if kind is None:
            near = did_you_mean(attribute.kind.text.lower(), KINDS) or ""
            hint = near if near.startswith("did") else "kinds are int, float, string and bool"
            findings.error("unknown-kind", f"there is no kind {attribute.kind.text!r}", attribute.kind.span, hint)
        if attribute.name.text in attributes:
            message = f"{source.type.text!r} has a second attribute {attribute.name.text!r}"
            findings.error("duplicate-attribute", message, attribute.name.span)
        attributes[attribute.name.text] = kind or Kind.TEXT
    return tuple(attributes.items())
