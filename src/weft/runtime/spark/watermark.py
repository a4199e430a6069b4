"""How far event time has come: from the largest time seen, or from Spark's own watermark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.runtime.reading.kinds import NANOSECONDS

END_OF_TIME = (1 << 63) - 1
_MILLISECOND = NANOSECONDS["ms"]


@dataclass(frozen=True)
class Lateness:
    """The rule for lateness: an event that ends before the watermark is late; a pending one is released when it ends
    before it.

    `delay` ticks: the watermark is the largest end seen so far less the delay, of the slowest source if there are
    several; it moves when a trigger's events are all in, so the order inside a trigger never makes an event late.
    `delay` None: Spark's watermark.

    Each partition of a topic has a separate time, so that a backlog in one is not late because of another.
    """

    delay: int | None
    time_unit: str = "ms"
    sources: int = 1
    jump: int | None = None  # ticks that an event may be ahead of the others before time follows it; None: any
    after_matching: bool = False  # events are matches, which come when the watermark has passed them
    topics: frozenset[int] | None = frozenset()  # sources whose parts have times of their own; None: all of them
    partitions: frozenset[str] = frozenset()  # names of such parts that were there at the beginning
    idle_after: Mapping[int, int] = field(default_factory=dict)  # nanoseconds of the triggers' clock, by source

    def name_of(self, source: int, part: int) -> str:
        """What the time of a part of the input is called: a source has one, a topic one for each partition."""
        return f"{source}/{part}" if self.topics is None or source in self.topics else str(source)

    @property
    def awaited(self) -> frozenset[str]:
        """The names without whose times there is no watermark."""
        topics = self.topics
        plain = () if topics is None else (str(n) for n in range(self.sources) if n not in topics)
        return self.partitions.union(plain)

    def idle_after_of(self, name: str) -> int | None:
        """After how many nanoseconds of the triggers' clock the owner of a time is idle, or None if never."""
        return self.idle_after.get(int(name.partition("/")[0]))

    @property
    def by_spark(self) -> bool:
        """Whether Spark keeps the watermark."""
        return self.delay is None

    def from_spark(self, milliseconds: int) -> int | None:
        """Spark's watermark in ticks; None as long as it has none."""
        if milliseconds <= 0:
            return None
        return milliseconds * _MILLISECOND // NANOSECONDS[self.time_unit]

    def passed_at(self, end: int) -> int:
        """The first Spark watermark (in milliseconds) that has passed an event with this end."""
        return max(1, -(-(end + 1) * NANOSECONDS[self.time_unit] // _MILLISECOND))
