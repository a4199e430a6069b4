"""Many lists of numbers in flat arrays: the input positions that events consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.runtime.data.events import Int64s


class Lists(NamedTuple):
    """List i is values[offsets[i] : offsets[i + 1]]."""

    offsets: Int64s
    values: Int64s

    @property
    def size(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    def take(self, rows: Int64s) -> Lists:
        """Return some of the lists, in this order."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return Lists(offsets, self.values[np.repeat(self.offsets[rows], sizes) + inside])

    @property
    def firsts(self) -> Int64s:
        """The first number of each list, -1 for an empty one."""
        values = np.append(self.values, -1)
        return np.where(np.diff(self.offsets) == 0, -1, values[self.offsets[:-1]])

    @property
    def lasts(self) -> Int64s:
        """The last number of each list, -1 for an empty one."""
        values = np.append(self.values, -1)
        return np.where(np.diff(self.offsets) == 0, -1, values[self.offsets[1:] - 1])


def joined_lists(parts: Sequence[Lists]) -> Lists:
    """Concatenate the lists of all parts."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    values = [part.values[part.offsets[0] : part.offsets[-1]] for part in parts]
    return Lists(np.cumsum(sizes), np.concatenate([np.empty(0, np.int64), *values]))


def single_lists(values: Int64s) -> Lists:
    """Return lists of one number each."""
    return Lists(np.arange(len(values) + 1, dtype=np.int64), values)


def grouped(rows: Int64s, values: Int64s, count: int) -> Lists:
    """Return lists of the values of each row; rows are in order."""
    sizes = np.bincount(rows, minlength=count)
    return Lists(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.int64), values)


def side_by_side(parts: Sequence[Lists]) -> Lists:
    """Return all lists in turns: the first of each part, the second of each part, …"""
    count, width = parts[0].size, len(parts)
    order = (np.arange(width) * count + np.arange(count)[:, None]).ravel()
    joined = joined_lists(parts).take(order)
    return Lists(joined.offsets[::width].copy(), joined.values)
