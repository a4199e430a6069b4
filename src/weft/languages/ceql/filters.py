"""FILTER clauses, lowered: filters on one variable, filters over several, and filters on a variable as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from weft.algebra import patterns
from weft.algebra import predicates as algebra
from weft.errors import did_you_mean
from weft.languages.ceql import syntax
from weft.languages.ceql.cooccurrence import bound_together
from weft.languages.ceql.expressions import MONOTONE, AttributeOwner, Expressions, Outside
from weft.languages.ceql.scope import Bindings, CeqlScope, Occurrence
from weft.languages.findings import Findings
from weft.languages.limits import require_alternatives

Test = syntax.Comparison | syntax.Like | syntax.In | syntax.InRange | syntax.IsNull


@dataclass(frozen=True)
class _Target:
    """A variable of a filter, and the stream the filter must restrict it to where the pattern does not."""

    owner: AttributeOwner
    stream: str | None = None


class FilterLowering:
    """Lowers the filters of one query. `everywhere` gives all variables of its formula."""

    def __init__(
        self, scope: CeqlScope, everywhere: Callable[[], frozenset[str]], time_unit: str, findings: Findings
    ) -> None:
        self._scope = scope
        self._time_unit = time_unit
        self._everywhere = everywhere
        self._findings = findings
        self._expressions = Expressions(scope, time_unit, findings)

    def apply(self, pattern: patterns.Pattern, bound: Bindings, condition: syntax.Expression) -> patterns.Pattern:
        """Return the filtered pattern: AND applies filters in order, OR is the union of the two filtered patterns."""
        require_alternatives(condition)
        return self._applied(pattern, bound, condition)

    def _applied(self, pattern: patterns.Pattern, bound: Bindings, condition: syntax.Expression) -> patterns.Pattern:
        match condition:
            case syntax.And(left, right):
                return self._applied(self._applied(pattern, bound, left), bound, right)
            case syntax.Or(left, right):
                filtered = patterns.Union(self._applied(pattern, bound, left), self._applied(pattern, bound, right))
                self._warn_without_effect(filtered, pattern, condition)
                return filtered
            case syntax.Of() | syntax.Comparison() | syntax.Like() | syntax.In() | syntax.InRange() | syntax.IsNull():
                if (unary := self._unary(bound, condition)) is not None:
                    return patterns.Filter(pattern, *unary)
                for nary in self._nary(bound, condition):
                    pattern = patterns.Correlate(pattern, nary)
            case syntax.Call(function, variable, name) if function in MONOTONE:
                owner = self._labelled(variable, bound)
                if name is None:
                    message = f"{function} needs an attribute"
                    hint = f"write {function}({variable.text}[attribute])"
                    self._findings.error("aggregate-without-attribute", message, condition.span, hint)
                    return pattern
                self._expressions.families_of(name, owner)
                attribute = algebra.Attribute(name.text, owner.name)
                rising = function == "INCREASING"
                monotone = algebra.Monotone("INCREASING" if rising else "DECREASING", attribute)
                return patterns.Correlate(pattern, monotone)
            case _:
                self._refuse(condition)
        return pattern

    def event_predicate(self, condition: syntax.Expression, event: Occurrence) -> algebra.Predicate:
        """The filter inside NOT(event FILTER …), which speaks of that one event."""
        match condition:
            case syntax.And(left, right):
                return algebra.And((self.event_predicate(left, event), self.event_predicate(right, event)))
            case syntax.Or(left, right):
                return algebra.Or((self.event_predicate(left, event), self.event_predicate(right, event)))
        stream, type_name = event
        names = [type_name] if stream is None else [type_name, f"{stream}>{type_name}"]
        alone = FilterLowering(self._scope, lambda: frozenset(names), self._time_unit, self._findings)
        bound = dict.fromkeys(names, frozenset({event}))
        if isinstance(condition, syntax.Of | Test) and (unary := alone._unary(bound, condition)) is not None:
            return unary[1]
        message = "NOT(…) speaks of one event, so its filter can only be about that event"
        hint = f"write a predicate on {type_name!r} alone: {type_name}[…]"
        self._findings.error("filter-in-not", message, condition.span, hint)
        return algebra.Always()

    # ------------------------------------------------------------ one variable, several variables

    def _unary(self, bound: Bindings, node: syntax.Of | Test) -> tuple[str, algebra.Predicate] | None:
        """The variable and predicate of a filter on one variable; None when it is not one."""
        terms = [node] if isinstance(node, syntax.Of) else list(_terms(node))
        if any(isinstance(term, syntax.Call) for term in terms) or len({term.variable.text for term in terms}) != 1:
            return None
        target = self._target(terms[0].variable, bound)
        predicate = self._predicate(node, target.owner)
        if target.stream is not None:
            of_another = algebra.Comparison("<>", algebra.Attribute("stream"), algebra.Literal(target.stream))
            predicate = algebra.Or((of_another, predicate))
        return target.owner.name, predicate

    def _predicate(self, node: syntax.Of | Test, owner: AttributeOwner) -> algebra.Predicate:
        place = Outside(lambda _: owner)
        match node:
            case syntax.Of(_, body, ()):
                return self._expressions.predicate(body, owner)
            case syntax.Comparison(operator, left, right):
                sides = self._expressions.value(left, place), self._expressions.value(right, place)
                return self._expressions.comparison(operator, *sides, node)
            case syntax.Of():
                self._expressions.value(node, place)
                return algebra.Always()
            case _:
                return self._expressions.test(node, place)

    def _nary(self, bound: Bindings, node: syntax.Of | Test) -> Iterator[algebra.Predicate]:
        """The comparisons that a filter over several variables, or with aggregates, consists of."""
        place = Outside(lambda variable: self._labelled(variable, bound), _example(bound))
        value = self._expressions.value
        match node:
            case syntax.Comparison(operator, left, right):
                if _is_constant(node):
                    self._refuse(node)
                comparison = self._expressions.comparison(operator, value(left, place), value(right, place), node)
                yield from self._checked(node, _without_abs(comparison))
            case syntax.InRange(operand, negated=False):
                bounds = self._expressions.range_bounds(node, value(operand, place), place)
                yield from self._checked(node, bounds)
            case syntax.Like() | syntax.In() | syntax.InRange() | syntax.IsNull():
                message = "over several variables or an aggregate, a filter must be one comparison"
                hint = "use = <> < <= > >= or IN RANGE, and join comparisons with AND and OR"
                self._findings.error("filter-too-complex", message, node.span, hint)

    def _checked(
        self, node: syntax.Expression, found: tuple[algebra.Comparison, ...]
    ) -> tuple[algebra.Comparison, ...]:
        """Functions take values of one event here: what they are worth is known when the event comes."""
        for part in (part for comparison in found for part in comparison.walk() if isinstance(part, algebra.Call)):
            whole = any(isinstance(below, algebra.Aggregate) for below in part.walk())
            if whole or len(algebra.variables_of(part)) != 1:
                message = f"{part.function} of several events cannot be compared in a filter"
                hint = "apply it to attributes of one variable; ABS(…) may be below a bound: ABS(a[x] - b[x]) < 2"
                self._findings.error("filter-too-complex", message, node.span, hint)
        return found

    def computed(self, node: syntax.Expression, bound: Bindings) -> algebra.Expression:
        """A value over the variables of a match."""
        place = Outside(lambda variable: self._labelled(variable, bound), _example(bound))
        return self._expressions.value(node, place).value

    # ------------------------------------------------------------ variables

    def _labelled(self, variable: syntax.Variable, bound: Bindings) -> AttributeOwner:
        """A variable of an n-ary filter: its attributes say whose they are."""
        target = self._target(variable, bound)
        if target.stream is not None:
            message = f"{variable.text!r} is not bound by the pattern, which says {variable.name.text!r} only"
            hint = f"write {variable.text} in the pattern, or bind a variable with AS"
            self._findings.error("unknown-variable", message, variable.span, hint)
        return replace(target.owner, label=target.owner.name)

    def _target(self, variable: syntax.Variable, bound: Bindings) -> _Target:
        stream, name = (None if variable.stream is None else variable.stream.text), variable.name.text
        if stream is not None and (None, name) in bound.get(name, ()):
            # The pattern says `name` of whatever stream: the filter itself has to tell the streams apart.
            owner = AttributeOwner(name, frozenset({(stream, name)}))
            if self._scope.streams and stream not in self._scope.streams:
                hint = did_you_mean(stream, self._scope.streams)
                self._findings.error("unknown-stream", f"{stream!r} is not in FROM", variable.span, hint)
                return _Target(replace(owner, known=False))
            return _Target(owner, None if self._scope.only_stream_with(name) == stream else stream)
        if variable.text in bound:
            return _Target(AttributeOwner(variable.text, bound[variable.text]))
        self._report_unbound(variable, bound)
        return _Target(AttributeOwner(variable.text, frozenset(), known=False))

    def _report_unbound(self, variable: syntax.Variable, bound: Bindings) -> None:
        everywhere = self._everywhere()
        if variable.text in everywhere:
            message = f"{variable.text!r} is not bound in what is filtered here, so this filter has no effect"
            hint = "put the FILTER behind the part that binds it, or at the end"
            self._findings.warning("filter-without-effect", message, variable.span, hint)
        else:
            message = f"nothing is called {variable.text!r} here"
            near = did_you_mean(variable.text, bound.keys() | everywhere)
            self._findings.error("unknown-variable", message, variable.span, near)

    # ------------------------------------------------------------ complaints

    def _warn_without_effect(self, filtered: patterns.Union, pattern: patterns.Pattern, node: syntax.Or) -> None:
        """A filter holds of a variable without events, so OR over two that never meet keeps every match."""
        match filtered:
            case patterns.Union(patterns.Filter(a, one), patterns.Filter(b, two)) if a is b is pattern and one != two:
                if {one, two} not in bound_together(pattern, frozenset({one, two})):
                    message = f"no match binds both {one!r} and {two!r}, so this OR keeps every match"
                    hint = "a filter is true of a variable without events: join the two with AND"
                    self._findings.warning("filter-without-effect", message, node.span, hint)

    def _refuse(self, node: syntax.Expression) -> None:
        match node:
            case syntax.Not():
                message = "NOT is not allowed before a filter"
                hint = "put it inside the brackets, x[NOT …], or turn the comparison round (<> for =, >= for <)"
                self._findings.error("not-outside-brackets", message, node.span, hint)
            case syntax.Attribute(name):
                message = f"{name.text!r} is no filter"
                hint = f"write {name.text}[…]; if it is a pattern, put the filtered part before it in parentheses"
                self._findings.error("not-a-condition", message, node.span, hint)
            case syntax.Call(function):
                message = f"{function} is a value, not a condition"
                self._findings.error("not-a-condition", message, node.span, f"compare it: {function}(…) > 2")
            case _:
                message = "a filter must be about at least one variable"
                hint = "write x[predicate], x[attribute] = y[attribute] or COUNT(x) > 2"
                self._findings.error("not-a-condition", message, node.span, hint)


def _without_abs(comparison: algebra.Comparison) -> tuple[algebra.Comparison, ...]:
    """`ABS(v) < c` as `v < c` and `-v < c`, where v is of several events."""
    left, operator, right = comparison.left, comparison.operator, comparison.right
    if operator in (">", ">="):
        left, operator, right = right, "<" if operator == ">" else "<=", left
    match left:
        case algebra.Call("ABS", (value,)) if operator in ("<", "<=") and len(algebra.variables_of(value)) != 1:
            signs = (value, algebra.Negative(value))
            return tuple(algebra.Comparison(operator, signed, right) for signed in signs)
    return (comparison,)


def _example(bound: Bindings) -> str:
    """One of the variables, preferably one that was named with AS."""
    named = (name for name, events in bound.items() if name not in {type_name for _, type_name in events})
    return next(named, None) or next(iter(bound), "x")


def _is_constant(node: syntax.Expression) -> bool:
    return not any(isinstance(part, syntax.Of | syntax.Call | syntax.Attribute) for part in node.walk())


def _terms(node: syntax.Expression) -> Iterator[syntax.Of | syntax.Call]:
    """The variables' terms in a filter, those inside brackets excepted."""
    for child in node.children():
        if isinstance(child, syntax.Of | syntax.Call):
            yield child
        else:
            yield from _terms(cast(syntax.Expression, child))
