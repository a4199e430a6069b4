"""Lane groups: the queries that are split by the same strategy, and the split."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.plan.keys import Key
from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.splits import Split
from weft.tree import Node


@dataclass(frozen=True)
class LaneGroup(Node):
    """Queries whose work is shared out to lanes in one way, without changing the answer.

    Of the input only events of `types` matter to them, or None if all do. Where operators are placed, `nodes` has the
    node of each lane, and lanes of a later `stage` read what those of earlier ones send.
    """

    split: Split
    queries: tuple[int, ...]
    types: frozenset[str] | None = None
    nodes: tuple[int, ...] = ()
    stage: int = 0

    def numbered_from(self, first: int) -> LaneGroup:
        """The same for queries with numbers that are larger by so much."""
        numbers = tuple(first + number for number in self.queries)
        return replace(self, split=self.split.numbered_from(first), queries=numbers)

    @property
    def key(self) -> Key:
        """The key that they are split by, if they are split by one."""
        return self.split.key if isinstance(self.split, ByKey) else ()

    @property
    def reason(self) -> str:
        """Why they are split in this way, for people."""
        return self.split.reason
