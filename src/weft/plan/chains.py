"""Keyed chains as one operator: a partial match of a key is decided by the next event with that key.

So no two occurrences have to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.algebra.analysis.keyed_chains import chain_parts
from weft.algebra.analysis.spans import Span
from weft.algebra.composites import Composite, CompositeEvent, CompositeSequence
from weft.algebra.predicates import And, Predicate
from weft.plan.graph import Graph
from weft.plan.one_event import source_predicates
from weft.tree import Node


@dataclass(frozen=True)
class ChainStep(Node):
    """One event of a chain: the next event that it `takes` decides; the chain continues if it satisfies `needed`."""

    takes: Predicate
    needed: Predicate
    within: Span = None  # the most ticks from the start of the first event to the end of this one


@dataclass(frozen=True)
class KeyedChain(Node):
    """The steps of a chain, and the attributes that must be equal in all of its events."""

    key: tuple[str, ...]
    steps: tuple[ChainStep, ...]
    unwanted: Predicate | None = None  # of two steps: no such event with the same key may stand between them

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Return the predicates that classify an event for the chain.

        These are: which steps take it, for which steps it satisfies the condition, whether it is excluded.
        """
        steps = (*(step.takes for step in self.steps), *(step.needed for step in self.steps))
        return steps if self.unwanted is None else (*steps, self.unwanted)


def with_chains(graph: Graph) -> Graph:
    """Replace every sequence that is a keyed chain, and of which no part is used elsewhere, by a chain operator."""
    nodes, inside = list(graph.nodes), set[int]()
    for number in reversed(range(len(nodes))):
        chain = None if number in inside else chain_of(nodes[number].pattern)
        parts = [] if chain is None else list(_sequences_in(graph, number))
        if chain is not None and all(graph.uses[part] == 1 for part in parts):
            inside.update(parts)
            nodes[number] = replace(nodes[number], inputs=(), chain=chain)
    return replace(graph, nodes=tuple(nodes)).only(range(len(graph.outputs)))


def _sequences_in(graph: Graph, number: int) -> Iterator[int]:
    """The nodes of the sequences that a chain begins with."""
    while isinstance(graph.nodes[left := graph.nodes[number].inputs[0]].pattern, CompositeSequence):
        yield left
        number = left


def chain_of(pattern: Composite) -> KeyedChain | None:
    """The chain that a pattern is, or None."""
    parts = chain_parts(pattern)
    if parts is None:
        return None
    steps = (ChainStep(_taken(event.source), And(event.needed), event.within) for event in parts.events)
    return KeyedChain(parts.key, tuple(steps), None if parts.unwanted is None else _taken(parts.unwanted))


def _taken(source: CompositeEvent) -> Predicate:
    return source_predicates(source)[0]
