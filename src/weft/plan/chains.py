"""Keyed chains as one operator: single events with equal keys, each the next of its kind after the previous one.

This is EQL's sequence where only key equalities connect the events: a partial match of a key is then decided by the
next event with that key, so no two occurrences have to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.algebra.analysis.spans import Span, least, span_of
from weft.algebra.composites import Composite, CompositeEvent, CompositeSequence, Conditions, Without
from weft.algebra.predicates import And, Attribute, Comparison, Predicate
from weft.algebra.terms import conjuncts
from weft.plan.graph import Graph
from weft.plan.one_event import own_predicate, source_predicates
from weft.tree import Node

MOST_STEPS = 30  # an event has two bits for each, and one more


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
        """What an event is asked: which steps take it, for which it has what is needed, whether it is unwanted."""
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
    if isinstance(pattern, Without):
        return _without(pattern)
    follows: list[CompositeSequence] = []
    while isinstance(pattern, CompositeSequence):
        follows.insert(0, pattern)
        pattern = pattern.left
    if not follows or len(follows) >= MOST_STEPS or not isinstance(pattern, CompositeEvent):
        return None
    takes, rest = source_predicates(pattern)
    keys = {_key_of(follow.among, follow.right) for follow in follows}
    steps = [_step_of(follow) for follow in follows]
    if rest or None in keys or len(keys) > 1 or None in steps:
        return None
    (key,) = keys
    return KeyedChain(key or (), (ChainStep(takes, And(())), *(step for step in steps if step is not None)))


def _without(pattern: Without) -> KeyedChain | None:
    """A chain of two events with an unwanted one between them."""
    chain, unwanted = chain_of(pattern.pattern), pattern.unwanted
    if chain is None or len(chain.steps) > 2 or chain.unwanted or pattern.when != "between":
        return None
    if not isinstance(unwanted, CompositeEvent) or _key_of(pattern.where, unwanted) != chain.key:
        return None
    takes, rest = source_predicates(unwanted)
    return None if rest else replace(chain, unwanted=takes)


def _key_of(conditions: Conditions, right: Composite) -> tuple[str, ...] | None:
    """Return the attributes in which an event equals those before it, or None if it has further conditions."""
    names: set[str] = set()
    for test in conjuncts(conditions):
        match test:
            case Comparison("=", Attribute(name, one), Attribute(same, other)) if name == same:
                if (one in right.variables) == (other in right.variables):
                    return None
                names.add(name)
            case _:
                return None
    return tuple(sorted(names))


def _step_of(follow: CompositeSequence) -> ChainStep | None:
    """The step with which a sequence ends, or None if it asks for more than a step can."""
    if follow.pick != "next" or not isinstance(follow.right, CompositeEvent):
        return None
    takes, rest = source_predicates(follow.right)
    needed: list[Predicate] = []
    within: Span = None
    for test in conjuncts(follow.where):
        own, span = own_predicate(follow.right, test), span_of(test, follow)
        if own is not None:
            needed.append(own)
        elif span is not None and isinstance(test, Comparison) and test.operator != "=":
            within = least(within, span)
        else:
            return None
    return None if rest else ChainStep(takes, And(tuple(needed)), within)
