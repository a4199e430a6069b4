"""One graph of operators for all composite queries of a program: equal sub-patterns are one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from weft.algebra.analysis.renaming import canonical
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Lengths,
    Without,
)
from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.terms import Previous
from weft.tree import Node

if TYPE_CHECKING:
    from weft.plan.chains import KeyedChain


NO_CHANNELS: Mapping[str, Any] = {}


@dataclass(frozen=True)
class GraphNode(Node):
    """An operator: a canonical pattern (its variables are numbers) and the nodes its operands come from.

    With a chain, it finds the events itself and has no inputs. With `since`, it passes on what its input gives, which
    has the same pattern, as far as that is made of events from this position on. With `received`, other lanes find its
    occurrences, and send them through the channel of this number.
    """

    pattern: Composite
    inputs: tuple[int, ...]
    chain: KeyedChain | None = None
    since: int | None = None
    received: int | None = None

    @property
    def operator(self) -> str:
        """The name of the operator for users."""
        return self.pattern.operator


@dataclass(frozen=True)
class Channel(Node):
    """How occurrences get from the lanes that find them to those where they are operands of other operators.

    `attributes` are those of their events that are read there. `identifying`: for each query that is made of them, by
    which attributes it identifies events. `span`: the most ticks that one lasts which is of use, or None for any.
    """

    number: int
    attributes: tuple[str, ...]
    identifying: tuple[tuple[str, ...], ...]
    span: int | None = None


@dataclass(frozen=True)
class GraphOutput(Node):
    """A query, the node that gives its occurrences, and what the query calls the variables, by number.

    With a channel, the occurrences are sent, and are no matches.
    """

    query: CompositeQuery
    node: int
    variables: tuple[str, ...]
    channel: Channel | None = None


@dataclass(frozen=True)
class Graph(Node):
    """The operators of several queries; every node comes after its inputs."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[GraphOutput, ...]

    @cached_property
    def uses(self) -> tuple[int, ...]:
        """How often each node is an input or an output."""
        counts = [0] * len(self.nodes)
        for node in self.nodes:
            for number in node.inputs:
                counts[number] += 1
        for output in self.outputs:
            counts[output.node] += 1
        return tuple(counts)

    @cached_property
    def queries(self) -> tuple[tuple[str, ...], ...]:
        """For each node, the names of the queries that need it."""
        needed: list[set[int]] = [set() for _ in self.nodes]
        for number, output in enumerate(self.outputs):
            needed[output.node].add(number)
        for place in reversed(range(len(self.nodes))):
            for part in self.nodes[place].inputs:
                needed[part] |= needed[place]
        return tuple(tuple(self.outputs[number].query.name for number in sorted(numbers)) for numbers in needed)

    @cached_property
    def leading(self) -> tuple[bool, ...]:
        """Return for each node whether every match that contains one of its occurrences begins with it.

        Then a lane that emits the matches which begin at certain events needs only the occurrences that begin at these.
        """
        found = [True] * len(self.nodes)
        for place in reversed(range(len(self.nodes))):
            node = self.nodes[place]
            both = isinstance(node.pattern, CompositeUnion)
            alone = isinstance(node.pattern, CompositeFilter | After | Without | CompositeSequence)
            for side, number in enumerate(node.inputs):
                found[number] &= found[place] and (both or (alone and side == 0))
        return tuple(found)

    def needed(self, outputs: Iterable[int]) -> list[int]:
        """The numbers of the nodes that some of the queries need, by place."""
        needed: set[int] = set()
        waiting = [self.outputs[place].node for place in outputs]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                waiting += self.nodes[number].inputs
        return sorted(needed)

    def only(self, outputs: Sequence[int]) -> Graph:
        """The graph of some of the queries, by place."""
        places = {number: place for place, number in enumerate(self.needed(outputs))}
        nodes = (replace(self.nodes[n], inputs=tuple(places[i] for i in self.nodes[n].inputs)) for n in places)
        kept = (self.outputs[place] for place in outputs)
        return Graph(tuple(nodes), tuple(replace(out, node=places[out.node]) for out in kept))


def build_graph(
    queries: Sequence[CompositeQuery],
    received: Mapping[str, int] = NO_CHANNELS,
    sent: Mapping[str, Channel] = NO_CHANNELS,
) -> Graph:
    """The graph of the queries' patterns.

    `received`: the channels through which occurrences of sub-patterns come, by their texts. `sent`: those of queries
    whose occurrences are sent, by name.
    """
    numbers: dict[str, int] = {}  # by text: as values True, 1 and 1.0 are equal, as conditions they are not
    nodes: list[GraphNode] = []

    def place(pattern: Composite) -> int:
        form = canonical(pattern)[0]
        text = repr(form)
        if text not in numbers and text in received:
            numbers[text] = len(nodes)
            nodes.append(GraphNode(form, (), received=received[text]))
        if text not in numbers:
            growing = _growing(form)
            operands = [child for child in form.children() if isinstance(child, Composite)]
            inputs = tuple(place(child) for child in ([growing] if growing else operands))
            numbers[text] = len(nodes)
            nodes.append(GraphNode(form, inputs))
        return numbers[text]

    outputs = [
        GraphOutput(query, place(query.pattern), query.pattern.variables, sent.get(query.name)) for query in queries
    ]
    return Graph(tuple(nodes), tuple(outputs))


def pattern_text(pattern: Composite) -> str:
    """A text that is equal for patterns which are one node of a graph."""
    return repr(canonical(pattern)[0])


def reports_some_runs(pattern: Composite) -> bool:
    """Whether a pattern is of runs that grow by what they were, of which the first are too short to be reported."""
    return isinstance(pattern, CompositeRepeat) and pattern.pick == "next" and pattern.lengths.low > 1


def _growing(pattern: Composite) -> Composite | None:
    """Return the pattern of growing runs, from which a separate node selects those to report, or None if all are."""
    if not isinstance(pattern, CompositeRepeat) or not reports_some_runs(pattern):
        return None
    return replace(pattern, lengths=Lengths(1, pattern.lengths.high))


def source_types(pattern: Composite) -> frozenset[str]:
    """The types of the events a pattern is made of, also of unwanted ones."""
    return frozenset(node.type for node in pattern.walk() if isinstance(node, CompositeEvent))


def links_members(test: Predicate, bound: frozenset[str]) -> tuple[Attribute, Attribute] | None:
    """Return the attributes that a test `prev(x.a) = x.b` equates, of the previous member and the current one.

    Both variables must be bound in every member: such a test is true where there is no previous member.
    """
    match test:
        case Comparison("=", Previous(before), Attribute() as now) | Comparison(
            "=", Attribute() as now, Previous(before)
        ):
            return (before, now) if before.variable in bound and now.variable in bound else None
    return None
