"""State that may be evicted when memory is exhausted: the oldest partial matches, where that loses matches and adds
none.

Shedding an arbitrary event is safe only if nothing depends on it (`shedding`). Evicting the oldest is safe in more
cases. A partial match in an automaton, or on one side of a join, is a prefix of matches: without it only these are
missed. Rules that look back at each or the last event stay correct, since all remaining events are newer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from weft.algebra.composites import (
    After,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.query import AnyQuery, Consume, Query, Strategy
from weft.algebra.rules import Absence, Rule, Summary
from weft.plan.graph import Graph, GraphNode, build_graph, reports_some_runs
from weft.plan.shedding import QueryLeaves, shed_plan

_FED = "an absence or a choice of another query looks at what it finds"


def kept_whole(queries: Sequence[AnyQuery]) -> dict[str, str]:
    """Return the queries whose state must not be evicted, with the reason."""
    leaves = shed_plan(queries)
    reasons = _looked_at(queries, leaves)
    lossy = {query.name for query in queries}.difference(reasons)
    types = losable_types([query for query in queries if isinstance(query, Rule)], lossy)
    for query, own in zip(queries, leaves, strict=True):
        reason = _why_kept(query, own, types)
        if reason is not None:
            reasons.setdefault(query.name, reason)
    return reasons


def _looked_at(queries: Sequence[AnyQuery], leaves: Sequence[QueryLeaves]) -> dict[str, str]:
    """Return the queries whose matches must be complete, since a missing match could add a match of another query."""
    risky = {leaf.type for own in leaves for leaf in own.leaves if not leaf.safe}
    read = {type_ for query in queries for type_ in query.reads}
    return {
        query.name: _FED for query in queries if query.defines in risky or (None in risky and query.defines in read)
    }


def _why_kept(query: AnyQuery, own: QueryLeaves, types: Collection[str]) -> str | None:
    match query:
        case Query():
            judged = query.strategy in (Strategy.ALL, Strategy.STRICT) and query.consume is Consume.NONE
            waits = any(part is not None for part in (query.limit, query.skip, query.unless, query.top))
            if judged and not waits:
                return None
            return (
                "which of its matches are emitted depends on those that would be lost (a strategy, CONSUME BY, LIMIT)"
            )
        case CompositeQuery():
            graph = build_graph([query])
            loses = losable_nodes(graph, (query.name,))
            if any(loses[number] and keeps_beginnings(node) for number, node in enumerate(graph.nodes)):
                return None
            return "its state is read by absences and choices only"
        case Rule():
            if any(step.events.type in types for step in query.lookbacks):
                return None
            return "of the events that it looks back at, rules take the first, consume some, or ask how many there are"
    return None if any(leaf.safe for leaf in own.leaves) else "policies choose among the events of its partitions"


def losable_types(rules: Iterable[Rule], names: Collection[str]) -> frozenset[str]:
    """The types of which rules may lose the oldest events, when those with these names may lose matches."""
    taken, kept = set[str](), set[str]()
    for rule in rules:
        loses = rule.name in names and not rule.consumes
        for step in rule.lookbacks:
            (taken if loses and step.pick != "first" else kept).add(step.events.type)
        kept |= {node.events.type for node in rule.walk() if isinstance(node, Absence | Summary)}
    return frozenset(taken - kept)


def losable_nodes(graph: Graph, names: Collection[str]) -> Sequence[bool]:
    """For each node, whether its occurrences may be lost, when matches of these queries may be."""
    found = [True] * len(graph.nodes)
    for output in graph.outputs:
        found[output.node] &= output.query.name in names
    for place in reversed(range(len(graph.nodes))):
        node = graph.nodes[place]
        for side, number in enumerate(node.inputs):
            found[number] &= found[place] and _may_lack(node, side)
    return found


def _may_lack(node: GraphNode, side: int) -> bool:
    """Whether an operator that lacks an occurrence of an input only gives fewer."""
    if node.since is not None or reports_some_runs(node.pattern):
        return True
    match node.pattern:
        case CompositeFilter() | After() | CompositeUnion() | Overlap():
            return True
        case CompositeSequence(pick=pick):
            return side == 0 or pick == "each"
        case Without():
            return side == 0
    return False


def keeps_beginnings(node: GraphNode) -> bool:
    """Whether what an operator keeps are beginnings of its occurrences, or whole sides of them."""
    if node.since is not None or node.chain is not None:
        return node.chain is not None
    match node.pattern:
        case CompositeRepeat(pick=pick):
            return pick != "longest" and not reports_some_runs(node.pattern)
    return isinstance(node.pattern, CompositeSequence | Overlap)
