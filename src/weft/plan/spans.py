"""How long occurrences can matter to the operators around them.

A span is the time from the start to the end of an occurrence, in ticks; None means unbounded.
"""

from __future__ import annotations

from weft.algebra.analysis.spans import Span, asked_of, greatest_span, greatest_tail, least, loosest, span_limit
from weft.algebra.composites import Composite, CompositeSequence, Without
from weft.plan.graph import Graph


def greatest_spans(graph: Graph) -> list[Span]:
    """Return for each node the greatest span its occurrences can have."""
    spans: list[Span] = []
    for node in graph.nodes:
        inputs = [spans[number] for number in node.inputs]
        match node.pattern:
            case _ if node.since is not None:
                spans.append(inputs[0])
            case pattern if node.received is not None:
                spans.append(span_and_tail(pattern)[0])
            case Without(pattern) if node.chain is not None:
                spans.append(span_limit(pattern.where, pattern) if isinstance(pattern, CompositeSequence) else None)
            case pattern:
                spans.append(greatest_span(pattern, inputs))
    return spans


def greatest_tails(graph: Graph) -> list[Span]:
    """For each node, the most ticks from the end of an occurrence's first constituent to its own end."""
    tails: list[Span] = []
    for node, span in zip(graph.nodes, greatest_spans(graph), strict=True):
        inputs = [tails[number] for number in node.inputs]
        match node.pattern:
            case _ if node.since is not None:
                tails.append(inputs[0])
            case _ if node.chain is not None:
                tails.append(span)
            case pattern if node.received is not None:
                tails.append(span_and_tail(pattern)[1])
            case pattern:
                tails.append(greatest_tail(pattern, inputs, span))
    return tails


def span_and_tail(pattern: Composite) -> tuple[Span, Span]:
    """The greatest span of a pattern's occurrences, and the most ticks from the end of the first constituent on."""
    below = [span_and_tail(child) for child in pattern.children() if isinstance(child, Composite)]
    span = greatest_span(pattern, [own for own, _ in below])
    return span, greatest_tail(pattern, [tail for _, tail in below], span)


def useful_spans(graph: Graph) -> list[Span]:
    """Return for each node the greatest span of an occurrence that any reader can use."""
    greatest, tails = greatest_spans(graph), greatest_tails(graph)
    wanted: list[list[Span]] = [[] for _ in graph.nodes]
    for output in graph.outputs:
        wanted[output.node].append(None if output.channel is None else output.channel.span)
    useful: list[Span] = [None] * len(graph.nodes)
    for number in reversed(range(len(graph.nodes))):
        useful[number] = least(loosest(wanted[number]), greatest[number])
        if graph.nodes[number].since is not None:
            wanted[graph.nodes[number].inputs[0]].append(useful[number])
            continue
        for side, place in enumerate(graph.nodes[number].inputs):
            pattern = graph.nodes[number].pattern
            is_between = side == 1 and isinstance(pattern, Without) and pattern.when == "between"
            most = least(useful[number], tails[number]) if is_between else useful[number]
            wanted[place].append(asked_of(pattern, side, most))
    return useful
