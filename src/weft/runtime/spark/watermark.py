"""How far event time has come: from the largest time seen, or from Spark's own watermark."""

from __future__ import annotations

from dataclasses import dataclass

from weft.runtime.reading.kinds import NANOSECONDS

END_OF_TIME = (1 << 63) - 1
_MILLISECOND = NANOSECONDS["ms"]


@dataclass(frozen=True)
class Lateness:
    """Who decides what is late. An event that ends before the watermark is late; one that waits goes on once it does.

    `delay` ticks: the watermark is the largest end seen so far less the delay, of the source that is behind the
    others if there are several; it moves when a trigger's events are all in, so the order inside a trigger never
    makes an event late. `delay` None: Spark's watermark.
    """

    delay: int | None
    time_unit: str = "ms"
    sources: int = 1
    after_matching: bool = False  # events are matches, which come when the watermark has passed them

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
