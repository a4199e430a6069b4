"""Events far ahead of the stream: set aside until further events confirm them, so that none becomes late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.reading.fronts import CONFIRM, Front, jump_ticks
from weft.runtime.reading.order import stream_order


class SetAside:
    """The front of a stream, and its events that are more than `max_jump` seconds ahead (None: no limit)."""

    def __init__(self, max_jump: float | None) -> None:
        self.max_jump = max_jump
        self.front = Front(agree=1)
        self.held: EventBatch | None = None
        self.before: int | None = 0

    def __len__(self) -> int:
        return 0 if self.held is None else len(self.held)

    def take(self, batch: EventBatch, time_unit: str) -> EventBatch:
        """Return the events of a batch, and of those set aside, that are to be matched now, in stream order."""
        jump = jump_ticks(self.max_jump, time_unit)
        time = self.front.take(batch.ends, jump)
        if self.held is None and time is not None and int(batch.ends[-1]) <= time:
            return batch
        return self._parted(batch, time)

    def is_refuted(self, late_ends: Sequence[int], taken: int, time_unit: str) -> bool:
        """Whether these events, which came too late, show that the few `taken` so far were in the far future."""
        jump, time = jump_ticks(self.max_jump, time_unit), self.front.time
        if taken >= CONFIRM:
            self.before = None
        if jump is None or time is None or self.before is None:
            return False
        self.before += sum(end < time - jump for end in late_ends)
        return self.before >= CONFIRM

    def begin_anew(self) -> None:
        """Let the next event set the front; events set aside stay so."""
        self.front, self.before = Front(agree=1), 0

    def passed(self, time: int) -> EventBatch:
        """Return the events set aside that end by a time that has passed."""
        self.front.pass_time(time)
        self.before = None
        return self._parted(blocks.empty(), self.front.time)

    def rest(self) -> EventBatch:
        """Return all events set aside: the stream has ended."""
        held, self.held = self.held, None
        return blocks.empty() if held is None else held

    def _parted(self, batch: EventBatch, time: int | None) -> EventBatch:
        whole = batch
        if self.held is not None and len(batch):
            together = blocks.concat([self.held, batch])
            whole = blocks.take(together, stream_order(together.starts, together.ends))
        elif self.held is not None:
            whole = self.held
        count = 0 if time is None else int(np.searchsorted(whole.ends, time, side="right"))
        self.held = blocks.slice(whole, count) if count < len(whole) else None
        return blocks.slice(whole, 0, count)


def numbered(batch: EventBatch, first: int, *, gaps: bool) -> EventBatch:
    """A batch whose positions ascend from `first` on; with `gaps` as near to those it has as that allows."""
    count = len(batch)
    if int(batch.positions[0]) == first and int(batch.positions[-1]) == first + count - 1:
        return batch
    least: Int64s = np.arange(first, first + count)
    return replace(batch, positions=np.maximum(np.sort(batch.positions), least) if gaps else least)
