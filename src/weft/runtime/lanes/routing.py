"""Route events to lanes, as their split describes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.plan.partitioning.by_key import ByKey
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.replicated import FIRST, OWN, Replicated
from weft.plan.partitioning.splits import Lane, Split
from weft.runtime.classify.keys import lane_of
from weft.runtime.data import blocks
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.lanes.slices import rows_seen, seen

Numbers = npt.NDArray[np.signedinteger]
Mask = npt.NDArray[np.bool_]
Route = Callable[[], EventBatch]


def shares(events: EventBatch, lanes: Sequence[Lane]) -> Iterator[EventBatch]:
    """Return the events of each lane, in the order of lanes. They keep their positions."""
    for (split, _queries, types), group in groupby(lanes, lambda lane: (lane.split, lane.queries, lane.types)):
        yield from _routed(relevant(events, types), split, len(list(group)))


def shares_by_position(events: EventBatch, lanes: Sequence[Lane]) -> Iterator[EventBatch]:
    """Like `shares` where positions are known: lanes of slices of positions get their events."""
    for (split, _queries, types), group in groupby(lanes, lambda lane: (lane.split, lane.queries, lane.types)):
        own, count = relevant(events, types), len(list(group))
        if isinstance(split, BySlice) and split.unit == "events":
            yield from _split(own, rows_seen(own.positions, split, count))
        else:
            yield from _routed(own, split, count)


def routes(events: EventBatch, lanes: Sequence[Lane]) -> list[Route]:
    """Like `shares`, each computed by the worker of the lane; only keys are looked up for all lanes together."""
    found: list[Route] = []
    for (split, _queries, types), group in groupby(lanes, lambda lane: (lane.split, lane.queries, lane.types)):
        count = len(list(group))
        if isinstance(split, ByKey):
            own = relevant(events, types)
            found += [partial(_taken, own, rows) for rows in _rows_of(_places(own, split, count), count)]
        else:
            found += [partial(_share, events, split, types, share, count) for share in range(count)]
    return found


def _taken(events: EventBatch, rows: Numbers) -> EventBatch:
    """Return the events of these rows, which are in order."""
    return events if len(rows) == len(events) else blocks.take(events, rows)


def _share(events: EventBatch, split: Split, types: frozenset[str] | None, share: int, count: int) -> EventBatch:
    """Return the events of one lane of a split."""
    match split:
        case BySlice(unit="time"):
            return relevant(_chosen(events, seen(events.ends, split, share, count)), types)
        case Replicated():
            return _marked(relevant(events, types), split, share, count)
    return relevant(events, types)


def _routed(events: EventBatch, split: Split, count: int) -> Iterator[EventBatch]:
    """Return the events of all lanes of one split."""
    match split:
        case ByKey():
            yield from _split(events, _rows_of(_places(events, split, count), count))
        case BySlice(unit="time"):
            yield from _split(events, rows_seen(events.ends, split, count))
        case _:
            yield from (_share(events, split, None, share, count) for share in range(count))


def _marked(events: EventBatch, split: Replicated, share: int, shares: int) -> EventBatch:
    """Mark all events as a lane's own or as copies, without those that it gets no copy of."""
    own = _dealt(events, shares) == share
    marks = {OWN: own, FIRST: np.full(len(events), share == 0)} if not split.by_start else {}
    columns = {name: Column(booleans=pa.array(mark)) for name, mark in marks.items()}
    marked = replace(events, columns={**events.columns, **columns})
    return _chosen(marked, own | ~_is_of(events, split.shared)) if split.shared else marked


def _dealt(events: EventBatch, shares: int) -> npt.NDArray[np.uint64]:
    """Assign events to lanes by their times: indistinguishable events must be counted in one lane."""
    words = events.ends.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + events.starts.astype(np.uint64)
    words = (words ^ (words >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    found: npt.NDArray[np.uint64] = (words >> np.uint64(32)) % np.uint64(shares)
    return found


def placed(events: EventBatch, lane: Lane) -> EventBatch:
    """Select the events of a lane by position, when all positions are known."""
    if isinstance(lane.split, BySlice) and lane.split.unit == "events":
        return _chosen(events, seen(events.positions, lane.split, lane.share, lane.shares))
    return events


def _chosen(events: EventBatch, mask: Mask) -> EventBatch:
    """Select events by a mask, without copying if they are contiguous."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return blocks.slice(events, 0, 0)
    if rows[-1] - rows[0] + 1 == len(rows):
        return blocks.slice(events, int(rows[0]), len(rows))
    return blocks.take(events, rows)


def _places(events: EventBatch, split: ByKey, count: int) -> Numbers:
    """Return the number of each event's lane, or -1."""
    return lane_of(events, split.key, count, split.own, split.placed)


def _rows_of(places: Numbers, count: int) -> list[Numbers]:
    """Return the rows of each lane's events, in order."""
    if count == 1:
        return [np.flatnonzero(places == 0)]
    # Small integers are sorted by radix, in linear time.
    order = np.argsort((places + 1).astype(np.uint16), kind="stable")
    return np.split(order, np.cumsum(np.bincount(places + 1, minlength=count + 1))[:-1])[1:]


def _split(events: EventBatch, rows: Sequence[Numbers]) -> Iterator[EventBatch]:
    """Return the events of each lane, gathered together: there may be many lanes with few events each."""
    together = _taken(events, rows[0]) if len(rows) == 1 else blocks.take(events, np.concatenate(rows))
    first = 0
    for own in rows:
        yield blocks.slice(together, first, len(own))
        first += len(own)


def relevant(events: EventBatch, types: frozenset[str] | None) -> EventBatch:
    """Return the events of these types (None: all), with their positions."""
    if types is None or not len(events):
        return events
    return _chosen(events, _is_of(events, types))


def _is_of(events: EventBatch, types: Collection[str]) -> Mask:
    """Return which events are of these types."""
    wanted = pa.array(sorted(types), pa.string())
    if pa.types.is_dictionary(events.types.type):
        mask = pc.take(pc.is_in(events.types.dictionary, wanted), events.types.indices).fill_null(False)
    else:
        mask = pc.is_in(events.types, wanted)
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found
