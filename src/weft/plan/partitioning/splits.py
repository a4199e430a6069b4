"""What a strategy says: a split (how events come to lanes, and which lane tells a match), or why there is none.

A split is a value of the plan. `runtime/lanes/` does what it says: `routing.py` gives each lane its events, `owning.py`
its matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from weft.algebra.query import AnyQuery
from weft.tree import Node

Strategy = Literal["key", "slice", "replicate", "query", "rank", "match", "one"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


@dataclass(frozen=True)
class Split(Node):
    """How the work of some queries is shared out. `reason` is for people."""

    strategy: ClassVar[Strategy]
    copies: ClassVar[bool] = False  # whether several lanes may see one event
    reason: str

    def lanes(self, wanted: int) -> int:
        """How many lanes there are when so many are wanted."""
        return wanted

    def dealt(self, queries: tuple[int, ...], wanted: int) -> list[tuple[int, ...]]:
        """The queries of each lane, when so many lanes are wanted: all of them, as a rule."""
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
    """Why a strategy is none for some queries: the operator and the condition that stand against it."""

    reason: str


@dataclass(frozen=True)
class Lane(Node):
    """Lane `share` of `shares` of some queries; `id` is a number of its own among all lanes of a plan.

    Of the input it is given events of `types` (None: of all), as far as its split does not give them to others. What
    the queries in `mute` find is seen by others here, and told by another lane.
    """

    id: int
    queries: tuple[int, ...]
    split: Split
    share: int
    shares: int
    types: frozenset[str] | None = None
    mute: frozenset[int] = frozenset()
