"""Queries that move to other lanes, when a run is restarted with another number of lanes or another strategy.

The new lanes have seen none of the earlier events. Once these have been released, and the time that a match reaches
back has passed, the new lanes know everything that decides about a match: until then the old lanes emit matches, and
afterwards the new ones. Then the old ones end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from weft.plan.partitioning.reach import Reach
from weft.plan.partitioning.splits import Refused


@dataclass(frozen=True)
class Handover:
    """Of one query: from the point on at which all events of the triggers up to this one have gone on, `back` more.

    `unit`: whether these are ticks ("time") or positions ("events"). `heir`: its number in the other lanes.
    """

    trigger: int
    back: int
    unit: str
    heir: int


@dataclass(frozen=True)
class Move:
    """Queries that are to have other lanes, by their places in a program: how far their matches reach back.

    Or why there is no bound to that: then they stay in the lanes that they have.
    """

    places: tuple[int, ...]
    names: str
    reach: Reach | Refused

    @property
    def is_possible(self) -> bool:
        """Whether they can go over."""
        return isinstance(self.reach, Reach)

    def __str__(self) -> str:
        """One line, for people."""
        if isinstance(self.reach, Refused):
            return f"{self.names}: stays in the lanes that it has: {self.reach.reason}"
        ticks = "ticks" if self.reach.unit == "time" else "events"
        return f"{self.names}: goes over to other lanes, {self.reach.back:,} {ticks} after the first events"


def to_rows(handovers: Mapping[int, Handover]) -> list[list[Any]]:
    """As plain data."""
    return [[number, *astuple(over)] for number, over in handovers.items()]


def from_rows(rows: Sequence[Sequence[Any]]) -> dict[int, Handover]:
    """What `to_rows` made into plain data."""
    return {number: Handover(*over) for number, *over in rows}
