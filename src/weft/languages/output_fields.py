"""The fields that EQL and Step select: those of events under their own names, computed ones under given names."""

from __future__ import annotations

from collections.abc import Iterable

from weft.algebra import composites
from weft.languages.conditions import UNKNOWN, ConditionLowering
from weft.languages.findings import Findings
from weft.languages.syntax import Computed, Expression, Field

Selected = tuple[Expression, composites.Field]


def output_fields(nodes: Iterable[Expression], lowering: ConditionLowering, findings: Findings) -> list[Selected]:
    """The fields as written and in the algebra, the same field once; those that are none are reported."""
    found: dict[str, Selected] = {}
    for node in nodes:
        if not isinstance(node, Field | Computed):
            if lowering.value(node) is not UNKNOWN:
                hint = "say what it is called: a.x + b.x AS total"
                findings.error("field-without-name", "a computed field has no name", node.span, hint)
            continue
        name = node.name.text if isinstance(node, Computed) else node.text
        typed = lowering.value(node.value if isinstance(node, Computed) else node)
        if name in found and found[name][0] != node:
            hint = "give one of them another name"
            findings.error("duplicate-field", f"a second field is called {name!r}", node.span, hint)
        elif typed is not UNKNOWN:
            found[name] = (node, composites.Field(name, typed.value))
    return list(found.values())
