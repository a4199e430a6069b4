"""Convert a placement to lanes: a fragment for each node and stage, and channels between fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft.algebra.analysis.spans import Span
from weft.algebra.composites import Composite, CompositeEvent, CompositeQuery
from weft.algebra.predicates import Attribute
from weft.algebra.query import AnyQuery
from weft.optimizer.cost import Costs
from weft.plan.chains import with_chains
from weft.plan.graph import Channel, build_graph, pattern_text
from weft.plan.layers import Layering
from weft.plan.operators import JoinOp, Layer
from weft.plan.partitioning.choice import families_of, lane_group
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.partitioning.one import One
from weft.plan.partitioning.splits import Split
from weft.plan.properties import ALL_FIELDS, seen_types, shows_all_fields
from weft.plan.spans import useful_spans
from weft.plan.staging.placing import PlacedQueries, named_apart, place_queries
from weft.tree import Node

ONE_NODE = One("in one lane of its node")


class Spot(NamedTuple):
    """A node at a stage, where operators run together. A divided pattern, by number, has a separate spot."""

    stage: int
    node: int
    divided: int = -1


@dataclass
class Fragment:
    """The queries in one spot, by number; some of them are only parts whose occurrences are sent."""

    split: Split
    nodes: tuple[int, ...]
    queries: dict[int, CompositeQuery] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)  # channels, by the texts of patterns
    sent: dict[str, Channel] = field(default_factory=dict)  # by the names of queries


class StagedQueries(NamedTuple):
    """The layers and lanes of queries whose operators are placed, and the loads of nodes."""

    layers: tuple[Layer, ...]
    lanes: tuple[LaneGroup, ...]
    loads: Sequence[float]


def staged(
    queries: Sequence[AnyQuery], fed_by: Sequence[Sequence[int]], costs: Costs, nodes: Sequence[float]
) -> StagedQueries:
    """Place queries on nodes of some capacities, and create their lanes."""
    placed = place_queries(families_of(queries, fed_by), costs, nodes)
    fragments = sorted(Cutting(queries, placed).fragments.items(), key=lambda item: item[0])
    lanes = [_group(fragment, spot) for spot, fragment in fragments]
    lanes += (
        replace(lane_group(own.split, own.family.numbers, queries, fed_by), nodes=own.nodes) for own in placed.whole
    )
    layers = (*_whole_layers(queries, placed), *(_layer(fragment, spot.stage) for spot, fragment in fragments))
    return StagedQueries(layers, tuple(lanes), placed.placement.loads)


def _whole_layers(queries: Sequence[AnyQuery], placed: PlacedQueries) -> Iterator[Layer]:
    """The layers of the queries that run whole, as their lanes run them."""
    split_of = {number: own.split for own in placed.whole for number in own.family.numbers}
    if split_of:
        run = [split_of[n].rewritten(query) if n in split_of else query for n, query in enumerate(queries)]
        for layer in Layering(run, {}, 0).layers():
            kept = layer.only(split_of)
            if kept is not None:
                yield kept


def _layer(fragment: Fragment, stage: int) -> Layer:
    run = [fragment.split.rewritten(query) for query in fragment.queries.values()]
    graph = build_graph(list(map(_composite, run)), fragment.received, fragment.sent)
    operator = JoinOp(tuple(fragment.queries), graph if stage else with_chains(graph))
    return Layer((operator,), (), _types(fragment, stage))


def _group(fragment: Fragment, spot: Spot) -> LaneGroup:
    types = _types(fragment, spot.stage)
    return LaneGroup(fragment.split, tuple(fragment.queries), types, nodes=fragment.nodes, stage=spot.stage)


def _types(fragment: Fragment, stage: int) -> frozenset[str] | None:
    """The types of input events that a fragment sees: none but at the first stage."""
    return frozenset() if stage else seen_types(fragment.queries.values(), fed=False)


def _composite(query: AnyQuery) -> CompositeQuery:
    assert isinstance(query, CompositeQuery)
    return query


class Cutting:
    """The fragments of a placement, with the channels between them."""

    def __init__(self, queries: Sequence[AnyQuery], placed: PlacedQueries) -> None:
        self.fragments: dict[Spot, Fragment] = {}
        self._queries = queries
        self._placed, self._placement = placed, placed.placement
        self._spans = _spans([_composite(queries[number]) for number in placed.roots])
        self._readers: dict[tuple[Spot, str], list[int]] = {}  # operators that read what is found elsewhere
        self._operands: dict[tuple[Spot, str], Composite] = {}
        for number, root in placed.roots.items():
            self._at(self._spot(root)).queries[number] = _composite(queries[number])
        for number in range(len(self._placement.operators)):
            self._look(number)
        for number, (source, text) in enumerate(self._readers):
            self._connect(number, source, text)

    def _spot(self, number: int) -> Spot:
        """Return where an operator runs."""
        divided = number in self._placement.divided
        return Spot(self._placed.stages[number], self._placement.node_of[number], number if divided else -1)

    def _at(self, spot: Spot) -> Fragment:
        if spot not in self.fragments:
            split, nodes = self._placement.divided.get(spot.divided, (ONE_NODE, (spot.node,)))
            self.fragments[spot] = Fragment(split, nodes)
        return self.fragments[spot]

    def _look(self, number: int) -> None:
        """Note the operands of an operator that are found elsewhere."""
        if number in self._placement.divided:
            return
        spot, inputs = self._spot(number), iter(self._placement.inputs[number])
        for operand in self._placement.operators[number].children():
            if isinstance(operand, Composite):
                is_event = isinstance(operand, CompositeEvent)
                source = Spot(0, spot.node) if is_event else self._spot(next(inputs))
                if source != spot:
                    key = source, pattern_text(operand)
                    self._readers.setdefault(key, []).append(number)
                    self._operands.setdefault(key, operand)

    def _connect(self, number: int, source: Spot, text: str) -> None:
        """Make the channel of a pattern from where it is found to all who read it."""
        readers = self._readers[source, text]
        needing = [query for query, root in self._placed.roots.items() if self._below(root).intersection(readers)]
        part = named_apart(self._queries[needing[0]], number, self._operands[source, text])
        read = [_read_above(self._queries[query], text) for query in needing]
        shown = {ALL_FIELDS for query in needing if shows_all_fields(self._queries[query])}
        attributes = sorted(shown.union(*read))
        identifying = dict.fromkeys(self._queries[query].identity_attributes for query in needing)
        channel = Channel(number, tuple(attributes), tuple(identifying), self._spans[text])
        fragment = self._at(source)
        fragment.queries[len(self._queries) + number] = part
        fragment.sent[part.name] = channel
        for reader in readers:
            self._at(self._spot(reader)).received[text] = number

    def _below(self, number: int) -> set[int]:
        """Return an operator and all operators below it."""
        return {number}.union(*map(self._below, self._placement.inputs[number]))


def _read_above(node: Node, text: str) -> set[str]:
    """The attributes that are read in a query, but for what is read inside the patterns with a text."""
    if isinstance(node, Attribute):
        return {node.name}
    if isinstance(node, Composite) and pattern_text(node) == text:
        return set()
    return set[str]().union(*(_read_above(child, text) for child in node.children()))


def _spans(queries: Sequence[CompositeQuery]) -> dict[str, Span]:
    """By the text of a pattern, the greatest span with which an occurrence is of use to anyone."""
    graph = build_graph(queries)
    return {repr(node.pattern): span for node, span in zip(graph.nodes, useful_spans(graph), strict=True)}
