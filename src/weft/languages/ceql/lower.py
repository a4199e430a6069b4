"""From CEQL syntax to the algebra: every query checked, its formula turned into a pattern."""

from __future__ import annotations

from weft.algebra import patterns, query
from weft.algebra.predicates import Always, And
from weft.errors import Diagnostic, UsageError, did_you_mean
from weft.languages.ceql import doubts, syntax
from weft.languages.ceql.clauses import lower_limit, lower_partition, lower_span, lower_window
from weft.languages.ceql.counting import counted
from weft.languages.ceql.declarations import Schema, declared_catalog, given_catalog
from weft.languages.ceql.filters import FilterLowering
from weft.languages.ceql.scope import ANY_STREAM, NOTHING_DECLARED, Bindings, CeqlScope, Occurrence, scope_of
from weft.languages.ceql.selecting import SelectList
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.durations import TICKS
from weft.languages.findings import Findings
from weft.source import SourceText, Span

LANGUAGE = "ceql"


def lower(
    program: syntax.Program,
    source: SourceText,
    *,
    schema: Schema | None = None,
    time_unit: str = "ms",
    defined: Defined = NOTHING_DEFINED,
) -> tuple[query.Program, tuple[Diagnostic, ...]]:
    """The program in the algebra, with warnings; raises ProgramError with all errors that were found."""
    if time_unit not in TICKS:
        raise UsageError(f"there is no time unit {time_unit!r}; use one of {', '.join(TICKS)}")
    findings = Findings(source)
    declared = declared_catalog(program, findings)
    catalog = declared if declared != NOTHING_DECLARED else given_catalog(schema)
    if not program.queries:
        hint = "a query looks like this: SELECT * WHERE A ; B WITHIN 10 EVENTS"
        end = len(source.text.rstrip())
        findings.error("no-query", "there is no query in this text", Span(end, end), hint)
    queries = []
    for name, node in _named(program.queries, source.stem, findings):
        scope = scope_of(node.streams, catalog, declared=catalog is declared, findings=findings, defined=defined)
        queries.append(_QueryLowering(node, scope, time_unit, findings).lower(name))
    warnings = findings.conclude()
    return query.Program(LANGUAGE, tuple(queries), declared, source.text, time_unit), warnings


def _named(queries: tuple[syntax.Query, ...], stem: str, findings: Findings) -> list[tuple[str, syntax.Query]]:
    """Every query with its name; nameless ones are called after the file, numbered when there are several."""
    nameless = sum(1 for node in queries if node.name is None)
    named: list[tuple[str, syntax.Query]] = []
    taken: set[str] = set()
    number = 0
    for node in queries:
        if node.name is not None:
            name = node.name.text
        else:
            number += 1
            name = stem if nameless == 1 else f"{stem}_{number}"
        if name in taken:
            place = node.name or node
            hint = "give each query a unique name: QUERY name AS SELECT …"
            findings.error("duplicate-query", f"two queries are called {name!r}", place.span, hint)
        taken.add(name)
        named.append((name, node))
    return named


class _QueryLowering:
    """One query on its way to the algebra."""

    def __init__(self, node: syntax.Query, scope: CeqlScope, time_unit: str, findings: Findings) -> None:
        self._node = node
        self._time_unit = time_unit
        self._scope = scope
        self._findings = findings
        self._types: set[str] = set()  # of events that may be bound
        self._named: set[str] = set()  # those, and what NOT speaks of
        self._names: list[syntax.Name] = []
        self._filters = FilterLowering(scope, lambda: _variables(node.formula), time_unit, findings)

    def lower(self, name: str) -> query.Query:
        node = self._node
        for clause in node.extra:
            word = type(clause).__name__.upper()
            self._findings.error("clause-twice", f"a second {word} clause", clause.span, "a query has one of each")
        pattern, bound = self._formula(node.formula)
        if patterns.may_be_nothing(pattern):
            hint = "at least one event must come: leave out a ?, or write {1,…} for {0,…}"
            self._findings.error(
                "may-be-nothing", "this pattern is satisfied by nothing at all", node.formula.span, hint
            )
        self._warn_of_doubtful_names()
        window = self._window(pattern)
        doubts.warn(node, window, self._time_unit, self._findings)
        selected, computed = SelectList(self._scope, self._filters, bound, pattern, self._findings).lower(node)
        return query.Query(
            name,
            pattern,
            query.Strategy[node.strategy or "ALL"],
            selected,
            self._universe(),
            lower_partition(node.partition, self._scope, self._findings),
            window,
            self._consume(),
            lower_limit(node.limit, self._findings),
            computed=computed,
            session=self._session(),
            top=self._top(bound),
        )

    # ------------------------------------------------------------ formulas

    def _formula(self, node: syntax.Formula) -> tuple[patterns.Pattern, Bindings]:
        """The pattern of a formula, and what its variables are bound to."""
        match node:
            case syntax.Event():
                return self._event(node)
            case syntax.Negated():
                return self._negated(node), {}
            case syntax.Named(formula, name):
                pattern, bound = self._formula(formula)
                self._names.append(name)
                everything = frozenset(event for events in bound.values() for event in events)
                return patterns.Bind(pattern, name.text), _merged(bound, {name.text: everything})
            case syntax.Repeated(formula, contiguous):
                pattern, bound = self._formula(formula)
                return patterns.Repeat(pattern, contiguous), bound
            case syntax.Counted(formula):
                pattern, bound = self._formula(formula)
                return counted(node, pattern, self._findings), bound
            case syntax.Sequence(left, right, contiguous):
                (first, bound), (second, bound_right) = self._formula(left), self._formula(right)
                return patterns.Sequence(first, second, contiguous), _merged(bound, bound_right)
            case syntax.Either(left, right):
                (first, bound), (second, bound_right) = self._formula(left), self._formula(right)
                return patterns.Union(first, second), _merged(bound, bound_right)
            case syntax.Filtered(formula, condition):
                pattern, bound = self._formula(formula)
                return self._filters.apply(pattern, bound, condition), bound
        raise AssertionError(f"not a formula: {node!r}")

    def _event(self, node: syntax.Event) -> tuple[patterns.Pattern, Bindings]:
        stream, type_name = self._checked(node)
        self._types.add(type_name)
        event = patterns.Event(type_name, stream)
        return event, dict.fromkeys(event.names, frozenset({(stream, type_name)}))

    def _checked(self, node: syntax.Event) -> Occurrence:
        """The stream and type of an event, both reported when nothing of the kind is declared."""
        stream, type_name = node.occurrence
        self._named.add(type_name)
        scope = self._scope
        if scope.offered is not None:
            if node.stream is not None and stream and scope.streams and stream not in scope.streams:
                hint = did_you_mean(stream, scope.streams)
                self._findings.error("unknown-stream", f"{stream!r} is not in FROM", node.stream.span, hint)
            elif not scope.has((stream, type_name)):
                carrier = "" if stream is None else f" in stream {stream!r}"
                message = f"there is no event type {type_name!r}{carrier}"
                hint = scope.hint_for_type((stream, type_name))
                self._findings.error("unknown-type", message, node.type.span, hint)
        return stream, type_name

    def _warn_of_doubtful_names(self) -> None:
        for name in self._names:
            if name.text in self._types:
                message = f"{name.text!r} is an event type of this pattern too, and both are bound to {name.text!r}"
                self._findings.warning("name-of-type", message, name.span, "choose another name after AS")

    def _negated(self, node: syntax.Negated) -> patterns.Pattern:
        conditions = []
        inner = node.formula
        while isinstance(inner, syntax.Filtered):
            conditions.append(inner.condition)
            inner = inner.formula
        if not isinstance(inner, syntax.Event):
            message = "NOT(…) takes one event, with or without a FILTER"
            hint = "NOT(A) : NOT(B) says it of two; NOT(A FILTER A[…]) of one that looks so"
            self._findings.error("not-of-one-event", message, inner.span, hint)
            return patterns.Other("")
        event = self._checked(inner)
        wheres = tuple(self._filters.event_predicate(condition, event) for condition in reversed(conditions))
        where = Always() if not wheres else wheres[0] if len(wheres) == 1 else And(wheres)
        return patterns.Other(event[1], event[0], where)

    # ------------------------------------------------------------ the other clauses

    def _window(self, pattern: patterns.Pattern) -> query.Window | None:
        node = self._node
        if node.within is not None:
            window = lower_window(node.within, self._scope, self._time_unit, self._findings)
            if node.session is not None and window is not None and window.unit != "time":
                hint = "write a unit of time, as in WITHIN 10 MINUTES"
                self._findings.error("bad-window", "a session is bounded by a time", node.within.span, hint)
            return window
        if node.session is None and any(isinstance(p, patterns.Sequence | patterns.Repeat) for p in pattern.walk()):
            place = node.name.span if node.name else Span(node.span.start, node.span.start + len("SELECT"))
            message = "no WITHIN: partial matches are kept for ever"
            hint = "add WITHIN, for example WITHIN 1 HOUR or WITHIN 1000 EVENTS"
            self._findings.warning("no-window", message, place, hint)
        return None

    def _universe(self) -> tuple[tuple[str, str], ...] | None:
        """What exists; a session is made of the types that its pattern names."""
        if self._scope.universe is None and self._node.session is not None:
            return tuple((ANY_STREAM, name) for name in sorted(self._named))
        return self._scope.universe

    def _session(self) -> int | None:
        clause, node = self._node.session, self._node
        if clause is not None:
            others = (node.strategy not in (None, "ALL"), node.consume, node.limit)
            if any(others):
                hint = "leave out the strategy, CONSUME BY and LIMIT; ORDER BY … LIMIT … EVERY goes with it"
                message = "a session is matched as a whole, so there is nothing to choose or to consume"
                self._findings.error("session-alone", message, clause.span, hint)
        return None if clause is None else lower_span(clause.spans, clause.span, self._time_unit, self._findings)

    def _top(self, bound: Bindings) -> query.Top | None:
        clause = self._node.top
        if clause is None:
            return None
        every = lower_span(clause.spans, clause.span, self._time_unit, self._findings)
        if clause.amount < 1 or not isinstance(clause.amount, int):
            self._findings.error("bad-limit", "LIMIT … EVERY takes a whole number from 1", clause.span)
            return None
        value = self._filters.computed(clause.value, bound)
        return None if every is None else query.Top(value, clause.amount, every, clause.ascending)

    def _consume(self) -> query.Consume:
        clause = self._node.consume
        if clause is None:
            return query.Consume.NONE
        found = query.Consume.__members__.get(clause.what.text.upper())
        if found is None:
            hint = "CONSUME BY takes ANY, PARTITION or NONE"
            self._findings.error("unknown-policy", f"there is no {clause.what.text!r}", clause.what.span, hint)
        return found or query.Consume.NONE


def _merged(left: Bindings, right: Bindings) -> Bindings:
    if left.keys().isdisjoint(right):
        return {**left, **right}
    return {name: left.get(name, frozenset()) | right.get(name, frozenset()) for name in {**left, **right}}


def _variables(formula: syntax.Formula) -> frozenset[str]:
    """All variables of a formula: AS names, types, and `stream>type`."""
    found = set()
    for node in formula.walk():
        if isinstance(node, syntax.Named):
            found.add(node.name.text)
        elif isinstance(node, syntax.Event):
            found.add(node.type.text)
            if node.stream is not None:
                found.add(f"{node.stream.text}>{node.type.text}")
    return frozenset(found)
