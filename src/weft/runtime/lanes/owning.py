"""Which of the matches that a lane finds it tells: where events are copied, others may find them too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.splits import Lane
from weft.runtime.events import Int64s
from weft.runtime.lanes.slices import own
from weft.runtime.matches import MatchBatch


def owned(found: Iterator[MatchBatch], lane: Lane | None) -> Iterator[MatchBatch]:
    """The matches that it falls to this lane to tell."""
    if lane is None or not isinstance(lane.split, BySlice):
        yield from found
        return
    split = lane.split
    for batch in found:
        ends = batch.ends if split.unit == "time" else _last_positions(batch)
        rows = np.flatnonzero(own(ends, split, lane.share, lane.shares))
        if len(rows):
            yield batch if len(rows) == len(batch) else batch.take(rows)


def tells_some(lane: Lane) -> bool:
    """Whether a lane finds matches that another one tells."""
    return isinstance(lane.split, BySlice)


def _last_positions(batch: MatchBatch) -> Int64s:
    """Where each match ends; one that shows no event still covers some."""
    return batch.positions[batch.offsets[1:] - 1] if batch.lasts is None else batch.lasts
