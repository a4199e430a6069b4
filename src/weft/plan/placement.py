"""Placement of operators on nodes (NEXT 4.2 and 4.4): a node for every operator of patterns.

Operators are placed bottom-up on the node of least cost: the input from other nodes, the operator's own work, and the
current load of the node. With reuse, an operator that is already placed is not placed again, unless sending its output
once more would make its node the busiest, and a second instance elsewhere would not. A pattern that is too much for one
node may be divided into shares (Step 4.4), which are placed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from weft.algebra.analysis.renaming import canonical
from weft.algebra.composites import Composite, CompositeEvent
from weft.errors import UsageError, did_you_mean
from weft.optimizer.cost import Costs
from weft.plan.partitioning.splits import Split

Policy = Literal["round robin", "greedy", "reuse"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Divided(NamedTuple):
    """A pattern divided into shares: the split, and the load of each share."""

    split: Split
    load: float
    shares: int


Divide = Callable[[Composite], Divided | None]


def undivided(pattern: Composite) -> None:
    """Divide no pattern."""


@dataclass
class Placement:
    """The nodes of operators placed so far, by number of the operator, and the load of each node.

    The load of a node is the work of its operators and, for each operand that comes from another node, the rate of
    that input, which counts for both nodes. `divide` says which patterns are divided, with all operators below.
    """

    nodes: int
    policy: Policy
    costs: Costs
    node_of: list[int] = field(default_factory=list)
    operators: list[Composite] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    divide: Divide = undivided
    capacities: tuple[float, ...] = ()  # how much nodes can do, compared with each other; equal unless they are given
    inputs: list[tuple[int, ...]] = field(default_factory=list)  # of each operator, those that are operators
    divided: dict[int, tuple[Split, tuple[int, ...]]] = field(default_factory=dict)  # by number: the nodes of shares
    _known: dict[str, list[int]] = field(default_factory=dict)  # numbers of operators by canonical pattern

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise UsageError(f"unknown policy {self.policy!r}; {did_you_mean(self.policy, POLICIES)}")
        if self.nodes < 1:
            raise UsageError(f"there must be at least one node, not {self.nodes}")
        self.loads = [0.0] * self.nodes
        self.capacities = self.capacities or (1.0,) * self.nodes

    @property
    def busiest(self) -> float:
        """Return the load of the busiest node."""
        return max(map(self._busy, range(self.nodes)))

    def _busy(self, node: int, more: float = 0.0) -> float:
        """Return the load of a node, optionally with additional work."""
        return (self.loads[node] + more) / self.capacities[node]

    def deploy(self, pattern: Composite, *, is_operand: bool = False) -> int | None:
        """Place the operators of a pattern, operands first; the number of the outermost. Sources sit outside."""
        if isinstance(pattern, CompositeEvent):
            return None
        text = repr(canonical(pattern)[0]) if self.policy == "reuse" else ""
        running = self._known.get(text, [])
        if running and not (is_operand and self._are_busy(running, pattern)):
            return min(running, key=lambda number: self._busy(self.node_of[number]))
        shares = self.divide(pattern)
        if shares is not None:
            return self._place_shares(pattern, text, shares)
        operands = [child for child in pattern.children() if isinstance(child, Composite)]
        placed = [(self.deploy(child, is_operand=True), self.costs.profile(child).rate) for child in operands]
        inputs = [
            (node, rate / len(nodes))
            for number, rate in placed
            if number is not None and (nodes := self._sent_by(number))
            for node in nodes
        ]
        work = self.costs.profile(pattern).work
        node = self._chosen(work, inputs)
        self._load(node, work, inputs)
        return self._note(pattern, text, node, tuple(number for number, _ in placed if number is not None))

    def _note(self, pattern: Composite, text: str, node: int, inputs: tuple[int, ...] = ()) -> int:
        """Record a placed operator, and return its number."""
        number = len(self.node_of)
        self.node_of.append(node)
        self.operators.append(pattern)
        self.inputs.append(inputs)
        if text:
            self._known.setdefault(text, []).append(number)
        return number

    def _place_shares(self, pattern: Composite, text: str, divided: Divided) -> int:
        """Place the shares of a pattern, each on the node that has least to do then."""
        nodes = [self.place_elsewhere(divided.load) for _ in range(divided.shares)]
        number = self._note(pattern, text, nodes[0])
        self.divided[number] = divided.split, tuple(nodes)
        return number

    def _sent_by(self, number: int) -> tuple[int, ...]:
        """The nodes that send what an operator finds."""
        return self.divided[number][1] if number in self.divided else (self.node_of[number],)

    def place_elsewhere(self, load: float) -> int:
        """Place something that is no operator of a pattern on the node that has least to do."""
        node = min(range(self.nodes), key=lambda node: self._busy(node, load))
        self.loads[node] += load
        return node

    def _are_busy(self, running: list[int], pattern: Composite) -> bool:
        """Whether a node that sends what it finds once more would be the busiest, and one without the pattern not."""
        profile, nodes = self.costs.profile(pattern), {self.node_of[number] for number in running}
        others = [self._busy(node, profile.work) for node in range(self.nodes) if node not in nodes]
        sends = min(self._busy(node, profile.rate) for node in nodes)
        return bool(others) and sends > max(self.busiest, min(others))

    def _chosen(self, work: float, inputs: list[tuple[int, float]]) -> int:
        """The node for an operator with so much work and these operands."""
        if self.policy == "round robin":
            return len(self.node_of) % self.nodes

        def cost(node: int) -> float:
            return self._busy(node, work + sum(rate for other, rate in inputs if other != node))

        return min(range(self.nodes), key=cost)

    def _load(self, node: int, work: float, inputs: Iterable[tuple[int, float]]) -> None:
        self.loads[node] += work
        for other, rate in inputs:
            if other != node:
                self.loads[node] += rate
                self.loads[other] += rate


def place(patterns: Iterable[Composite], costs: Costs, nodes: int, policy: Policy = "reuse") -> Placement:
    """Place patterns on a number of nodes."""
    placement = Placement(nodes, policy, costs)
    for pattern in patterns:
        placement.deploy(pattern)
    return placement
