"""What a query that comes later takes from a graph that runs: equal sub-patterns, of which it sees what began after it.

An operator decides about an occurrence that begins after the query came by later events only, so that it decides as
it would for the query alone. That is not so where something before an occurrence, or around it, counts.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.spans import Span, least
from weft.algebra.composites import Composite, CompositeEvent, CompositeFilter, CompositeRepeat, CompositeUnion, Without
from weft.plan.graph import Graph, GraphNode
from weft.plan.spans import useful_spans


def extended(running: Graph, added: Graph, position: int) -> Graph | None:
    """Extend the running graph by new queries, which see events from a position on, or None if none is shared."""
    nodes = list(running.nodes)
    known = _reusable(running)
    asked = useful_spans(added)
    places: dict[int, int] = {}
    shared: dict[int, int] = {}  # by running node: the node that passes on what is seen of it

    def place(number: int) -> int:
        if number not in places:
            node = added.nodes[number]
            found = _fitting(known, node, asked[number])
            if found is None:
                node = replace(node, inputs=tuple(map(place, node.inputs)))
                places[number] = len(nodes)
                nodes.append(node)
            else:
                if found not in shared:
                    shared[found] = len(nodes)
                    nodes.append(GraphNode(node.pattern, (found,), since=position))
                places[number] = shared[found]
        return places[number]

    outputs = [replace(output, node=place(output.node)) for output in added.outputs]
    return Graph(tuple(nodes), (*running.outputs, *outputs)) if shared else None


def needed(running: Graph, added: Graph) -> int:
    """Return how many operators the running graph would need in addition for the queries of another."""
    whole = extended(running, added, 0)
    return len(added.nodes) if whole is None else sum(node.since is None for node in whole.nodes[len(running.nodes) :])


def looks_ahead_only(pattern: Composite) -> bool:
    """Whether what is found of a pattern from some event on depends on later events only.

    What lies during an occurrence may have ended before its first event came, if that is long.
    """
    return not any(
        (isinstance(node, Without) and node.when != "between")
        or (isinstance(node, CompositeRepeat) and node.pick == "longest")
        for node in pattern.walk(Composite)
    )


def _reusable(running: Graph) -> dict[str, list[tuple[int, Span]]]:
    """Return the nodes whose output can be shared, by the text of their patterns, with their greatest span."""
    known: dict[str, list[tuple[int, Span]]] = {}
    spans: list[Span] = []
    for number, (node, useful) in enumerate(zip(running.nodes, useful_spans(running), strict=True)):
        keeps_nothing = node.chain is None and isinstance(
            node.pattern, CompositeEvent | CompositeFilter | CompositeUnion
        )
        spans.append(least(*(spans[place] for place in node.inputs)) if keeps_nothing else useful)
        if looks_ahead_only(node.pattern):
            known.setdefault(repr(node.pattern), []).append((number, spans[-1]))
    return known


def _fitting(known: dict[str, list[tuple[int, Span]]], node: GraphNode, asked: Span) -> int | None:
    """Return a running node that provides everything required of a new one, or None."""
    for number, span in known.get(repr(node.pattern), ()):
        if span is None or (asked is not None and asked <= span):
            return number
    return None
