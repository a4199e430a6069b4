"""Descriptions of the graph of composite queries: as text, and as a drawing (DOT)."""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.predicates import Predicate
from weft.algebra.terms import conjuncts
from weft.algebra.text.composites import pattern_lines
from weft.algebra.text.network import quoted
from weft.algebra.text.program import to_text
from weft.errors import plural
from weft.plan.atoms import IsType
from weft.plan.chains import ChainStep
from weft.plan.graph import Graph

FEW = 3  # queries that are named where there are many


def graph_lines(graph: Graph) -> Iterator[str]:
    """One line per node: its number, what it does (variables are numbers), where from, and which queries share it."""
    yield f"graph of {plural(len(graph.nodes), 'operator')}; sources are fused with classify"
    for number, node in enumerate(graph.nodes):
        inputs = f"   from {', '.join(f'n{place}' for place in node.inputs)}" if node.inputs else ""
        yield f"  n{number}: {node_text(graph, number)}{inputs}{_sharing(graph, number)}"
    for output in graph.outputs:
        variables = ", ".join(f"{place} = {name}" for place, name in enumerate(output.variables))
        what = f"query {output.query.name}" if output.channel is None else f"channel {output.channel.number}"
        yield f"  {what} from n{output.node}   ({variables})"


def graph_dot(graph: Graph) -> Iterator[str]:
    """Nodes and edges of a drawing; what several users share is drawn with two lines, and says which."""
    for number, node in enumerate(graph.nodes):
        shared = ", peripheries=2" if graph.uses[number] > 1 else ""
        label = f"{node_text(graph, number)}{_sharing(graph, number)}"
        yield f"  n{number} [label={quoted(label)}{shared}]"
        for place in node.inputs:
            yield f"  n{place} -> n{number}"
    for number, output in enumerate(graph.outputs):
        yield f"  out{number} [shape=ellipse, label={quoted(output.query.name)}]"
        yield f"  n{output.node} -> out{number}"


def _sharing(graph: Graph, number: int) -> str:
    """Which queries share a node, if several do, or how often one query uses it."""
    names = graph.queries[number]
    if len(names) > 1:
        more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
        return f"   (shared by {', '.join(names[:FEW])}{more})"
    return f"   (used {graph.uses[number]} times)" if graph.uses[number] > 1 else ""


def node_text(graph: Graph, number: int) -> str:
    """What a node does, in one line."""
    node = graph.nodes[number]
    if node.since is not None:
        return f"of n{node.inputs[0]}, what is made of events from position {node.since} on"
    if node.received is not None:
        found = next(pattern_lines(node.pattern, lambda part: to_text(part).strip()))
        return f"{found}, through channel {node.received}"
    if node.chain is not None:
        by = f" by [{', '.join(node.chain.key)}]" if node.chain.key else ""
        unwanted = "" if node.chain.unwanted is None else f", without {_takes_text(node.chain.unwanted)} between"
        return f"chain{by}: {' ; '.join(map(_step_text, node.chain.steps))}{unwanted}"
    return next(pattern_lines(graph.nodes[number].pattern, lambda part: to_text(part).strip()))


def _step_text(step: ChainStep) -> str:
    """What a step takes, and what it then asks for."""
    needed = f" where [{to_text(step.needed).strip()}]" if conjuncts([step.needed]) else ""
    within = "" if step.within is None else f" within {step.within}"
    return f"{_takes_text(step.takes)}{needed}{within}"


def _takes_text(predicate: Predicate) -> str:
    parts = conjuncts([predicate])
    return " AND ".join(part.type if isinstance(part, IsType) else to_text(part).strip() for part in parts)
