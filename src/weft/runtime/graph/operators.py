"""The operators of a graph at work: each takes what its inputs gave out and gives out occurrences in order.

`safe` is an operator's promise: whatever it gives out later ends at that time or after it. Operators take only
what ends before the promises of all their inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.algebra.composites import After, Filter, Source
from weft.kernels import buckets, follow, forward, iterate, occurrences
from weft.plan.graph import Graph
from weft.runtime.events import Int64s
from weft.runtime.graph.arena import Arena
from weft.runtime.graph.code import Compiler
from weft.runtime.graph.compile import (
    source_predicates,
    view_of,
)
from weft.runtime.graph.layout import Layouts

ENDLESS = int(occurrences.MOST)
BEGINNING = int(occurrences.FEWEST)
_NONE: Int64s = np.empty(0, np.int64)


def few() -> Int64s:
    """An array to begin with."""
    return np.empty(64, np.int64)


@dataclass
class Store:
    """Occurrences by key, as `weft.kernels.buckets` has them."""

    entries: Int64s = field(default_factory=few)
    table: Int64s = field(default_factory=lambda: np.zeros(16 * buckets.PLACE, np.int64))
    control: Int64s = field(default_factory=lambda: np.array([0, -1, 0, 0], np.int64))

    def used(self) -> Int64s:
        """The entries ever used, one per row."""
        return self.entries[: self.control[buckets.USED] * buckets.ENTRY].reshape(-1, buckets.ENTRY)


class Operator:
    """One node at work."""

    def __init__(self, build: Build, number: int) -> None:
        node = build.graph.nodes[number]
        self.number = number
        self.inputs = node.inputs
        self.control = np.zeros(iterate.ITERATE_CONTROL, np.int64)
        self.out: Int64s = few()
        self.safe = BEGINNING
        self.limit = -1  # ticks that a stored occurrence can matter, and since when (a slot, -1: its start)
        self.limit_slot = -1
        self.marks = False  # whether a marked entry of a store has been decided
        self.stores: list[Store] = []
        self.view = view_of(number, node)

    feeds_itself = False

    def cursor(self, side: int) -> int:
        """Where its control block has how much of an input it took."""
        return follow.RIGHT_AT if side == 1 else follow.LEFT_AT

    def link(self, build: Build) -> None:
        """Take what the layouts of rows say, when all conditions are known."""

    def advance(self, run: Running) -> None:
        """Take what can be taken."""
        raise NotImplementedError

    def given(self) -> Int64s:
        """What was given out."""
        return self.out[: self.control[follow.OUT]]

    def roots(self) -> Iterator[Int64s]:
        """Views of all rows it may still need, besides what its inputs gave out; -1 stands for none."""
        for store in self.stores:
            yield store.used()[:, buckets.ID]


@dataclass
class Build:
    """What is made of a graph before it runs."""

    graph: Graph
    layouts: Layouts
    compiler: Compiler
    ordered: Sequence[bool]  # for each node, whether the order of what it gives out at one time matters


@dataclass
class Running:
    """What an operator works with."""

    arena: Arena
    operators: Sequence[Operator]
    clock: int  # nothing that ends earlier will come
    finished: bool = False

    def bound(self, operator: Operator) -> int:
        """Up to where the inputs of an operator are complete."""
        return min(self.operators[number].safe for number in operator.inputs)

    def given(self, operator: Operator, side: int) -> tuple[Int64s, int]:
        """What an input gave out, and how much of it."""
        source = self.operators[operator.inputs[side]]
        return source.out, int(source.control[follow.OUT])


class SourceOperator(Operator):
    """Events of a type."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Source)
        self.predicate, rest = source_predicates(pattern)
        self.where = build.compiler.conditions(rest, self.view)
        self.chosen: Int64s = _NONE

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """Make occurrences of the chosen events."""
        arena = run.arena
        if len(self.chosen):
            arena.rows, arena.slots, self.out = forward.sources(
                self.where,
                self.spec,
                arena.facts(),
                arena.rows,
                arena.slots,
                arena.control,
                arena.events,
                self.chosen,
                self.control,
                self.out,
            )
        self.chosen = _NONE
        self.safe = run.clock


class FilterOperator(Operator):
    """Occurrences that satisfy conditions."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, Filter)
        self.where = build.compiler.conditions(pattern.where, self.view)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound = run.arena, run.bound(self)
        self.out = forward.keep(
            self.where,
            arena.facts(),
            arena.rows,
            arena.slots,
            *run.given(self, 0),
            bound,
            self.control,
            self.out,
        )
        self.safe = bound


class AfterOperator(Operator):
    """Occurrences and a point in time after each."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        pattern = build.graph.nodes[number].pattern
        assert isinstance(pattern, After)
        self.ticks = pattern.ticks

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.spec = build.layouts.spec(self.number)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound = run.arena, run.bound(self)
        arena.rows, arena.slots, self.out = forward.later(
            self.ticks,
            self.spec,
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            bound,
            self.control,
            self.out,
        )
        self.safe = max(self.safe, min(bound + self.ticks if bound < ENDLESS - self.ticks else ENDLESS, run.clock))


class UnionOperator(Operator):
    """The occurrences of both inputs."""

    def link(self, build: Build) -> None:
        """See `Operator.link`."""
        self.specs = build.layouts.spec(self.number, 0), build.layouts.spec(self.number, 1)

    def advance(self, run: Running) -> None:
        """See `Operator.advance`."""
        arena, bound = run.arena, run.bound(self)
        arena.rows, arena.slots, self.out = forward.unite(
            len(self.view.variables[0]),
            *self.specs,
            arena.rows,
            arena.slots,
            arena.control,
            arena.events,
            *run.given(self, 0),
            *run.given(self, 1),
            bound,
            self.control,
            self.out,
        )
        self.safe = bound
