"""Slices of time or of positions: which lane owns each, and which slices a lane receives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.plan.partitioning.by_slice import BySlice
from weft.runtime.data.events import Int64s

Mask = npt.NDArray[np.bool_]


def seen(values: Int64s, split: BySlice, share: int, shares: int) -> Mask:
    """Return which events with these ends (or positions) a lane receives: those in and around its slices."""
    first = (values - split.ahead - split.origin) // split.size
    last = (values + split.back - split.origin) // split.size
    found: Mask = (share - first) % shares <= last - first
    return found


def rows_seen(values: Int64s, split: BySlice, shares: int) -> list[npt.NDArray[np.signedinteger]]:
    """Return for each lane the rows of the events that it receives, found together, as few lanes receive each event."""
    first = (values - split.ahead - split.origin) // split.size
    last = (values + split.back - split.origin) // split.size
    widths = np.minimum(last - first + 1, shares)
    rows = np.repeat(np.arange(len(values)), widths)
    steps = np.arange(len(rows)) - np.repeat(np.cumsum(widths) - widths, widths)
    lanes = (np.repeat(first, widths) + steps) % shares
    order = np.argsort(lanes.astype(np.uint16), kind="stable")  # by radix, in linear time
    return np.split(rows[order], np.cumsum(np.bincount(lanes, minlength=shares))[:-1])


def own(values: Int64s, split: BySlice, share: int, shares: int) -> Mask:
    """Return which matches with these ends (or positions) a lane owns."""
    found: Mask = (values - split.origin) // split.size % shares == share
    return found
