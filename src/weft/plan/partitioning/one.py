"""Strategy `one`: a single lane has all events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.plan.partitioning.splits import Split, Strategy
from weft.plan.properties import Family


@dataclass(frozen=True)
class One(Split):
    """One lane, whatever number is wanted."""

    strategy: ClassVar[Strategy] = "one"

    def lanes(self, wanted: int) -> int:
        """One."""
        return 1


def one(family: Family) -> One:
    """Always possible."""
    return One("one lane")
