"""Shared prefix of several situations, evaluated once per batch: which events end a set of the prefix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.operators.situations.keyed import KeyedRun
from weft.runtime.operators.situations.stage import Stage

Mask = npt.NDArray[np.bool_]
_NOTHING = np.empty(0, bool)


class Beginning:
    """The first slots of situations. All of these request each batch; the first request evaluates it.

    A prefix that is added later than the situations lacks events of partitions that are open then. Until `ready`, the
    time at which these have closed, every event may end a set; `ready` is None if it knows all events.
    """

    def __init__(self, part: KeyedRun | Stage, ready: int | None = None) -> None:
        self.part = part
        self.ready = ready
        self._batch: EventBatch | None = None
        self._ends: Mask = _NOTHING

    def ends(self, batch: EventBatch) -> Mask:
        """Return a mask of the events that may end a set."""
        if batch is not self._batch:
            found = list(self._found(batch))
            if self.ready is not None and int(batch.ends[0]) >= self.ready:
                self.ready = None
            self._batch, self._ends = batch, np.full(len(batch), self.ready is not None)
            if found and self.ready is None:
                self._ends = np.isin(batch.positions, np.concatenate(found))
        return self._ends

    def advance(self, time: int) -> None:
        """Close partitions: no later event ends before this time."""
        if isinstance(self.part, Stage):
            for _ in self.part.take(blocks.empty(), time):
                pass

    def _found(self, batch: EventBatch) -> Iterator[Int64s]:
        """Yield the positions of the last events of sets."""
        if isinstance(self.part, KeyedRun):
            yield from (found.positions[found.offsets[1:] - 1] for found in self.part.push(batch))
        else:
            for sets in self.part.take(batch, int(batch.ends[-1])):
                yield self.part.members.places(sets[:, -1])
