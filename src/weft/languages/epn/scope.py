"""What patterns can speak of: event types of the input, derived events of patterns before, and their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.errors import did_you_mean
from weft.languages.ceql.scope import IMPLICIT
from weft.languages.conditions import Families
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.durations import TICKS
from weft.languages.epn import syntax
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.schema import EventType


@dataclass
class EpnTypes:
    """The event types there are. `declared` is None when any type may be in the input.

    `patterns` are the places of all patterns of the text, `derived` the fields of those that were read already.
    """

    declared: Mapping[str, EventType] | None
    patterns: Mapping[str, Name]
    defined: Defined = NOTHING_DEFINED  # by queries of other texts
    derived: dict[str, Mapping[str, Families]] = field(default_factory=dict)
    reading: str = ""  # the pattern that is being read

    def check(self, type_: Name, findings: Findings) -> None:
        """Report a type that does not exist, or does not exist yet."""
        name = type_.text
        if name == self.reading:
            message = f"the pattern {name!r} waits for itself"
            findings.error("not-yet-derived", message, type_.span, "its events come to the patterns after it")
        elif name in self.patterns and name not in self.derived:
            line = findings.source.location(self.patterns[name].span.start)[0]
            message = f"the pattern {name!r} (line {line}) is not there yet: its events come to the patterns after it"
            order = "move that pattern before this one; patterns cannot wait for each other"
            findings.error("not-yet-derived", message, type_.span, order)
        elif name not in self.derived and not self._may_be(name):
            hint = did_you_mean(name, [*(self.declared or ()), *self.derived, *self.defined.types])
            findings.error("unknown-type", f"there is no event type {name!r}", type_.span, hint)

    def _may_be(self, name: str) -> bool:
        """Whether the input or another text may have events of the type."""
        return self.declared is None or name in self.declared or self.defined.has(name)

    def families(self, type_: str, attribute: Name, findings: Findings) -> Families:
        """What an attribute of a type can be; one that it does not have is reported."""
        if type_ in self.derived:
            return self._derived_families(type_, attribute, findings)
        declared = (self.declared or {}).get(type_)
        if declared is None:
            return self.defined.families(type_, attribute, findings)
        kind = declared.kind_of(attribute.text) or IMPLICIT.get(attribute.text)
        if kind is None and type_ in self.defined.types:
            return self.defined.families(type_, attribute, findings)
        if kind is None:
            message = f"event type {type_!r} has no attribute {attribute.text!r}"
            hint = did_you_mean(attribute.text, [name for name, _ in declared.attributes])
            findings.error("unknown-attribute", message, attribute.span, hint or "it is declared without attributes")
            return None
        return frozenset({kind.family})

    def _derived_families(self, type_: str, attribute: Name, findings: Findings) -> Families:
        fields = self.derived[type_]
        if attribute.text in fields:
            return fields[attribute.text]
        message = f"the pattern {type_!r} derives no field {attribute.text!r}"
        near = did_you_mean(attribute.text, fields) or ""
        hint = near if near.startswith("did") else f"add {attribute.text} = … to its derive clause"
        findings.error("unknown-attribute", message, attribute.span, hint)
        return None


@dataclass(frozen=True)
class EpnScope:
    """The participants of a pattern by variable, the types there are, and what the partitions are divided by."""

    participants: Mapping[str, syntax.Participant]
    types: EpnTypes
    by: Mapping[str, Name]
    tick: int = TICKS["ms"]  # nanoseconds

    def families(self, variable: str, attribute: Name, findings: Findings) -> Families:
        """What an attribute of a variable can be."""
        return self.types.families(self.participants[variable].type.text, attribute, findings)


def scope_of(
    node: syntax.Pattern, context: syntax.Context | None, types: EpnTypes, time_unit: str, findings: Findings
) -> EpnScope:
    """The scope of a pattern; variables used twice and types that do not exist are reported."""
    participants: dict[str, syntax.Participant] = {}
    for participant in node.participants:
        name = participant.variable
        types.check(participant.type, findings)
        if name.text in participants:
            line = findings.source.location(participants[name.text].span.start)[0]
            message = f"a second {name.text!r} in this pattern (the first is in line {line})"
            type_ = participant.type.text
            findings.error(
                "duplicate-variable", message, name.span, f"give each its own variable: {type_} x, {type_} y"
            )
        participants.setdefault(name.text, participant)
    by = {name.text: name for name in (context.by if context else ())}
    return EpnScope(participants, types, by, TICKS.get(time_unit, TICKS["ms"]))
