"""From EQL syntax to the algebra: every query checked, its pattern turned into operators with their conditions."""

from __future__ import annotations

from weft.algebra import composites
from weft.algebra.endpoints import Input, Output
from weft.algebra.query import Program
from weft.algebra.terms import mentioned
from weft.errors import Diagnostic, did_you_mean
from weft.languages import syntax as expressions
from weft.languages.bounds import warn_of_no_bound
from weft.languages.ceql.declarations import Schema, given_catalog
from weft.languages.counts import Count, bounds_of
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.durations import ticks_of
from weft.languages.eql import syntax
from weft.languages.eql.conditions import EqlConditions, lower_conditions
from weft.languages.eql.placement import PlacedPattern, normalised, places_of, put
from weft.languages.eql.scope import EqlScope, declared_catalog, scope_of
from weft.languages.findings import Findings
from weft.languages.output_fields import Selected, output_fields
from weft.languages.syntax import Name
from weft.schema import Catalog
from weft.source import SourceText, Span

LANGUAGE = "eql"


def lower(
    program: syntax.Program,
    source: SourceText,
    *,
    schema: Schema | None = None,
    time_unit: str = "ms",
    defined: Defined = NOTHING_DEFINED,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The program in the algebra, with warnings; raises ProgramError with all errors that were found."""
    findings = Findings(source)
    declared = declared_catalog(program, findings)
    catalog = declared if declared != Catalog() else given_catalog(schema)
    types = {type_.name: type_ for type_ in catalog.all_types()} or None
    sinks = _sinks(program, findings)
    if not program.queries:
        hint = "a query looks like this: SELECT * FROM A a ; B b WHERE FILTER(a.id = b.id)"
        findings.error("no-query", "there is no query in this text", program.span, hint)
    queries, outputs = [], []
    for number, node in enumerate(program.queries, start=1):
        name = source.stem if len(program.queries) == 1 else f"{source.stem}_{number}"
        queries.append(_QueryLowering(node, scope_of(node, types, defined, findings), time_unit, findings).lower(name))
        outputs += [Output(name, sinks[sink.text]) for sink in node.sinks if _is_sink(sink, sinks, findings)]
    warnings = findings.conclude()
    inputs = tuple(
        Input(node.type.text, node.uri, None if node.rate is None else float(node.rate))
        for node in program.definitions
        if isinstance(node, syntax.Source)
    )
    found = tuple(query for query in queries if query is not None)
    return Program(LANGUAGE, found, declared, source.text, time_unit, inputs, tuple(outputs)), warnings


def _sinks(program: syntax.Program, findings: Findings) -> dict[str, str]:
    sinks: dict[str, str] = {}
    for node in program.definitions:
        if not isinstance(node, syntax.Sink):
            continue
        if node.name.text in sinks:
            findings.error("duplicate-sink", f"a second sink {node.name.text!r}", node.name.span)
        sinks[node.name.text] = node.uri
    return sinks


def _is_sink(name: Name, sinks: dict[str, str], findings: Findings) -> bool:
    if name.text in sinks:
        return True
    hint = did_you_mean(name.text, sinks) or f"define it: SINK {name.text} TO 'uri'"
    findings.error("unknown-sink", f"there is no sink {name.text!r}", name.span, hint)
    return False


def _bound_of(variables: tuple[str, ...]) -> str:
    return f"say how long a match takes at most: ({variables[0]}, {variables[-1]}) OCCURS WITHIN 1 hour"


class _QueryLowering:
    """One query on its way to the algebra."""

    def __init__(self, node: syntax.Query, scope: EqlScope, time_unit: str, findings: Findings) -> None:
        self._node = node
        self._scope = scope
        self._time_unit = time_unit
        self._findings = findings

    def lower(self, name: str) -> composites.CompositeQuery | None:
        """The query in the algebra, None when a variable is used twice: then nothing more can be said."""
        conditions = lower_conditions(self._node, self._scope, self._time_unit, self._findings)
        fields = self._fields()
        if len(self._scope.leaves) < sum(isinstance(part, syntax.Leaf) for part in self._node.pattern.walk()):
            return None
        root = places_of(normalised(self._node.pattern))
        for condition in conditions:
            put(condition, root, self._findings)
        pattern = self._pattern(root)
        for node, field in fields:
            for variable in sorted(mentioned(field.value).difference(pattern.variables)):
                message = f"{variable!r} is part of what must not happen, so no match has it"
                self._findings.error("unreadable-variable", message, node.span)
                return None
        place = Span(self._node.span.start, self._node.span.start + len("SELECT"))
        warn_of_no_bound(pattern, place, _bound_of(pattern.variables), self._findings)
        spans = tuple((condition.predicate, condition.span) for condition in conditions)
        shown = tuple(field for _, field in fields)
        return composites.CompositeQuery(name, pattern, shown, spans=spans, all_fields=self._node.selected is None)

    def _pattern(self, place: PlacedPattern) -> composites.Composite:
        where, among = tuple(place.where), tuple(place.among)
        below = [self._pattern(operand) for operand in place.operands]
        match place.pattern:
            case syntax.Leaf(type_):
                return composites.CompositeEvent(type_.text, place.pattern.variable.text, where)
            case syntax.Next():
                return composites.CompositeSequence(below[0], below[1], "next", where, among)
            case syntax.Repeated(_, count):
                return composites.CompositeRepeat(below[0], "next", where, among, self._lengths(below[0], count))
            case syntax.Union():
                union = composites.CompositeUnion(below[0], below[1])
                return composites.CompositeFilter(union, where) if where else union
            case syntax.Without():
                return composites.Without(below[0], below[1], "between", where)
            case syntax.Timed(_, duration):
                ticks = ticks_of(duration.amount, duration.unit, self._time_unit, self._findings)
                return composites.After(below[0], ticks)
        raise AssertionError(f"not a pattern: {place.pattern!r}")

    def _lengths(self, pattern: composites.Composite, count: Count | None) -> composites.Lengths:
        """What a count allows; runs do not show how many runs they are made of."""
        if count is None:
            return composites.Lengths()
        if any(isinstance(part, composites.CompositeRepeat) for part in pattern.walk()):
            message = "runs of runs are not counted: what a run is made of does not show where one ends"
            self._findings.error("bad-count", message, count.span, "write + here, or count the events inside")
            return composites.Lengths()
        return composites.Lengths(*bounds_of(count, self._findings))

    def _fields(self) -> list[Selected]:
        """The selected fields, each once, as written and in the algebra."""
        fields: list[expressions.Expression] = []
        for node in self._node.selected or ():
            calls = [part for part in node.walk() if isinstance(part, syntax.Call)]
            if isinstance(node, expressions.Bare):
                hint = f"write {node.name.text}.attribute; SELECT * reports the events themselves"
                self._findings.error("not-a-field", "fields are selected, not events", node.span, hint)
            elif calls:
                message = f"{calls[0].function} stands in conditions only"
                self._findings.error("not-a-value", message, calls[0].span, "select fields, and calculate with them")
            else:
                fields.append(node)
        return output_fields(fields, EqlConditions(self._scope, self._time_unit, self._findings), self._findings)
