"""The operators a program runs as, and how its work may be split."""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.plan.graph import Graph
from weft.tree import Node


@dataclass(frozen=True)
class AutomatonOp(Node):
    """One regular query as one automaton over the classified events."""

    query: Query


@dataclass(frozen=True)
class GraphOp(Node):
    """One composite query, which runs in the graph of all of them."""

    query: CompositeQuery


@dataclass(frozen=True)
class SituationOp(Node):
    """One situation, which runs in the network of all of them."""

    query: SituationQuery


@dataclass(frozen=True)
class RuleOp(Node):
    """One rule, which runs from the tables of all of them."""

    query: Rule


@dataclass(frozen=True)
class Lanes(Node):
    """Queries that can be split over lanes by one key without changing the answer; no key: one lane."""

    key: tuple[tuple[str, ...], ...]
    queries: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Plan:
    """What runs: an operator for each query, the groups that are split alike, and what is read of the events."""

    program: Program
    queries: tuple[AutomatonOp | GraphOp | SituationOp | RuleOp, ...]
    lanes: tuple[Lanes, ...]
    columns: tuple[str, ...]
    relevant_types: frozenset[str] | None  # events of other types change nothing; None: any event may
    graph: Graph | None = None  # of the composite queries, when there are any
