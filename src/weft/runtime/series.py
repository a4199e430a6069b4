"""Time series that grow at one end and are forgotten at the other, for counts and aggregates over windows of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels import series, stretches
from weft.runtime.events import Column, Int64s

Bytes = npt.NDArray[np.uint8]
State = dict[str, Any]

_LEAST_ROOM = 1 << 10
_LONG_AGO = -(1 << 62)


class Series:
    """Entries of many lanes (one for each series and key, numbered from 0), in which times ascend.

    With `valued`, an entry has a value, of which there can be sums, means, and the least and greatest.
    """

    def __init__(self, valued: bool = True) -> None:
        self.lanes: Int64s = np.zeros(0, np.int64)
        self.horizon = _LONG_AGO
        self._valued = valued
        self._used = 1  # the first place stays blank: lanes without entries are there
        self._take(_LEAST_ROOM)

    def append(self, lanes: Int64s, times: Int64s, kinds: Bytes | None = None, words: Int64s | None = None) -> None:
        """Append entries; those with a negative lane are left out."""
        if not len(lanes):
            return
        kinds = np.zeros(len(lanes), np.uint8) if kinds is None else kinds
        words = times if words is None else words
        self.add_lanes(int(lanes.max()) + 1)
        done = 0
        while True:
            arena = (self.lanes, self.times, self.records, self.numbers)
            done, self._used = series.append(*arena, self._used, self.horizon, lanes, times, kinds, words, done)
            if done == len(lanes):
                return
            self._rebuild(len(lanes) - done)

    def summarize(self, functions: Bytes, lanes: Int64s, lows: Int64s, highs: Int64s) -> tuple[Bytes, Int64s]:
        """Functions of the entries from low to high, both included: the kinds of their values, and the values."""
        kinds, words = np.empty(len(lanes), np.uint8), np.empty(len(lanes), np.int64)
        arena = (self.times, self.records, self.numbers)
        stretches.summarize(self.lanes, *arena, functions, lanes, lows, highs, kinds, words)
        return kinds, words

    def are_empty(self, lanes: Int64s, lows: Int64s, highs: Int64s) -> npt.NDArray[np.bool_]:
        """Which of the stretches, from low to high, both included, have no entry."""
        empty = np.empty(len(lanes), np.uint8)
        stretches.find_empty(self.lanes, self.times, lanes, lows, highs, empty)
        return empty.view(np.bool_)

    def forget(self, before: int) -> None:
        """Nobody asks for entries before this time any more; they go when room is needed."""
        self.horizon = max(self.horizon, before)

    def add_lanes(self, count: int) -> None:
        """Let there be at least so many lanes; asking for one that is not there is an error."""
        missing = count * series.LANE - len(self.lanes)
        if missing > 0:
            self.lanes = np.concatenate([self.lanes, np.zeros(max(missing, len(self.lanes)), np.int64)])

    def state(self) -> State:
        """Everything, to go on from later."""
        arena = {name: getattr(self, name).copy() for name in ("lanes", "times", "records")}
        return {"valued": self._valued, "horizon": self.horizon, "used": self._used, **arena}

    @classmethod
    def restored(cls, state: State) -> Series:
        """What it was when the state was taken."""
        restored = cls(state["valued"])
        restored.horizon, restored._used = state["horizon"], state["used"]
        for name in ("lanes", "times", "records"):
            setattr(restored, name, state[name].copy())
        restored.numbers = restored.records.view(np.float64)
        return restored

    def _take(self, room: int) -> None:
        """A fresh arena."""
        self.times: Int64s = np.zeros(room, np.int64)
        self.records: Int64s = np.zeros(room * series.RECORD if self._valued else 0, np.int64)
        self.numbers: npt.NDArray[np.float64] = self.records.view(np.float64)

    def _rebuild(self, count: int) -> None:
        """Move to an arena in which so many more entries fit, whichever lanes they are of."""
        times, records = self.times, self.records
        kept = int(self.lanes[series.KEPT :: series.LANE].sum())
        busy = int(np.count_nonzero(self.lanes[series.KEPT :: series.LANE]))
        # Every lane has twice the room it needs, and may move once more while it grows.
        self._take(max(len(self.times), 1 + 4 * (kept + count) + (series.LEAST_ROOM + 1) * (busy + count)))
        self._used = series.rebuild(self.lanes, times, records, self.horizon, self.times, self.records)


def words_of(column: Column, count: int) -> tuple[Bytes, Int64s]:
    """The values of an attribute of so many events as series take them: kinds, and numbers."""
    kinds, words = np.zeros(count, np.uint8), np.zeros(count, np.int64)
    for present in (column.texts, column.booleans):
        if present is not None:
            kinds[np.asarray(present.is_valid())] = series.OTHER
    if column.numbers is not None:
        floats = column.numbers.type == "double"
        valid = np.asarray(column.numbers.is_valid())
        values = column.numbers.fill_null(0).to_numpy()
        kinds[valid] = series.FLOAT if floats else series.INTEGER
        words[valid] = values.view(np.int64)[valid]
    return kinds, words
