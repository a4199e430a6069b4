"""How long occurrences can matter: what conditions say about times, and what follows for the operators around them.

A span is the time from the start to the end of an occurrence, in ticks; None stands for no bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from weft.algebra.composites import After, Composite, Filter, Follow, Overlap, Repeat, Source, Union, Without
from weft.algebra.predicates import MIRRORED, Comparison, Literal, Predicate
from weft.algebra.terms import Elapsed, conjuncts
from weft.plan.graph import Graph

Span = int | None


def least(*spans: Span) -> Span:
    """The strictest of some bounds."""
    return min((span for span in spans if span is not None), default=None)


def greatest_spans(graph: Graph) -> list[Span]:
    """For each node, the greatest span its occurrences can have."""
    spans: list[Span] = []
    for node in graph.nodes:
        inputs = [spans[number] for number in node.inputs]
        match node.pattern:
            case _ if node.since is not None:
                spans.append(inputs[0])
            case Without(pattern) if node.chain is not None:
                spans.append(span_limit(pattern.where, pattern) if isinstance(pattern, Follow) else None)
            case Source(where=where):
                spans.append(span_limit(where, node.pattern))
            case Follow(where=where, among=among):
                spans.append(span_limit((*where, *among), node.pattern))
            case Overlap(where=where):
                spans.append(span_limit(where, node.pattern))
            case Filter(where=where):
                spans.append(least(span_limit(where, node.pattern), inputs[0]))
            case Without():
                spans.append(inputs[0])
            case After(ticks=ticks):
                spans.append(None if inputs[0] is None else inputs[0] + ticks)
            case Union():
                spans.append(None if None in inputs else max(span for span in inputs if span is not None))
            case _:
                spans.append(None)
    return spans


def greatest_tails(graph: Graph) -> list[Span]:
    """For each node, the most ticks from the end of an occurrence's first constituent to its own end.

    An event by itself may be of any length, but nothing comes after it.
    """
    tails: list[Span] = []
    for node, span in zip(graph.nodes, greatest_spans(graph), strict=True):
        inputs = [tails[number] for number in node.inputs]
        match node.pattern:
            case _ if node.since is not None:
                tails.append(inputs[0])
            case _ if node.chain is not None:
                tails.append(span)
            case Source():
                tails.append(0)
            case Filter() | Without():
                tails.append(least(*inputs[:1], span))
            case After(ticks=ticks):
                tails.append(None if inputs[0] is None else inputs[0] + ticks)
            case Union():
                tails.append(None if None in inputs else max(tail for tail in inputs if tail is not None))
            case _:
                tails.append(span)
    return tails


def useful_spans(graph: Graph) -> list[Span]:
    """For each node, the greatest span with which an occurrence can be of use to anyone."""
    greatest, tails = greatest_spans(graph), greatest_tails(graph)
    wanted: list[list[Span]] = [[] for _ in graph.nodes]
    for output in graph.outputs:
        wanted[output.node].append(None)
    useful: list[Span] = [None] * len(graph.nodes)
    for number in reversed(range(len(graph.nodes))):
        asked = wanted[number]
        own = None if None in asked else max(span for span in asked if span is not None)
        useful[number] = least(own, greatest[number])
        if graph.nodes[number].since is not None:
            wanted[graph.nodes[number].inputs[0]].append(useful[number])
            continue
        for side, place in enumerate(graph.nodes[number].inputs):
            pattern = graph.nodes[number].pattern
            is_between = side == 1 and isinstance(pattern, Without) and pattern.when == "between"
            most = least(useful[number], tails[number]) if is_between else useful[number]
            wanted[place].append(_asked_of(pattern, side, most))
    return useful


def _asked_of(pattern: Composite, side: int, span: Span) -> Span:
    """The greatest span of an operand that can be part of, or decide about, an occurrence with at most this span.

    A right operand that is too long may end a search; but what the search would find without it ends later still.
    """
    match pattern:
        case Repeat(pick="longest"):
            return None
        case Without(when="before"):
            return None if side == 1 else span
        case After(ticks=ticks):
            return None if span is None else max(span - ticks, 0)
    return span


def span_limit(tests: Iterable[Predicate], pattern: Composite) -> Span:
    """The most ticks from the start to the end of a composite that satisfies the tests."""
    return least(*(most for test in conjuncts(tests) for most in [span_of(test, pattern)]))


def is_implied(test: Predicate, pattern: Composite, limit: Span) -> bool:
    """Whether a test says no more than that the span is at most the limit."""
    most = span_of(test, pattern)
    exact = isinstance(test, Comparison) and test.operator != "="
    return limit is not None and most is not None and exact and limit <= most


def span_of(test: Predicate, pattern: Composite) -> Span:
    """The most ticks from start to end that a test allows; None: it says nothing of them."""
    term, most = at_most(test)
    whole = term in (Elapsed(), Elapsed(first_variable(pattern), last_variable(pattern)))
    return most if term is not None and whole else None


def at_most(test: Predicate) -> tuple[Elapsed | None, Span]:
    """The term and the number of a test that a time is at most a number of ticks, where it can hold at all."""
    match test:
        case Comparison(symbol, Elapsed() as term, Literal(number)):
            pass
        case Comparison(symbol, Literal(number), Elapsed() as term):
            symbol = MIRRORED[symbol]
        case _:
            return None, None
    if isinstance(number, bool | str) or symbol not in ("<", "<=", "=") or not math.isfinite(number):
        return None, None
    most = math.ceil(number) - 1 if symbol == "<" else math.floor(number)
    return (term, most) if 0 <= most < 1 << 60 else (None, None)


def first_variable(pattern: Composite) -> str | None:
    """The variable whose first event starts when each occurrence does."""
    match pattern:
        case Source(variable=variable):
            return variable
        case Follow(left):
            return first_variable(left)
        case Filter(inner) | Without(inner) | Repeat(inner) | After(inner):
            return first_variable(inner)
    return None


def last_variable(pattern: Composite) -> str | None:
    """The variable whose last event ends when each occurrence does."""
    match pattern:
        case Source(variable=variable):
            return variable
        case Follow(_, right):
            return last_variable(right)
        case Filter(inner) | Without(inner) | Repeat(inner):
            return last_variable(inner)
    return None


def waiting_limit(pattern: Follow | Repeat, operands: Sequence[Composite], span: Span) -> tuple[Span, str | None]:
    """How long a left occurrence can wait for a right one: ticks since its start, or since that of a variable's events.

    `span` is the greatest that a joined one can have.
    """
    if span is not None:
        return span, None
    last = last_variable(operands[-1])
    for test in conjuncts((*pattern.where, *pattern.among)):
        term, most = at_most(test)
        if term is None or term.first is None or term.last is None or term.last != last:
            continue
        if isinstance(pattern, Repeat) or term.first in operands[0].variables:
            return most, term.first
    return None, None
