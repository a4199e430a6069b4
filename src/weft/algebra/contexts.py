"""Contexts: how a stream is divided into the partitions in which a situation is looked for.

A partition holds events, has a start and an end, and closes when event time has passed its end; the end of a finite
stream is the end of event time. With `by`, each partition is divided further: its events agree in the values of these
attributes, and an event that lacks one of them is in no partition. Partitions may share events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.tree import Node


@dataclass(frozen=True)
class Context(Node):
    """A division of a stream into partitions, further divided by the values of attributes."""

    by: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if len(set(self.by)) < len(self.by):
            raise ValueError(f"an attribute twice in {', '.join(self.by)}")

    @property
    def bound(self) -> int | None:
        """The ticks that a partition lasts, or None if there is no bound."""
        return None


@dataclass(frozen=True)
class Whole(Context):
    """The whole stream as one partition: from the start of its first event to the last end of any input event."""


WHOLE = Whole()
# An absence in windows tells so many windows of a run of windows without a candidate one by one.
TOLD_SINGLY = 10_000


@dataclass(frozen=True)
class Windows(Context):
    """Partitions [k * step, k * step + length) for every integer k; an event is in those that it lies wholly in.

    Partitions without events count when they meet the time from the start of the first event (with `by`: of those
    values) to the last end of any input event.

    In an absence, windows without a candidate that follow each other (with `by`: of the same values) form a run. Its
    first TOLD_SINGLY windows are partitions of their own. The next TOLD_SINGLY are one partition, from the start of the
    first to the end of the last, then twice as many, and so on; the last of these ends with the run. So one event in
    the far future leads to few partitions, not to one for each window before it.
    """

    length: int
    step: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self.length)
        _require_positive(self.step)

    @property
    def bound(self) -> int:
        """The ticks that a partition lasts."""
        return self.length


@dataclass(frozen=True)
class Forgetting(Windows):
    """Windows of which those without events count as long as their values are known.

    Values are known from the start of their first event to `forget` ticks after the last end of their events so far.
    An event that starts when all windows that meet this time have ended begins a new such time. One that ends when
    they have, but started before, prolongs it; a run of windows ends there too.
    """

    forget: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self.forget)


@dataclass(frozen=True)
class FromUntil(Context):
    """A partition for each event of the type `opener`: from it to the first `closer` after it, both included.

    After means in stream order. Without a closer the partition never closes. It lasts from the start of the one to
    the end of the other. With `by`, opener and closer agree in the attributes too.
    """

    opener: str
    closer: str


@dataclass(frozen=True)
class FromFor(Context):
    """A partition [o.start, o.start + length) for each event o of the type `opener`.

    In it are the events from o on, in stream order, that end before the partition does.
    """

    opener: str
    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self.length)

    @property
    def bound(self) -> int:
        """The ticks that a partition lasts."""
        return self.length


def _require_positive(ticks: int) -> None:
    if ticks <= 0:
        raise ValueError(f"a span of time has at least one tick, not {ticks}")
