"""The ownership filter of a lane: which of its matches it emits, where copied events let several lanes find a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.replicated import OWN, Replicated
from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.lanes.slices import Mask, own


def filter_owned(found: Iterator[MatchBatch], lane: Lane | None) -> Iterator[MatchBatch]:
    """Keep the matches that this lane owns and therefore emits."""
    if lane is None or not emits_subset(lane):
        yield from found
        return
    for batch in found:
        rows = np.flatnonzero(_is_own(batch, lane))
        if len(rows):
            yield batch if len(rows) == len(batch) else batch.take(rows)


def counts_own(lane: Lane | None) -> bool:
    """Whether each event is counted by exactly one of the lanes that receive it."""
    split = None if lane is None else lane.split
    return isinstance(split, ByKey | BySlice) or (isinstance(split, Replicated) and not split.by_start)


def own_events(events: EventBatch, lane: Lane | None) -> EventBatch:
    """Return the events that a lane counts, without copies of others."""
    if lane is None or not len(events) or not counts_own(lane):
        return events
    if isinstance(lane.split, BySlice):
        places = events.ends if lane.split.unit == "time" else events.positions
        mask = own(places, lane.split, lane.share, lane.shares)
    elif isinstance(lane.split, Replicated) and OWN in events.columns:
        marks: Any = events.columns[OWN].booleans
        mask = np.asarray(marks.fill_null(False))
    else:
        return events
    return events if mask.all() else blocks.take(events, np.flatnonzero(mask))


def owned_ends(ends: Int64s, lane: Lane) -> Mask:
    """Return which occurrences with these ends the lane owns and therefore sends."""
    if isinstance(lane.split, BySlice):
        return own(ends, lane.split, lane.share, lane.shares)
    return np.ones(len(ends), bool)


def emits_subset(lane: Lane) -> bool:
    """Whether a lane finds matches that another one emits."""
    return isinstance(lane.split, BySlice) or (isinstance(lane.split, Replicated) and lane.split.by_start)


def _is_own(batch: MatchBatch, lane: Lane) -> Mask:
    """Return which of the matches the lane owns."""
    if isinstance(lane.split, BySlice):
        ends = batch.ends if lane.split.unit == "time" else last_positions(batch)
        return own(ends, lane.split, lane.share, lane.shares)
    found: Mask = batch.positions[batch.offsets[:-1]] % lane.shares == lane.share
    return found


def last_positions(batch: MatchBatch) -> Int64s:
    """Return the position where each match ends; a match without events still covers some."""
    return batch.positions[batch.offsets[1:] - 1] if batch.lasts is None else batch.lasts
