"""What a running program did in one trigger, and how its lanes stood after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from weft.errors import plural
from weft.runtime.watching.left_out import in_words


class OperatorStats(NamedTuple):
    """Operators that run together: events received, matches emitted, and size of the pending state.

    The pending state is everything that may still become part of a match: the nodes of a match graph, occurrences,
    events in open partitions or within reach of rules. One item may represent many partial matches.
    """

    name: str
    received: int
    emitted: int
    waiting: int

    def since(self, before: OperatorStats | None) -> OperatorStats:
        """What was received and emitted since another time."""
        if before is None or before.received > self.received:
            return self
        return self._replace(received=self.received - before.received, emitted=self.emitted - before.emitted)


@dataclass(frozen=True)
class Standing:
    """A lane after a trigger.

    `held` events wait for the watermark; the oldest event that a later match may contain came `behind` events ago (0:
    none is pending); `lag` are the ticks from the watermark to the latest event, if both are known; `changes` says how
    often its queries have changed their form, `changes_refused` how often they could not; `counted` is what it counted
    of the events (`runtime/watching/tallies.py`).
    """

    lane: int
    taken: int
    held: int
    behind: int
    state_bytes: int
    lag: int | None = None
    operators: tuple[OperatorStats, ...] = ()  # what they did in this trigger, and what waits after it
    changes: int = 0
    changes_refused: int = 0
    counted: Mapping[str, Any] | None = None
    watermark: int | None = None
    reached: Mapping[str, int] = field(default_factory=dict)  # by number of a source, the latest time that it sent

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Standing:
        """From plain data."""
        return cls(**{**told, "operators": tuple(OperatorStats(*one) for one in told.get("operators", ()))})

    @property
    def waiting(self) -> int:
        """How much waits in the lane."""
        return sum(operator.waiting for operator in self.operators)


@dataclass(frozen=True)
class Trigger:
    """One trigger: when it ended (seconds since 1970), its duration, events received and matches found."""

    number: int
    at: float
    seconds: float
    events: int
    late: int
    unreadable: int
    matches: Mapping[str, int]  # by query
    lanes: tuple[Standing, ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict)  # by query and step: partial matches that reached it
    left_out: Mapping[str, int] = field(default_factory=dict)  # within limits, by name of the counter

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
        """The number of events since the oldest one that a later match may contain."""
        return max((lane.behind for lane in self.lanes), default=0)

    @property
    def lag(self) -> int | None:
        """The ticks from the watermark to the latest event."""
        return max((lane.lag for lane in self.lanes if lane.lag is not None), default=None)

    @property
    def waiting(self) -> int:
        """How much waits to become part of a match, in all lanes."""
        return sum(lane.waiting for lane in self.lanes)

    @property
    def changes(self) -> int:
        """How often queries have changed their form, in all lanes, since the stream began."""
        return sum(lane.changes for lane in self.lanes)

    @property
    def changes_refused(self) -> int:
        """How often another form would have been cheaper of a query that cannot change."""
        return sum(lane.changes_refused for lane in self.lanes)

    def to_json(self) -> dict[str, object]:
        """As plain data, with what follows from it."""
        more = {name: getattr(self, name) for name in ("state_bytes", "held", "behind", "lag", "waiting")}
        more |= {name: count for name in ("changes", "changes_refused") if (count := getattr(self, name))}
        return {**asdict(self), **more}

    def __str__(self) -> str:
        """One line, for a log."""
        found = ", ".join(f"{name} {count:,}" for name, count in self.matches.items() if count)
        parts = [
            plural(self.events, "event"),
            plural(sum(self.matches.values()), "match", "matches") + (f" ({found})" if found else ""),
            *([f"{self.late:,} late"] if self.late else []),
            *([f"{self.unreadable:,} unreadable"] if self.unreadable else []),
            *in_words(self.left_out, self.matches),
            f"{self.seconds:.2f} s",
            f"lag {self.lag if self.lag is not None else '-'}",
            f"{self.held:,} held",
            f"state {self.state_bytes:,} bytes",
            *([f"{self.changes:,} changes of form"] if self.changes else []),
            *([f"{self.changes_refused:,} changes of form refused"] if self.changes_refused else []),
        ]
        return f"trigger {self.number}: {', '.join(parts)}"
