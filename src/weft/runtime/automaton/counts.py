"""Numbers of matches, exact whatever their size: the arrays that the counting kernel fills, as wide as it needs."""

from __future__ import annotations

import numpy as np

from weft.errors import InputError
from weft.kernels.automaton.counting import FILLED, MARKS, Counts

MOST_BYTES = 2 << 30  # for the numbers of all nodes
_WORD_BITS = 64


class PathCounts:
    """How many paths each node of a ring has. They follow from the nodes, so they are no part of the state."""

    def __init__(self, ring: int, before: PathCounts | None = None) -> None:
        """For a ring of so many nodes; with the size of numbers, and the total, of those before it grew."""
        self.arrays: Counts = _empty(ring, 1 if before is None else before.arrays.size)
        if before is not None:
            self.arrays.total[:] = before.arrays.total

    def take(self) -> int:
        """The matches counted since this was asked last."""
        total = int.from_bytes(self.arrays.total.astype("<u8").tobytes(), "little")
        self.arrays.total[:] = 0
        return total

    def forget(self) -> None:
        """The nodes have other ids now."""
        self.arrays.marks[FILLED] = 0
        self.arrays.known[:] = 0

    def widen(self, query: str) -> None:
        """Make room for larger numbers; nodes get theirs again when they are asked for."""
        old, ring = self.arrays, len(self.arrays.known)
        size = 2 * old.size
        if 16 * size * ring > MOST_BYTES:
            digits = int(size * _WORD_BITS * np.log10(2))
            raise InputError(
                f"query {query!r} has too many matches to be counted: their number has more than {digits // 2:,} "
                "digits; bound it with WITHIN, or keep fewer of an event's matches with NEXT, LAST, MAX or LIMIT"
            )
        self.arrays = _empty(ring, size)
        self.arrays.total[: old.size + 1] = old.total


def _empty(ring: int, size: int) -> Counts:
    return Counts(
        paths=np.zeros(ring * size, np.uint64),
        eldest=np.zeros(ring, np.int64),
        inside=np.zeros(ring * size, np.uint64),
        known=np.zeros(ring, np.int64),
        marks=np.zeros(MARKS, np.int64),
        total=np.zeros(size + 1, np.uint64),
        size=size,
    )
