"""From the text of a content filter to a predicate over the fields of one event."""

from __future__ import annotations

import re
from collections.abc import Mapping

from weft.algebra import predicates as algebra
from weft.errors import did_you_mean
from weft.languages import syntax
from weft.languages.conditions import UNKNOWN, ConditionLowering, Typed
from weft.languages.content.parser import parse
from weft.languages.findings import Findings
from weft.languages.limits import within_limits
from weft.schema import Kind
from weft.source import SourceText
from weft.tree import deep

# What every composite event has, unless it has a field of that name: its type, and its interval.
IMPLICIT = {"type": Kind.TEXT, "ts": Kind.INT, "start": Kind.INT, "end": Kind.INT}

Fields = Mapping[str, Kind | None]  # the kind of each field; None: not known


def compile_filter(text: str, fields: Fields | None = None) -> algebra.Predicate:
    """Return the predicate of a filter; raise ProgramError if the filter is wrong.

    `fields` are the fields of the events by name, or None if they are not known, in which case any name is accepted.
    """
    source = SourceText(text, "<where>")
    findings = Findings(source)
    with deep:
        condition = within_limits(parse, source)
        lowered = FieldConditions(fields, findings).condition(condition)
    findings.conclude()
    return lowered


class FieldConditions(ConditionLowering):
    """Lowers conditions in which a name is a field of the current event."""

    def __init__(self, fields: Fields | None, findings: Findings) -> None:
        super().__init__(findings)
        self._fields = None if fields is None else {**IMPLICIT, **fields}

    def value(self, node: syntax.Expression) -> Typed:
        """The value of an expression; a name alone is a field."""
        return self._read(node.name) if isinstance(node, syntax.Bare) else super().value(node)

    def field(self, node: syntax.Field) -> Typed:
        """`a.b`, which is a field only where two variables of a query have the attribute."""
        if self._fields is not None and node.text in self._fields:
            return self._read(syntax.Name(node.text, span=node.span))
        hint = f"write the field alone: {node.attribute.text}"
        self.findings.error("unknown-variable", "only the fields of one event can be read here", node.span, hint)
        return UNKNOWN

    def condition(self, node: syntax.Expression) -> algebra.Predicate:
        """Return the predicate of a condition."""
        if isinstance(node, syntax.Contains):
            if not (isinstance(node.part, syntax.Literal) and isinstance(node.part.value, str)):
                self.findings.error("not-a-text", "what is contained is a text in quotes", node.part.span)
                return algebra.Always()
            return algebra.RegexMatch(self.value(node.operand).value, re.escape(node.part.value))
        return super().condition(node)

    def _read(self, name: syntax.Name) -> Typed:
        if self._fields is None:
            return Typed(algebra.Attribute(name.text), None)
        if name.text not in self._fields:
            hint = did_you_mean(name.text, self._fields)
            self.findings.error("unknown-field", f"these events have no field {name.text!r}", name.span, hint)
            return UNKNOWN
        kind = self._fields[name.text]
        return Typed(algebra.Attribute(name.text), None if kind is None else frozenset({kind.family}))
