"""Whole numbers that lie close together to slots, by a table with a place for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.memory.direct_slots import find_direct

Slots = npt.NDArray[np.int32]
Wholes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
FEW_PLACES = 1 << 16  # a table of so many is small, whatever is in it
PLACES = 16  # for each key, at most: they take as much memory as its hashes do
FEW_KNOWN = 0.25  # of the numbers that are asked for: then it is of no use
LONGEST_PAUSE = 1 << 10


class DirectKeys:
    """The slots of numbers, as far as they are known: others are found by their hashes, once.

    Where it is of no use, it pauses for some batches, each time for more.
    """

    def __init__(self) -> None:
        self._paused, self._pause = 0, 1  # batches: still to be passed over, and how many the next time
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        self._low = 0  # the number with the first place
        self._table = np.zeros(1, np.int32)  # the last place stands for all other numbers

    @property
    def _is_empty(self) -> bool:
        return len(self._table) == 1

    def find(self, values: Wholes) -> tuple[Slots, Rows] | None:
        """The slots of numbers, -1 where they are not known, and the rows where that is so; None: nothing is known."""
        if self._paused or self._is_empty:
            return None
        slots = np.empty(len(values), np.int32)
        unknown = find_direct(values, self._low, self._table, slots)
        if len(values) - unknown >= FEW_KNOWN * len(values):
            self._pause = 1
        return slots, np.flatnonzero(slots < 0) if unknown else np.empty(0, np.intp)

    def learn(self, values: Wholes, slots: Slots, asked: int, keys: int) -> None:
        """Know those, too, that were not known of so many that were asked for, of so many keys in all."""
        if self._paused:
            self._paused -= 1
            return
        most, are_most = max(FEW_PLACES, PLACES * keys), asked - len(values) < FEW_KNOWN * asked
        low, high = int(values.min()), int(values.max())
        if are_most:
            self._paused, self._pause = self._pause - 1, min(2 * self._pause, LONGEST_PAUSE)
            if self._spread(low, high) > most:
                self.forget()
        if self._spread(low, high) <= most:
            self._cover(low, high)
        inside = (values >= self._low) & (values < self._low + len(self._table) - 1)
        self._table[values[inside] - self._low] = slots[inside] + 1

    def _spread(self, low: int, high: int) -> int:
        """How many places it takes to have these numbers, too."""
        if self._is_empty:
            return high - low + 1
        return max(high + 1, self._low + len(self._table) - 1) - min(low, self._low)

    def _cover(self, low: int, high: int) -> None:
        """Have places for these numbers, too, and for as many after them: numbers of keys mostly grow."""
        spread = self._spread(low, high)
        if spread < len(self._table):
            return
        low = low if self._is_empty else min(low, self._low)
        table = np.zeros(2 * spread + 1, np.int32)
        table[self._low - low :][: len(self._table) - 1] = self._table[:-1] if not self._is_empty else 0
        self._low, self._table = low, table
