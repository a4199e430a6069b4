"""Reports of the optimiser, as text and as JSON: rewrites with costs, refused rewrites, and the statistics used."""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.analysis.dependencies import dependencies
from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery, composites_in
from weft.algebra.query import Query
from weft.algebra.rules import Rule
from weft.algebra.situations import Situation
from weft.algebra.text.composites import in_one_line
from weft.algebra.text.program import to_text
from weft.optimizer.cost.model import cost_of, costs_of
from weft.optimizer.cost.profiles import Profile
from weft.optimizer.trace import QueryTrace, Rewrite, Trace
from weft.source import SourceText, Span
from weft.statistics import DEFAULT_RATE, Statistics
from weft.tree import Node

Json = dict[str, object]


def trace_json(trace: Trace) -> Json:
    """A trace as JSON values."""
    return {
        "queries": [_query_json(one, trace) for one in trace.queries],
        "cost": dict(zip(("before", "after"), _together(trace), strict=True)),
        "statistics": statistics_json(trace),
        "remarks": [*_assumed(trace), *trace.remarks],
    }


def trace_text(trace: Trace) -> str:
    """The rewritten program, and how it came about."""
    parts = [
        to_text(trace.program).rstrip(),
        _section("rules applied", rewrite_lines(trace)) or "rules applied:\nno rule applies",
        _section("cost, in occurrences and events looked at per second", _cost_lines(trace)),
        _section("left as written", refusal_lines(trace)),
        _section("statistics", _statistics_lines(trace)),
    ]
    return "\n\n".join(part for part in parts if part)


def statistics_json(trace: Trace) -> Json:
    """Return the statistics that were used, and the defaults assumed for unknown ones."""
    used = trace.statistics.to_json()
    rates = dict(used["rates"])  # type: ignore[call-overload]
    for type_ in _types(trace):
        rates.setdefault(type_, {"value": DEFAULT_RATE, "origin": "default"})
    return {**used, "rates": dict(sorted(rates.items()))}


# ---------------------------------------------------------------- one query


def _query_json(one: QueryTrace, trace: Trace) -> Json:
    source = SourceText(trace.program.text)
    return {
        "name": one.query.name,
        "cost": {"before": one.cost_before, "after": one.cost_after},
        "rewrites": [
            {
                "rule": rewrite.rule,
                "before": shown(rewrite.before),
                "after": shown(rewrite.after),
                "cost": _rewrite_cost(rewrite, one),
            }
            for rewrite in one.rewrites
        ],
        "left_alone": [
            {
                "reason": refusal.reason,
                "condition": None if refusal.condition is None else to_text(refusal.condition),
                "span": _span_json(one.span_of(refusal), source),
            }
            for refusal in one.refusals
        ],
        "pattern": _pattern(one),
        "operators": [
            {"pattern": shown(pattern), **profile._asdict()} for pattern, profile in _operators(one, trace.statistics)
        ],
    }


def _rewrite_cost(rewrite: Rewrite, one: QueryTrace) -> Json:
    """What a rewrite changed; a rule that always pays, and is not counted, leaves the cost of the query."""
    if rewrite.cost_before is None or rewrite.cost_after is None:
        return {"before": one.cost_before, "after": one.cost_before}
    return {"before": rewrite.cost_before, "after": rewrite.cost_after}


def _together(trace: Trace) -> tuple[float, float]:
    """What all queries cost, as written and as they run: an operator that several share counts once."""
    totals = []
    for written in (True, False):
        queries = [one.written if written else one.query for one in trace.queries]
        patterns = [query.pattern for query in composites_in(queries)]
        others = sum(
            one.cost_before if written else one.cost_after
            for one in trace.queries
            if not isinstance(one.query, CompositeQuery)
        )
        totals.append(others + cost_of(patterns, trace.statistics))
    return totals[0], totals[1]


def shown(node: Node) -> str:
    """A pattern in one line where that can be, else as indented text."""
    if isinstance(node, Situation):
        early = f", {node.split} worked out early" if node.split else ""
        shared = f", the first {node.shared} slots found once" if node.shared else ""
        return f"{node.kind}({dependencies(node).to_text()}){early}{shared}"
    if isinstance(node, Rule):
        return ", ".join([f"at {node.terminator.variable}", *(f"{one.pick} {one.variable}" for one in node.lookbacks)])
    return in_one_line(node, to_text) if isinstance(node, Composite) else to_text(node).rstrip()


def _pattern(one: QueryTrace) -> str:
    query = one.query
    return shown(query.pattern) if isinstance(query, CompositeQuery | Query) else to_text(query).rstrip()


def _operators(one: QueryTrace, statistics: Statistics) -> list[tuple[Composite, Profile]]:
    return list(costs_of(one.query, statistics)) if isinstance(one.query, CompositeQuery) else []


def _span_json(span: Span | None, source: SourceText) -> Json | None:
    if span is None:
        return None
    line, column = source.location(min(span.start, len(source.text)))
    return {"start": span.start, "end": span.end, "line": line, "column": column}


# ---------------------------------------------------------------- lines


def _section(title: str, lines: Iterator[str]) -> str:
    found = list(lines)
    return "\n".join([f"{title}:", *found]) if found else ""


def rewrite_lines(trace: Trace) -> Iterator[str]:
    """What was done, with costs."""
    for one in trace.queries:
        for rewrite in one.rewrites:
            if rewrite.cost_before is None or rewrite.cost_after is None:
                yield f"  {one.query.name}: {rewrite.rule}"
                continue
            yield f"  {one.query.name}: {rewrite.rule}, {rewrite.cost_before:,.6g} -> {rewrite.cost_after:,.6g}"
            before, after = shown(rewrite.before), shown(rewrite.after)
            if "\n" not in before:
                yield f"      from {before}"
                yield f"      to   {after}"


def _cost_lines(trace: Trace) -> Iterator[str]:
    for one in trace.queries:
        yield f"  {one.query.name}: {one.cost_before:,.6g} as written, {one.cost_after:,.6g} as it runs"
        for pattern, profile in _operators(one, trace.statistics):
            if not isinstance(pattern, CompositeEvent):
                yield f"      {profile.work:>12,.6g}  {shown(pattern)}, {profile.rate:,.6g} per second"
    before, after = _together(trace)
    if len(trace.queries) > 1:
        yield f"  all together, shared operators once: {before:,.6g} as written, {after:,.6g} as they run"


def refusal_lines(trace: Trace) -> Iterator[str]:
    """What was left as it was written, and why."""
    source = SourceText(trace.program.text)
    for one in trace.queries:
        for refusal in one.refusals:
            span = one.span_of(refusal)
            place = "" if span is None else ":".join(map(str, ("", *source.location(span.start))))
            condition = "" if refusal.condition is None else f": {to_text(refusal.condition)}"
            yield f"  {one.query.name}{place}: {refusal.reason}{condition}"


def _statistics_lines(trace: Trace) -> Iterator[str]:
    for type_ in _types(trace):
        value, origin = trace.statistics.rate(type_)
        yield f"  {type_}: {value:g} per second ({origin})"
    for text in sorted(trace.statistics.selectivity):
        figure = trace.statistics.fraction(text)
        if figure is not None:
            yield f"  {text}: {figure.value:g} ({figure.origin})"
    yield from (f"  {remark}" for remark in trace.remarks)


def _assumed(trace: Trace) -> Iterator[str]:
    for type_ in _types(trace):
        value, origin = trace.statistics.rate(type_)
        if origin == "default":
            yield f"the rate of {type_} is not known: {value:g} per second is assumed"


def _types(trace: Trace) -> list[str]:
    return sorted({type_ for query in trace.program.queries for type_ in query.reads})
