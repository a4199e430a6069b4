"""The result of a strategy: a split (how events are routed, and which lane emits a match), or why there is none.

A split is a value of the plan, executed by `runtime/lanes/`: `routing.py` assigns events to lanes, `ownership.py`
filters matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal, get_args

from weft.algebra.query import AnyQuery
from weft.errors import UsageError
from weft.tree import Node

Strategy = Literal["key", "slice", "replicate", "query", "rank", "match", "one"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
PLACED = "placed"  # the strategy of a whole program: operators on nodes, in stages


def is_placed(strategy: str | None) -> bool:
    """Whether operators are placed on nodes, which may be of different capacities."""
    return strategy is not None and strategy.partition(":")[0] == PLACED


def capacities_of(strategy: str | None) -> tuple[float, ...]:
    """The capacities of nodes that a strategy names (`placed:2,1,1`); none are equal nodes."""
    _, colon, text = (strategy or "").partition(":")
    if not is_placed(strategy) or not colon:
        return ()
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = ()
    if not found or not all(0 < capacity < inf for capacity in found):
        raise UsageError(f"capacities of nodes are numbers above 0, as in placed:2,1,1, not {text!r}")
    return found


@dataclass(frozen=True)
class Split(Node):
    """How the work of some queries is split. `reason` explains it to users."""

    strategy: ClassVar[Strategy]
    copies: ClassVar[bool] = False  # whether several lanes may see one event
    reason: str

    def lanes(self, wanted: int) -> int:
        """Return the number of lanes used when `wanted` are requested."""
        return wanted

    def dealt(self, queries: tuple[int, ...], wanted: int) -> list[tuple[int, ...]]:
        """Return the queries of each lane when `wanted` lanes are requested: by default all of them."""
        return [queries] * self.lanes(wanted)

    def muted(self, dealt: Sequence[tuple[int, ...]]) -> list[frozenset[int]]:
        """The queries of each lane whose matches another lane tells: none, as a rule."""
        return [frozenset()] * len(dealt)

    def numbered_from(self, first: int) -> Split:
        """The same for queries with numbers that are larger by so much."""
        return self

    def rewritten(self, query: AnyQuery) -> AnyQuery:
        """The query as lanes run it."""
        return query


@dataclass(frozen=True)
class Refused:
    """Why a strategy does not apply to queries: the operator and the condition that prevent it."""

    reason: str


@dataclass(frozen=True)
class Lane(Node):
    """Lane `share` of `shares` of some queries; `id` is unique among all lanes of a plan.

    It is given the input events of `types` (None: of all) that its split does not route elsewhere. Matches of the
    queries in `mute` are read by other queries of this lane, and emitted by another lane. At a `stage` after the first
    it reads what lanes before it send.
    """

    id: int
    queries: tuple[int, ...]
    split: Split
    share: int
    shares: int
    types: frozenset[str] | None = None
    mute: frozenset[int] = frozenset()
    stage: int = 0
