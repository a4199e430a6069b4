"""Keys to slots without hashing: integers in a small range, and texts, as long as they are few.

Other keys are found by their hashes, once. This cache may be cleared at any time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.memory.direct_slots import find_direct
from weft.runtime.classify.texts import TextTable

Slots = npt.NDArray[np.int32]
Wholes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
FEW_PLACES = 1 << 16  # a table of so many is small, whatever is in it
PLACES = 16  # for each key, at most: they take as much memory as its hashes do
FEW_KNOWN = 0.25  # of the numbers that are asked for: then it is of no use
LONGEST_PAUSE = 1 << 10
MOST_TEXTS, MOST_BYTES = 1 << 12, 1 << 18  # more do not stay in the cache
AT_ONCE = 1 << 8  # texts: of fewer, to learn new ones takes longer than hashes do
_NO_SLOT = np.full(2, -1, np.int32)  # at the end: of a missing text, and of an unknown one


class DirectNumbers:
    """Cache of the slots of integers.

    Where it does not help, it pauses for an increasing number of batches.
    """

    def __init__(self) -> None:
        self._paused, self._pause = 0, 1  # batches: still to be passed over, and how many the next time
        self.forget()

    def forget(self) -> None:
        """Clear the cache."""
        self._low = 0  # the number with the first place
        self._table = np.zeros(1, np.int32)  # the last place stands for all other numbers

    @property
    def _is_empty(self) -> bool:
        return len(self._table) == 1

    def find(self, values: Wholes) -> tuple[Slots, Rows] | None:
        """Return the slots of numbers, -1 if unknown, and the rows of unknown ones; or None if the cache is empty."""
        if self._paused or self._is_empty:
            return None
        slots = np.empty(len(values), np.int32)
        unknown = find_direct(values, self._low, self._table, slots)
        if len(values) - unknown >= FEW_KNOWN * len(values):
            self._pause = 1
        return slots, np.flatnonzero(slots < 0) if unknown else np.empty(0, np.intp)

    def learn(self, values: Wholes, slots: Slots, asked: int, keys: int) -> None:
        """Add values that were not found, given how many were looked up and how many keys there are."""
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
        """Return the size of the table if it also covered these numbers."""
        if self._is_empty:
            return high - low + 1
        return max(high + 1, self._low + len(self._table) - 1) - min(low, self._low)

    def _cover(self, low: int, high: int) -> None:
        """Extend the table to these numbers, and to as many after them, since numbers of keys mostly grow."""
        spread = self._spread(low, high)
        if spread < len(self._table):
            return
        low = low if self._is_empty else min(low, self._low)
        table = np.zeros(2 * spread + 1, np.int32)
        table[self._low - low :][: len(self._table) - 1] = self._table[:-1] if not self._is_empty else 0
        self._low, self._table = low, table


class DirectTexts:
    """Cache of the slots of texts, until there are many."""

    def __init__(self) -> None:
        self._is_of_use = True
        self.forget()

    def forget(self) -> None:
        """Clear the cache."""
        self._texts, self._slots = TextTable(), _NO_SLOT

    def find(self, texts: pa.Array, hashed: Callable[[pa.Array], Slots]) -> Slots | None:
        """Return the slots of texts, -1 for missing ones, or None if there are too many or too few.

        `hashed` returns those of new texts by their hashes.
        """
        if not self._is_of_use or len(texts) < AT_ONCE:
            return None
        known = len(self._texts)
        ids = self._texts.ids(texts, add=True)
        if len(self._texts) > MOST_TEXTS or self._texts.size > MOST_BYTES:
            self._is_of_use = False
            self.forget()
            return None
        if len(self._texts) > known:
            fresh = hashed(pa.array(self._texts.texts(known), pa.string()))
            self._slots = np.concatenate([self._slots[:known], fresh, _NO_SLOT])
        found: Slots = self._slots[ids]
        return found
