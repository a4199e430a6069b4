"""The ownership filter of a lane: which of its matches it emits, where copied events let several lanes find a match."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.replicated import Replicated
from weft.plan.partitioning.splits import Lane
from weft.runtime.data.events import Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.lanes.slices import Mask, own


def filter_owned(found: Iterator[MatchBatch], lane: Lane | None) -> Iterator[MatchBatch]:
    """The matches that it falls to this lane to tell."""
    if lane is None or not emits_subset(lane):
        yield from found
        return
    for batch in found:
        rows = np.flatnonzero(_is_own(batch, lane))
        if len(rows):
            yield batch if len(rows) == len(batch) else batch.take(rows)


def emits_subset(lane: Lane) -> bool:
    """Whether a lane finds matches that another one tells."""
    return isinstance(lane.split, BySlice) or (isinstance(lane.split, Replicated) and lane.split.by_start)


def _is_own(batch: MatchBatch, lane: Lane) -> Mask:
    """Which of the matches are the lane's."""
    if isinstance(lane.split, BySlice):
        ends = batch.ends if lane.split.unit == "time" else last_positions(batch)
        return own(ends, lane.split, lane.share, lane.shares)
    found: Mask = batch.positions[batch.offsets[:-1]] % lane.shares == lane.share
    return found


def last_positions(batch: MatchBatch) -> Int64s:
    """Where each match ends; one that shows no event still covers some."""
    return batch.positions[batch.offsets[1:] - 1] if batch.lasts is None else batch.lasts
