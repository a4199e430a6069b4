"""What a running program did in one trigger, and how its lanes stood after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Standing:
    """A lane after a trigger.

    `held` events wait for the watermark; the oldest event that a later match may tell of came `behind` events ago (0:
    nothing waits); `lag` are the ticks from the watermark to the latest event, if both are known.
    """

    lane: int
    taken: int
    held: int
    behind: int
    state_bytes: int
    lag: int | None = None


@dataclass(frozen=True)
class Trigger:
    """One trigger: when it ended (seconds since 1970), how long it took, what came and what was found."""

    number: int
    at: float
    seconds: float
    events: int
    late: int
    unreadable: int
    matches: Mapping[str, int]  # by query
    lanes: tuple[Standing, ...] = ()

    @property
    def state_bytes(self) -> int:
        """The state of all lanes."""
        return sum(lane.state_bytes for lane in self.lanes)

    @property
    def held(self) -> int:
        """The events that wait for the watermark, of the lane that has most: lanes may share events."""
        return max((lane.held for lane in self.lanes), default=0)

    @property
    def behind(self) -> int:
        """How many events ago the oldest came that a later match may tell of."""
        return max((lane.behind for lane in self.lanes), default=0)

    @property
    def lag(self) -> int | None:
        """The ticks from the watermark to the latest event."""
        return max((lane.lag for lane in self.lanes if lane.lag is not None), default=None)

    def to_json(self) -> dict[str, object]:
        """As plain data, with what follows from it."""
        more = {"state_bytes": self.state_bytes, "held": self.held, "behind": self.behind, "lag": self.lag}
        return {**asdict(self), **more}

    def __str__(self) -> str:
        """One line, for a log."""
        found = ", ".join(f"{name} {count:,}" for name, count in self.matches.items() if count)
        parts = [
            f"{self.events:,} events",
            f"{sum(self.matches.values()):,} matches" + (f" ({found})" if found else ""),
            *([f"{self.late:,} late"] if self.late else []),
            *([f"{self.unreadable:,} unreadable"] if self.unreadable else []),
            f"{self.seconds:.2f} s",
            f"lag {self.lag if self.lag is not None else '-'}",
            f"{self.held:,} held",
            f"state {self.state_bytes:,} bytes",
        ]
        return f"trigger {self.number}: {', '.join(parts)}"
