"""Select lists, lowered: variables with attributes, and computed fields."""

from __future__ import annotations

from weft.algebra import patterns, query
from weft.algebra import predicates as algebra
from weft.algebra.analysis.multiplicity import MANY, most
from weft.errors import did_you_mean
from weft.languages.ceql import syntax
from weft.languages.ceql.filters import FilterLowering
from weft.languages.ceql.scope import Bindings, CeqlScope, Occurrence
from weft.languages.findings import Findings

Lowered = tuple[tuple[query.Selected, ...] | None, tuple[query.Computed, ...]]


class SelectList:
    """Lowers the select list of one query, whose pattern has been lowered already."""

    def __init__(
        self, scope: CeqlScope, filters: FilterLowering, bound: Bindings, pattern: patterns.Pattern, findings: Findings
    ) -> None:
        self._scope = scope
        self._filters = filters
        self._bound = bound
        self._pattern = pattern
        self._findings = findings

    def lower(self, node: syntax.Query) -> Lowered:
        """What is selected, and the computed fields; what a field reads is selected too."""
        if node.selected is None:
            return None, ()
        selected: dict[str, tuple[str, ...]] = {}
        computed: list[query.Computed] = []
        for item in node.selected:
            if isinstance(item, syntax.SelectedValue):
                field = self._computed(item)
                computed.append(field)
                self._add(field.value, selected)
            elif (name := self._name(item.variable)) is not None:
                for attribute in item.attributes:
                    self._check(attribute, name, self._bound[name])
                attributes = (*selected.get(name, ()), *(a.text for a in item.attributes))
                selected[name] = tuple(dict.fromkeys(attributes))
        self._check_fields(node, selected)
        if node.top is not None:
            self._add(self._filters.computed(node.top.value, self._bound), selected)
        return tuple(query.Selected(name, attributes) for name, attributes in selected.items()), tuple(computed)

    def _add(self, value: algebra.Expression, selected: dict[str, tuple[str, ...]]) -> None:
        """What a value reads is selected too."""
        for variable in sorted(algebra.variables_of(value)):
            selected.setdefault(variable, ())

    def _computed(self, item: syntax.SelectedValue) -> query.Computed:
        if item.name is None:
            hint = "say what the field is called: … AS name"
            self._findings.error("field-without-name", "a computed field has no name", item.span, hint)
        value = self._filters.computed(item.value, self._bound)
        for variable in sorted(_read_singly(value)):
            if most(self._pattern, variable) >= MANY:
                message = f"a match may have several events {variable!r}: which one is meant?"
                hint = f"write FIRST({variable}[…]), LAST, MIN, MAX, SUM or AVG"
                self._findings.error("several-values", message, item.span, hint)
        return query.Computed("" if item.name is None else item.name.text, value)

    def _check_fields(self, node: syntax.Query, selected: dict[str, tuple[str, ...]]) -> None:
        """No two fields have one name."""
        taken = {attribute for attributes in selected.values() for attribute in attributes}
        for item in node.selected or ():
            if isinstance(item, syntax.SelectedValue) and item.name is not None:
                if item.name.text in taken:
                    message = f"two fields are called {item.name.text!r}"
                    self._findings.error("duplicate-field", message, item.name.span, "choose another name after AS")
                taken.add(item.name.text)

    def _name(self, variable: syntax.Variable) -> str | None:
        if variable.text in self._bound:
            return variable.text
        stream, type_name = variable.stream, variable.name.text
        if stream is not None and type_name in self._bound:
            if self._scope.only_stream_with(type_name) == stream.text:
                return type_name
            hint: str | None = f"write {variable.text} in the pattern too"
        elif variable.text.upper() in query.Strategy.__members__:
            hint = f"after a strategy comes what to select: SELECT {variable.text.upper()} *"
        else:
            hint = did_you_mean(variable.text, self._bound)
        self._findings.error("unknown-variable", f"nothing is called {variable.text!r} here", variable.span, hint)
        return None

    def _check(self, attribute: syntax.Name, name: str, events: frozenset[Occurrence]) -> None:
        if self._scope.kinds(events, attribute.text) == frozenset():
            hint = did_you_mean(attribute.text, self._scope.attributes(events))
            message = f"{name!r} has no attribute {attribute.text!r}"
            self._findings.error("unknown-attribute", message, attribute.span, hint)


def _read_singly(node: algebra.Expression) -> frozenset[str]:
    """The variables of plain attributes, those not inside an aggregate."""
    if isinstance(node, algebra.Aggregate):
        return frozenset()
    if isinstance(node, algebra.Attribute):
        return frozenset() if node.variable is None else frozenset({node.variable})
    below = [child for child in node.children() if isinstance(child, algebra.Expression)]
    return frozenset().union(*map(_read_singly, below))
