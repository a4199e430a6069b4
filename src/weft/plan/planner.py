"""From the algebra to operators: an automaton per regular query, one graph for all composite ones, tables for rules."""

from __future__ import annotations

from weft.algebra.composites import CompositeQuery
from weft.algebra.patterns import Event as EventPattern
from weft.algebra.patterns import Other, Repeat, Sequence
from weft.algebra.predicates import Attribute
from weft.algebra.query import Consume, Program, Query, Strategy
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.plan.graph import build_graph, lane_key, source_types
from weft.plan.operators import AutomatonOp, GraphOp, Lanes, Plan, RuleOp, SituationOp
from weft.plan.rules import rule_columns, rule_lanes
from weft.plan.situations import situation_columns, situation_lanes, situation_types

Planned = Query | CompositeQuery | SituationQuery | Rule


def plan(program: Program) -> Plan:
    """Choose operators for every query of a program."""
    queries = program.queries
    composites = [query for query in queries if isinstance(query, CompositeQuery)]
    columns = sorted({name for query in queries for name in _columns_of(query)})
    return Plan(
        program,
        tuple(map(_operator, queries)),
        (*_plan_lanes(queries), *situation_lanes(program), *rule_lanes(program)),
        tuple(columns),
        _relevant_types(queries),
        build_graph(composites) if composites else None,
    )


def _operator(query: Planned) -> AutomatonOp | GraphOp | SituationOp | RuleOp:
    if isinstance(query, Rule):
        return RuleOp(query)
    if isinstance(query, SituationQuery):
        return SituationOp(query)
    return GraphOp(query) if isinstance(query, CompositeQuery) else AutomatonOp(query)


def _plan_lanes(queries: tuple[Planned, ...]) -> tuple[Lanes, ...]:
    groups: dict[tuple[tuple[tuple[str, ...], ...], str], list[int]] = {}
    for number, query in enumerate(queries):
        if isinstance(query, Query | CompositeQuery):
            groups.setdefault(_lane_key(query), []).append(number)
    return tuple(Lanes(key, tuple(numbers), reason) for (key, reason), numbers in groups.items())


def _lane_key(query: Query | CompositeQuery) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The key a query can be split by, and why."""
    if isinstance(query, CompositeQuery):
        name = lane_key(query.pattern)
        if name is None:
            return (), "one lane: no equality ties all variables together"
        return ((name,),), f"by key [{name}], which is equal in all variables"
    if not query.partition:
        return (), "one lane: no PARTITION BY"
    if query.consume is Consume.ANY:
        return (), "one lane: CONSUME BY ANY looks at all partitions"
    if query.window is not None and query.window.unit == "attribute":
        return (), f"one lane: the order of [{query.window.attribute}] is that of all partitions"
    parts = ", ".join(f"[{', '.join(part)}]" for part in query.partition)
    return query.partition, f"by key {parts}"


def _columns_of(query: Planned) -> set[str]:
    """The attributes a query reads."""
    if isinstance(query, SituationQuery):
        return situation_columns(query)
    if isinstance(query, Rule):
        return rule_columns(query)
    names = {node.name for node in query.walk() if isinstance(node, Attribute)}
    if isinstance(query, CompositeQuery):
        return names
    names.update(name for part in query.partition for name in part)
    names.update(name for selected in query.selected or () for name in selected.attributes)
    if query.window is not None and query.window.attribute is not None:
        names.add(query.window.attribute)
    return names


def _relevant_types(queries: tuple[Planned, ...]) -> frozenset[str] | None:
    """The types whose events matter, None when any event may: it can break contiguity, fill a NOT, or move a window."""
    types: set[str] = set()
    for query in queries:
        if isinstance(query, Rule):
            types.update(query.types)
            continue
        if isinstance(query, CompositeQuery | SituationQuery):
            own = source_types(query.pattern) if isinstance(query, CompositeQuery) else situation_types(query)
            if own is None:
                return None
            types |= own
            continue
        if query.strategy is Strategy.STRICT or (query.window is not None and query.window.unit == "attribute"):
            return None
        for node in query.pattern.walk():
            if isinstance(node, Other) or (isinstance(node, Sequence | Repeat) and node.contiguous):
                return None
            if isinstance(node, EventPattern):
                types.add(node.type)
    return frozenset(types)
