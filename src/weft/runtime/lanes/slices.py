"""Slices of time or of positions: which of them a lane sees, and whose turn each is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.plan.partitioning.by_slice import BySlice
from weft.runtime.events import Int64s

Mask = npt.NDArray[np.bool_]


def seen(values: Int64s, split: BySlice, share: int, shares: int) -> Mask:
    """Which of the events that end then (or stand there) a lane sees: those in its slices, and around them."""
    first = (values - split.ahead - split.origin) // split.size
    last = (values + split.back - split.origin) // split.size
    found: Mask = (share - first) % shares <= last - first
    return found


def own(values: Int64s, split: BySlice, share: int, shares: int) -> Mask:
    """Which of the matches that end then (or there) are those of a lane."""
    found: Mask = (values - split.origin) // split.size % shares == share
    return found
