"""The values and conditions of TESLA rules, lowered: what names read, what binds a parameter, aggregates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from weft.algebra import predicates as algebra
from weft.algebra import rules
from weft.errors import did_you_mean
from weft.languages import syntax as expressions
from weft.languages.conditions import NUMBER, UNKNOWN, ConditionLowering, Typed
from weft.languages.findings import Findings
from weft.languages.syntax import Expression, Name
from weft.languages.tesla import syntax
from weft.languages.tesla.scope import TeslaScope, TeslaTypes, bindings_in, kind_named
from weft.source import Span

_FLIPPED: dict[str, algebra.ComparisonOperator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Extents(Protocol):
    """Lowers the extent of an aggregate, None when it cannot be."""

    def __call__(self, extent: syntax.Extent | None, span: Span) -> rules.Extent | None:
        """The extent in the algebra; `span` is where it is missing."""


@dataclass(frozen=True)
class AtHand:
    """The event whose constraints are lowered: its type, and, if it is bound, its name and place in the rule."""

    type: Name
    variable: str | None = None
    index: int | None = None


class RuleConditions(ConditionLowering):
    """Lowers the conditions and values at one place of a rule."""

    def __init__(
        self,
        scope: TeslaScope,
        types: TeslaTypes,
        findings: Findings,
        at_hand: AtHand | None = None,
        extents: Extents | None = None,
    ) -> None:
        super().__init__(findings)
        self._scope = scope
        self._types = types
        self._at_hand = at_hand
        self._extents = extents  # None: an aggregate may not stand here

    # ------------------------------------------------------------ constraints

    def events(self, constraints: Iterable[Expression]) -> rules.Events:
        """Lower the constraints in brackets after an event's type."""
        assert self._at_hand is not None
        lowered = [self._constraint(node) for node in constraints]
        conditions = [condition for condition in lowered if condition is not None]
        related = tuple(condition for condition in conditions if rules.mentioned(condition))
        static = tuple(condition for condition in conditions if not rules.mentioned(condition))
        return rules.Events(self._at_hand.type.text, static, related)

    def _constraint(self, node: Expression) -> algebra.Predicate | None:
        """A constraint; None when it only binds a parameter."""
        binding = self._binding(node)
        if binding is not None:
            attribute, parameter = binding
            if self._may_bind(parameter):
                self._scope.parameters[parameter.text] = self._own(attribute, self._variable)
                return None
            if isinstance(node, syntax.Binding):
                self._warn_bound(node)
            left = expressions.Bare(attribute, span=attribute.span)
            right = syntax.Parameter(parameter, span=parameter.span)
            return self.condition(expressions.Comparison("=", left, right, span=node.span))
        if isinstance(node, syntax.Comparisons) and len(node.operators) > 1:
            hint = "write low < a and a < high"
            self.findings.error("chained-comparison", "comparisons are not chained here", node.span, hint)
            return None
        condition = self.condition(node)
        if not any(isinstance(part, algebra.Attribute) for part in condition.walk()) and _is_constant(node):
            hint = "compare an attribute, as in value > 3"
            self.findings.error("no-attribute", "this condition is about no event", node.span, hint)
        return condition

    def _binding(self, node: Expression) -> tuple[Name, Name] | None:
        """The attribute and the parameter of `attribute => $p`, or of `attribute = $p` either way round."""
        if isinstance(node, syntax.Binding):
            return node.attribute, node.parameter
        if not isinstance(node, syntax.Comparisons) or node.operators != ("=",):
            return None
        for one, other in (node.operands, node.operands[::-1]):
            attribute = self._own_attribute(one)
            if attribute is not None and isinstance(other, syntax.Parameter):
                return attribute, other.name
        return None

    def _own_attribute(self, node: Expression) -> Name | None:
        if isinstance(node, expressions.Bare):
            return node.name
        if isinstance(node, expressions.Field) and self._is_at_hand(node.variable):
            return node.attribute
        return None

    @property
    def _variable(self) -> str | None:
        """Return the variable of the current event."""
        return None if self._at_hand is None else self._at_hand.variable

    def _is_at_hand(self, name: Name) -> bool:
        return name.text == self._variable

    def _may_bind(self, parameter: Name) -> bool:
        is_bound = parameter.text in self._scope.parameters
        return not is_bound and self._variable is not None

    def _warn_bound(self, node: syntax.Binding) -> None:
        name = node.parameter.text
        if name in self._scope.parameters:
            message = f"${name} is bound already, so it is compared here"
            hint = f"write {node.attribute.text} = ${name} to compare, or bind another name"
            self.findings.warning("bound-already", message, node.span, hint)

    # ------------------------------------------------------------ comparisons

    def own_condition(self, node: Expression) -> algebra.Predicate | None:
        """A comparison as TESLA's grammar has it."""
        if not isinstance(node, syntax.Comparisons):
            return None
        pairs = zip(node.operands, node.operators, node.operands[1:], strict=False)
        parts = [
            self.comparison(expressions.Comparison(operator, left, right, span=left.span.to(right.span)))
            for left, operator, right in pairs
        ]
        return parts[0] if len(parts) == 1 else algebra.And(tuple(parts))

    def comparison(self, node: expressions.Comparison) -> algebra.Predicate:
        """Lower a comparison whose left side, if any, reads the current event."""
        compared = super().comparison(node)
        if not isinstance(compared, algebra.Comparison):
            return compared
        if rules.reads_at_hand(compared.right) and not rules.reads_at_hand(compared.left):
            operator = _FLIPPED.get(compared.operator, compared.operator)
            return algebra.Comparison(operator, compared.right, compared.left)
        return compared

    # ------------------------------------------------------------ values

    def value(self, node: Expression) -> Typed:
        """Lower an expression; in brackets, a name alone is an attribute of the current event."""
        if not isinstance(node, expressions.Bare):
            return super().value(node)
        if self._at_hand is not None:
            return self._own(node.name)
        hint = f"say of which event: {next(iter(self._scope.events))}.{node.name.text}, or put a text in quotes"
        if node.name.text in self._scope.events:
            hint = f"say what of this event: {node.name.text}.attribute"
        self.findings.error("not-a-value", f"{node.name.text!r} alone is no value", node.span, hint)
        return UNKNOWN

    def field(self, node: expressions.Field) -> Typed:
        """Lower an attribute of a bound event, or of the current one under its name."""
        if self._is_at_hand(node.variable):
            return self._own(node.attribute)
        bound = self._scope.events.get(node.variable.text)
        if bound is None:
            self._report_unknown(node.variable)
            return UNKNOWN
        if self._at_hand is not None and self._at_hand.index is not None and bound.index > self._at_hand.index:
            message = f"{node.variable.text!r} is not bound yet"
            hint = f"move this condition into the brackets of {node.variable.text}, which comes later"
            self.findings.error("bound-later", message, node.variable.span, hint)
            return UNKNOWN
        families = self._types.families(bound.type.text, node.attribute, self.findings)
        return Typed(algebra.Attribute(node.attribute.text, node.variable.text), families)

    def own_value(self, node: Expression) -> Typed | None:
        """Parameters, attributes with their kind, aggregates."""
        match node:
            case syntax.Parameter(name):
                return self._parameter(name)
            case syntax.Typed():
                return self._typed(node)
            case syntax.Aggregate():
                return self._aggregate(node)
        return None

    def _own(self, attribute: Name, variable: str | None = None) -> Typed:
        """Return an attribute of the current event; with a variable, as read where the event is no longer current."""
        assert self._at_hand is not None
        families = self._types.families(self._at_hand.type.text, attribute, self.findings)
        return Typed(algebra.Attribute(attribute.text, variable), families)

    def _typed(self, node: syntax.Typed) -> Typed:
        kind = kind_named(node.kind, self.findings)
        if self._at_hand is None:
            hint = "a kind in brackets stands before an attribute in the brackets of an event"
            self.findings.error("misplaced-kind", "there is no event here whose attribute this is", node.span, hint)
            return UNKNOWN
        value, families = self._own(node.attribute)
        if kind is None:
            return Typed(value, families)
        if families is not None and kind.family not in families:
            known = " or ".join(sorted(families))
            message = f"{node.attribute.text!r} is declared as {known}, not as {node.kind.text}"
            self.findings.error("type-mismatch", message, node.span)
        return Typed(value, frozenset({kind.family}))

    def _parameter(self, name: Name) -> Typed:
        bound = self._scope.parameters.get(name.text)
        if bound is None:
            self._report_unbound(name)
            return UNKNOWN
        if self._extents is None and rules.summaries(bound.value):
            self._refuse_aggregate(name.span)
            return UNKNOWN
        match bound.value:
            case algebra.Attribute(attribute, str(variable)) if variable == self._variable:
                return Typed(algebra.Attribute(attribute), bound.families)
        return bound

    def _report_unbound(self, name: Name) -> None:
        span = bindings_in(self._scope.rule).get(name.text)
        near = did_you_mean(f"${name.text}", [f"${known}" for known in self._scope.parameters]) or ""
        if span is not None and span.start > name.span.start:
            line = self.findings.source.location(span.start)[0]
            hint = f"it is bound later, in line {line}: move that before this"
        elif near.startswith("did"):
            hint = near
        else:
            hint = f"bind it in the brackets of an event that is selected before: A(attribute = ${name.text})"
        self.findings.error("unbound-parameter", f"${name.text} is not bound here", name.span, hint)

    def _report_unknown(self, variable: Name) -> None:
        if self._at_hand is None or variable.text != self._at_hand.type.text:
            self._scope.report_unknown(variable, self.findings)
            return
        hint = "write the attribute alone: in brackets it is one of this event"
        self.findings.error("unknown-variable", f"nothing is called {variable.text!r} here", variable.span, hint)

    # ------------------------------------------------------------ aggregates

    def _refuse_aggregate(self, span: Span) -> None:
        hint = "an aggregate stands in a condition of its own after `and`, or in `where`"
        self.findings.error("misplaced-aggregate", "an aggregate does not select events", span, hint)

    def _aggregate(self, node: syntax.Aggregate) -> Typed:
        if self._extents is None:
            self._refuse_aggregate(node.span)
            return UNKNOWN
        extent = self._extents(node.extent, node.span)
        inner = RuleConditions(self._scope, self._types, self.findings, AtHand(node.type))
        events = inner.events(node.constraints)
        if node.attribute is None and node.function != "COUNT":
            name = node.function.capitalize()
            hint = f"write {name}({node.type.text}(…).attribute …)"
            self.findings.error("no-attribute", f"{name} needs an attribute", node.span, hint)
            return UNKNOWN
        if node.attribute is not None:
            families = self._types.families(node.type.text, node.attribute, self.findings)
            if node.function != "COUNT" and families is not None and "number" not in families:
                message = f"{node.function.capitalize()} needs numbers; {node.attribute.text!r} is none"
                self.findings.error("type-mismatch", message, node.attribute.span)
        if extent is None:
            return UNKNOWN
        attribute = None if node.attribute is None else node.attribute.text
        return Typed(rules.Summary(node.function, events, attribute, extent), NUMBER)


def _is_constant(node: Expression) -> bool:
    """Whether nothing but constants is written: no name that was reported already."""
    return all(
        isinstance(part, syntax.Comparisons | expressions.Literal | expressions.Arithmetic | expressions.Negative)
        for part in node.walk()
    )
