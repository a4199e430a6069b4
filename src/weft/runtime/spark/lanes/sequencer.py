"""Runs in, the lane's events in stream order out, each at its position in the whole stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.reading.order import stream_order
from weft.runtime.reading.ties import as_ranks
from weft.runtime.spark.packing.runs import Origin, SortedRun, cut_run, in_position_order, move


class Sequencer:
    """Holds runs until event time has passed their events.

    All lanes are given the same bounds. Where runs have the times of all events, lanes count the same positions
    without a word between them; else each counts its own. Equal times are ordered by the rank of the source, then by
    origin, then by place in the run.
    """

    def __init__(self, released: int = 0, held: Iterable[SortedRun] = ()) -> None:
        self.released = released  # events of the whole stream that have their position
        self.held: dict[Origin, SortedRun] = {run.origin: run for run in held}
        self.tied = 0  # events that only their partition put before or behind one with the same time

    def add(self, run: SortedRun) -> None:
        """Take a run, none of whose events is before a bound already passed."""
        if len(run):
            self.held[run.origin] = run

    def release(self, bound: int | None) -> EventBatch:
        """The lane's events that end before the bound (None: all there are), in stream order."""
        shares: list[tuple[SortedRun, int]] = []
        for origin in sorted(self.held):
            run = self.held[origin]
            count = len(run) if bound is None else int(np.searchsorted(run.ends, bound, side="left"))
            if count:
                shares.append((run, count))
                if count == len(run):
                    del self.held[origin]
                else:
                    self.held[origin] = cut_run(run, count)
        batches = []
        places_of, tied = _places(shares)
        self.tied += tied
        for (run, count), places in zip(shares, places_of, strict=True):
            events = blocks.slice(run.events, 0, int(np.searchsorted(run.events.positions, count, side="left")))
            if len(events):
                batches.append(move(events, self.released + places[events.positions]))
        self.released += sum(count for _, count in shares)
        return in_position_order(batches)

    @property
    def first_held(self) -> int | None:
        """The earliest end of any event that waits."""
        return min((int(run.ends[0]) for run in self.held.values()), default=None)

    @property
    def waiting(self) -> int:
        """How many events of the whole stream wait."""
        return sum(len(run) for run in self.held.values())


def in_stream_order(runs: Iterable[SortedRun], sequencer: Sequencer) -> Iterator[EventBatch]:
    """The lane's events of runs that come by their first event, in stream order, many at a time."""
    left = 0  # events that overlap with what is to come
    for run in runs:
        if sequencer.waiting >= left + blocks.PUSHED:
            yield sequencer.release(int(run.ends[0]))
            left = sequencer.waiting
        sequencer.add(run)
    yield sequencer.release(None)


def _places(shares: list[tuple[SortedRun, int]]) -> tuple[list[Int64s], int]:
    """For each share (the first `count` events of a run) the places of its events in the order of them all.

    And how many events stand next to one of another part of the input only because it is another part.
    """
    counts = [count for _, count in shares]
    if len(shares) <= 1:
        return [np.arange(count) for count in counts], 0
    ends = np.concatenate([run.ends[:count] for run, count in shares])
    instant = all(run.starts is run.ends for run, _ in shares)
    starts = ends if instant else np.concatenate([run.starts[:count] for run, count in shares])
    ranks = _ranks(shares)
    order = stream_order(starts, ends, ranks)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    parts = np.repeat([hash((run.origin[0], run.origin[2])) for run, _ in shares], counts)
    equal = [values[order[1:]] == values[order[:-1]] for values in (ends, starts, ranks) if values is not None]
    tied = np.logical_and.reduce(equal) & (parts[order[1:]] != parts[order[:-1]])
    return np.split(places, np.cumsum(counts)[:-1]), int(np.count_nonzero(tied))


def _ranks(shares: list[tuple[SortedRun, int]]) -> Int64s | None:
    """The ranks of the events' sources; None when they are all the same."""
    ranks = [run.ranks for run, _ in shares]
    if all(isinstance(rank, int) and rank == ranks[0] for rank in ranks):
        return None
    return as_ranks(np.concatenate([np.broadcast_to(run.ranks, len(run))[:count] for run, count in shares]))
