"""The options that public functions and commands share, as one value with groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weft.optimizer.pipeline import DEFAULT, Choices
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.guarding import NO_LIMITS, Limits
from weft.runtime.reading.fronts import MAX_JUMP
from weft.runtime.reading.idleness import IdleAfter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

AUTO = "auto"  # of `scan` and `state`: weft chooses


@dataclass(frozen=True)
class EventColumns:
    """Columns with times and types, columns that order events with equal times, and columns that identify events."""

    time: str = "ts"
    type: str = "type"
    order: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, Any]:
        """The columns as keyword arguments."""
        return dict(vars(self))


@dataclass(frozen=True)
class Arrival:
    """How live sources are merged: ticks by which a source's events may be out of order, and when one is idle.

    `idle_after`: seconds, or "rate": as long as one event takes by the rate that the program declares for the source.

    `max_jump`: seconds by which an event may be ahead of all sources before time follows it (see `Front`).
    """

    delay: int = 0
    idle_after: IdleAfter = "rate"
    max_jump: float | None = MAX_JUMP

    @property
    def is_asked_for(self) -> bool:
        """Whether any option is set that only live sources support."""
        return replace(self, idle_after=None) != Arrival(idle_after=None) or self.idle_after not in ("rate", None)


@dataclass(frozen=True)
class Options:
    """How a program runs: how events are read, how work is split, how it is optimised, and its limits."""

    columns: EventColumns = field(default_factory=EventColumns)
    arrival: Arrival = field(default_factory=Arrival)
    sharing: Sharing = field(default_factory=Sharing)
    choices: Choices = DEFAULT
    limits: Limits = NO_LIMITS

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the options among the arguments of a public function, by their names."""
        usual = Arrival()
        jump = given.get("max_jump", usual.max_jump)
        return cls(
            EventColumns(
                given["time"], given["type"], as_columns(given.get("order", ())), as_columns(given.get("key", ()))
            ),
            Arrival(given.get("delay") or 0, given.get("idle_after", usual.idle_after), jump),
            Sharing(given.get("strategy"), given.get("lanes"), given.get("threads")),
            Choices.of(given.get("optimize", True), given.get("statistics")),
            Limits(given.get("budget"), given.get("shed")),
        )


USUAL = Options()


@dataclass(frozen=True)
class FrameOptions:
    """Options of `weft.match` only, for matches in Spark DataFrames; each is described there."""

    rejects: bool = False
    rows: bool = False
    positions: bool = False
    columns: Sequence[str] | None = None
    heavy_keys: bool = False
    delay: int | None = None
    adapt: bool = False
    checkpoint: str | Path | None = None
    scan: str = AUTO
    state: str = AUTO
    payload: StructType | str | None = None
    schema: StructType | None = None
    streaming: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the options among the arguments of `weft.match`, by their names."""
        return cls(**{own.name: given[own.name] for own in fields(cls)})

    @property
    def asked_for(self) -> frozenset[str]:
        """The options that differ from their defaults."""
        return frozenset(own.name for own in fields(self) if getattr(self, own.name) != own.default)


def as_columns(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several columns as a tuple of names."""
    return (names,) if isinstance(names, str) else tuple(names)
