"""EQL's conditions: taken apart at commas, AND and FILTER, and lowered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.algebra import predicates as algebra
from weft.algebra import terms
from weft.errors import did_you_mean
from weft.languages import syntax as expressions
from weft.languages.conditions import UNKNOWN, ConditionLowering, Typed
from weft.languages.durations import ticks_of
from weft.languages.eql import syntax
from weft.languages.eql.scope import EqlScope
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.source import Span


@dataclass(frozen=True)
class QueryCondition:
    """One condition of a query, and whether it stood in FILTER."""

    predicate: algebra.Predicate
    in_filter: bool
    span: Span


def lower_conditions(query: syntax.Query, scope: EqlScope, time_unit: str, findings: Findings) -> list[QueryCondition]:
    """The query's conditions, each as it would stand between commas."""
    lowering = EqlConditions(scope, time_unit, findings)
    lowered = []
    for node, in_filter in _separate(query.conditions, findings):
        if not any(isinstance(part, expressions.Field | expressions.Bare | syntax.Occurs) for part in node.walk()):
            hint = "compare an attribute, as in a.price > 3"
            findings.error("no-variable", "this condition is about no event", node.span, hint)
        lowered.append(QueryCondition(lowering.condition(node), in_filter, node.span))
    return lowered


def _separate(
    nodes: tuple[expressions.Expression, ...], findings: Findings, in_filter: bool = False
) -> Iterator[tuple[expressions.Expression, bool]]:
    """The top-level conjuncts, inside and outside FILTER."""
    for whole in nodes:
        for node in expressions.parts_of(whole, expressions.And):
            if not isinstance(node, syntax.Call) or node.function != "FILTER":
                yield node, in_filter
            elif in_filter:
                findings.error("nested-filter", "a FILTER inside a FILTER", node.span, "leave the inner one out")
            else:
                yield from _separate((node.argument,), findings, in_filter=True)


class EqlConditions(ConditionLowering):
    """Lowers the conditions of one query."""

    def __init__(self, scope: EqlScope, time_unit: str, findings: Findings) -> None:
        super().__init__(findings)
        self._scope = scope
        self._time_unit = time_unit

    def field(self, node: expressions.Field) -> Typed:
        """An attribute of a variable of the pattern."""
        if not self._is_known(node.variable):
            return UNKNOWN
        families = self._scope.families(node.variable, node.attribute, self.findings)
        return Typed(algebra.Attribute(node.attribute.text, node.variable.text), families)

    def own_value(self, node: expressions.Expression) -> Typed | None:
        """PREV and ALL."""
        if not isinstance(node, syntax.Call):
            return None
        if node.function == "FILTER":
            self._refuse_filter(node)
            return UNKNOWN
        if not isinstance(node.argument, expressions.Field):
            message = f"{node.function} takes a field"
            hint = f"write {node.function}(a.price), and calculate outside"
            self.findings.error("not-a-field", message, node.argument.span, hint)
            return UNKNOWN
        value, families = self.field(node.argument)
        if not isinstance(value, algebra.Attribute):
            return UNKNOWN
        term = terms.Previous(value) if node.function == "PREV" else terms.Every(value)
        return Typed(term, families)

    def own_condition(self, node: expressions.Expression) -> algebra.Predicate | None:
        """OCCURS WITHIN."""
        match node:
            case syntax.Occurs(first, last, duration):
                ticks = ticks_of(duration.amount, duration.unit, self._time_unit, self.findings)
                if not all([self._is_known(first), self._is_known(last)]):
                    return algebra.Always()
                return algebra.Comparison("<=", terms.Elapsed(first.text, last.text), algebra.Literal(ticks))
            case syntax.Call(function="FILTER"):
                self._refuse_filter(node)
                return algebra.Always()
        return None

    def _refuse_filter(self, node: syntax.Call) -> None:
        message = "FILTER stands under OR, NOT or an operator"
        hint = "put FILTER around the whole condition, and join it with the others by AND or commas"
        self.findings.error("misplaced-filter", message, node.span, hint)

    def _is_known(self, variable: Name) -> bool:
        if variable.text in self._scope.leaves:
            return True
        types = {leaf.type.text: name for name, leaf in self._scope.leaves.items()}
        hint = did_you_mean(variable.text, self._scope.leaves)
        if variable.text in types:
            hint = f"its alias here is {types[variable.text]!r}"
        self.findings.error("unknown-variable", f"nothing is called {variable.text!r} here", variable.span, hint)
        return False
