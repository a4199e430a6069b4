"""Slots of each node's occurrences: the events and times of variables that conditions above the node read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from weft.algebra.composites import After, CompositeEvent, CompositeFilter, CompositeRepeat, CompositeUnion, Without
from weft.kernels.joins import occurrences as rows
from weft.plan.graph import Graph
from weft.runtime.data.events import Int64s

# Of the events bound to a variable: the last, the one that starts first, the one that ends last.
What = Literal["event", "start", "end"]
Slot = tuple[What, int]  # of the variable with this number

_MERGED = {"event": rows.LATER, "start": rows.LEAST, "end": rows.GREATEST}


class Layouts:
    """Slots of all nodes of a graph. A node that passes occurrences on has those of its input."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._slots: list[dict[Slot, int]] = [{} for _ in graph.nodes]

    def extend(self, graph: Graph) -> None:
        """Continue with a graph that has further nodes after the same ones."""
        self._graph = graph
        self._slots += ({} for _ in graph.nodes[len(self._slots) :])

    def keep(self, numbers: Sequence[int], graph: Graph) -> None:
        """Continue with the graph of some of the nodes."""
        self._graph = graph
        self._slots = [self._slots[number] for number in numbers]

    @property
    def sizes(self) -> list[int]:
        """The number of slots that each node adds itself."""
        return [len(slots) for slots in self._slots]

    def slot(self, node: int, what: What, variable: int) -> int:
        """Return the place of a slot in the occurrences of a node; a new slot is added."""
        node = self._owner(node)
        slots = self._slots[node]
        if (what, variable) not in slots:
            slots[what, variable] = len(slots)
            inputs = self._graph.nodes[node].inputs
            if inputs:
                side, number = self._operand(node, variable)
                self.slot(inputs[side], what, number)
        return slots[what, variable]

    def spec(self, node: int, branch: int = 0) -> Int64s:
        """Return how the kernels fill the slots of rows that a node adds; `branch` is the side of a union."""
        return np.array([part for slot in self._ordered(node) for part in self._fill(node, slot, branch)], np.int64)

    def of(self, node: int) -> list[Slot]:
        """Return the slots of a node's occurrences, in their order."""
        return self._ordered(node)

    def _owner(self, node: int) -> int:
        passing = CompositeFilter | Without | CompositeRepeat | After
        nodes = self._graph.nodes
        while nodes[node].inputs and (nodes[node].since is not None or isinstance(nodes[node].pattern, passing)):
            node = nodes[node].inputs[0]
        return node

    def _operand(self, node: int, variable: int) -> tuple[int, int]:
        """Return which operand of a node binds a variable, and its number there."""
        left = len(self._graph.nodes[self._graph.nodes[node].inputs[0]].pattern.variables)
        return (0, variable) if variable < left else (1, variable - left)

    def _ordered(self, node: int) -> list[Slot]:
        return list(self._slots[self._owner(node)])

    def _fill(self, node: int, slot: Slot, branch: int) -> tuple[int, int, int]:
        what, variable = slot
        pattern, inputs = self._graph.nodes[node].pattern, self._graph.nodes[node].inputs
        if isinstance(pattern, CompositeEvent):
            return rows.THE_EVENT, 0, 0
        if self._graph.nodes[node].chain is not None:  # all but the last of its events are on the left, by number
            last = len(pattern.variables) - 1
            return (rows.FROM_RIGHT, 0, 0) if variable == last else (rows.FROM_LEFT, variable, 0)
        if isinstance(pattern, CompositeRepeat | After):
            place = self.slot(inputs[0], what, variable)
            return (rows.FROM_LEFT if isinstance(pattern, After) else _MERGED[what]), place, place
        side, number = self._operand(node, variable)
        if isinstance(pattern, CompositeUnion) and side != branch:
            return rows.NOTHING, 0, 0
        place = self.slot(inputs[side], what, number)
        return (rows.FROM_LEFT if side == 0 else rows.FROM_RIGHT), place, place
