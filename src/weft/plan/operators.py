"""The physical plan: layers of operators, each of which reads the input and the derived events of earlier layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.plan.automaton.cea import Automaton
from weft.plan.graph import Graph
from weft.plan.keyed import KeyedSequence
from weft.plan.partitioning.lane_groups import LaneGroup
from weft.plan.partitioning.splits import Lane
from weft.plan.properties import seen_types
from weft.plan.search import SituationSearch
from weft.tree import Node


@dataclass(frozen=True)
class AutomatonOp(Node):
    """A regular query as an automaton over the classified events."""

    number: int
    query: Query
    automaton: Automaton

    @property
    def queries(self) -> Mapping[int, AnyQuery]:
        """The queries that it runs, by number."""
        return {self.number: self.query}

    def only(self, numbers: Collection[int]) -> AutomatonOp | None:
        """What is left of it for some queries."""
        return self if self.number in numbers else None


@dataclass(frozen=True)
class SituationOp(Node):
    """A situation and how its sets are found: by a search, or as sequences of events with equal keys.

    With a `beginning`, the events that end a set of its first slots are computed once for all situations with this
    prefix.
    """

    number: int
    query: SituationQuery
    way: SituationSearch | KeyedSequence
    beginning: SituationOp | None = None

    @property
    def queries(self) -> Mapping[int, AnyQuery]:
        """The queries that it runs, by number."""
        return {self.number: self.query}

    def only(self, numbers: Collection[int]) -> SituationOp | None:
        """What is left of it for some queries."""
        return self if self.number in numbers else None


@dataclass(frozen=True)
class JoinOp(Node):
    """Composite queries as one graph, in which equal sub-patterns are one node."""

    numbers: tuple[int, ...]
    graph: Graph

    @property
    def queries(self) -> Mapping[int, AnyQuery]:
        """The queries that it runs, by number."""
        return dict(zip(self.numbers, (output.query for output in self.graph.outputs), strict=True))

    def only(self, numbers: Collection[int]) -> JoinOp | None:
        """What is left of it for some queries."""
        places = [place for place, number in enumerate(self.numbers) if number in numbers]
        if len(places) == len(self.numbers):
            return self
        return JoinOp(tuple(self.numbers[place] for place in places), self.graph.only(places)) if places else None


@dataclass(frozen=True)
class RuleOp(Node):
    """Rules that run from one set of tables and see each other's events.

    Some of them may be `silent`: they run in another layer too, which emits their matches.
    """

    numbers: tuple[int, ...]
    rules: tuple[Rule, ...]
    silent: frozenset[int] = frozenset()

    @property
    def queries(self) -> Mapping[int, AnyQuery]:
        """The queries that it runs, by number."""
        return dict(zip(self.numbers, self.rules, strict=True))

    def only(self, numbers: Collection[int]) -> RuleOp | None:
        """What is left of it for some queries."""
        kept = [place for place, number in enumerate(self.numbers) if number in numbers]
        own, rules = tuple(self.numbers[at] for at in kept), tuple(self.rules[at] for at in kept)
        return RuleOp(own, rules, self.silent) if set(own) - self.silent else None


@dataclass(frozen=True)
class Definer(Node):
    """A query as its readers see it: the type of the events it defines, and the order of these events."""

    type: str
    number: int
    depth: int  # over input 0, else one more than the deepest it reads
    is_instant: bool  # its events are instants, at the end of matches
    in_network: bool  # situations see its events in stream order, among those of the input


PhysicalOp = AutomatonOp | JoinOp | SituationOp | RuleOp


@dataclass(frozen=True)
class Layer(Node):
    """Operators that see the same events: those of the input, and what the queries `feeders` define.

    Only input events of `types` matter here (None: all). Derived events come after all of the input that end
    when they do; in a `network` those of situations are in stream order among them.
    """

    operators: tuple[PhysicalOp, ...]
    feeders: tuple[Definer, ...] = ()
    types: frozenset[str] | None = None
    network: bool = False

    @property
    def needed(self) -> frozenset[str] | None:
        """The event types its remaining queries read, or None for all; with feeders, it numbers all events seen."""
        if self.feeders or self.types is None:
            return self.types
        return seen_types(self.queries.values(), fed=False)

    @property
    def queries(self) -> dict[int, AnyQuery]:
        """The queries as they run, by number."""
        return dict(sorted((one for op in self.operators for one in op.queries.items()), key=itemgetter(0)))

    @property
    def silent(self) -> frozenset[int]:
        """The numbers of the rules that run here without emitting, because other rules read their events."""
        return frozenset().union(*(op.silent for op in self.operators if isinstance(op, RuleOp)))

    def only(self, numbers: Collection[int]) -> Layer | None:
        """What is left of it for some queries."""
        kept = [part for part in (operator.only(numbers) for operator in self.operators) if part is not None]
        return replace(self, operators=tuple(kept)) if kept else None


class NodeLoad(NamedTuple):
    """The load of a node, and its capacity relative to the other nodes."""

    load: float
    capacity: float = 1.0


@dataclass(frozen=True)
class Plan:
    """The plan of a program: layers, how the work may be split, and the attributes that are read."""

    program: Program
    layers: tuple[Layer, ...]  # each after those that feed it
    lanes: tuple[LaneGroup, ...]
    columns: tuple[str, ...]
    relevant_types: frozenset[str] | None  # events of other types change nothing; None: any event may
    placed: tuple[NodeLoad, ...] = ()  # of each node, if operators are placed on nodes

    @property
    def queries(self) -> tuple[AnyQuery, ...]:
        """The queries, by number."""
        return self.program.queries

    @property
    def operators(self) -> tuple[PhysicalOp, ...]:
        """All operators, layer by layer."""
        return tuple(operator for layer in self.layers for operator in layer.operators)

    def lanes_for(self, wanted: int) -> tuple[Lane, ...]:
        """Return all lanes, when `wanted` are requested for queries that can be split."""
        lanes: list[Lane] = []
        for group in self.lanes:
            dealt = group.split.dealt(group.queries, len(group.nodes) or wanted)
            for share, (queries, mute) in enumerate(zip(dealt, group.split.muted(dealt), strict=True)):
                types = group.types if queries == group.queries else self.types_of(queries)
                lanes.append(Lane(len(lanes), queries, group.split, share, len(dealt), types, mute, group.stage))
        return tuple(lanes)

    def types_of(self, numbers: Collection[int]) -> frozenset[str] | None:
        """The types of input events that matter to some queries, or None for all."""
        layers = self.only(numbers).layers
        known = [types for types in (layer.needed for layer in layers) if types is not None]
        return frozenset().union(*known) if len(known) == len(layers) else None

    def channels_read_by(self, lane: Lane) -> set[int]:
        """The numbers of the channels through which a lane gets occurrences."""
        joins = (op.graph for op in self.only(lane.queries).operators if isinstance(op, JoinOp))
        return {node.received for graph in joins for node in graph.nodes if node.received is not None}

    def only(self, numbers: Collection[int]) -> Plan:
        """The part of the plan that some queries need; those that feed them must be among them."""
        kept = [part for part in (layer.only(numbers) for layer in self.layers) if part is not None]
        return replace(self, layers=tuple(kept))
