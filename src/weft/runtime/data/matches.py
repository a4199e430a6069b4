"""Matches as columns, the output of every engine, and as Python objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.matches.bindings import take_lists
from weft.kernels.matches.order import match_order
from weft.runtime.data.buffers import fixed, picked, room
from weft.runtime.data.json_texts import json_object

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Labels = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Origin = tuple[str | int, ...]


@dataclass(frozen=True)
class Match:
    """One match: `start` and `end` are times, positions are places in the stream, `event` has the selected fields."""

    query: str
    id: str
    start: int
    end: int
    positions: tuple[int, ...]
    bindings: dict[str, tuple[int, ...]]
    event: dict[str, object]

    def to_json(self) -> dict[str, object]:
        """Return the match as the JSON object that `weft match` writes."""
        bindings = {name: list(positions) for name, positions in self.bindings.items()}
        return {**vars(self), "positions": list(self.positions), "bindings": bindings, "event": dict(self.event)}


@dataclass(frozen=True)
class MatchBatch:
    """Matches of one query, or of `queries`, ordered by end position (not yet by start and positions).

    Match i covers the times `starts[i]..ends[i]`; it consists of `positions[offsets[i]:offsets[i+1]]`, ascending.
    `labels`
    is parallel to `positions`: `names[label]` are the variables that the position is bound to. It covers the positions
    `firsts[i]..lasts[i]`, which are given only where they are not its first and last one. `ids` are the two halves of
    each
    id, once they are computed; `keys` are hashes of the keys of absences.
    """

    query: str
    names: tuple[tuple[str, ...], ...]
    starts: Int64s
    ends: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Labels
    firsts: Int64s | None = None
    lasts: Int64s | None = None
    fields: Mapping[str, pa.Array] = field(default_factory=dict)  # selected attributes, one value per match
    events: pa.Array | None = None  # instead of `fields`: a JSON object per match
    queries: tuple[str, ...] = ()  # instead of `query`: match i is of queries[codes[i]]; names may repeat
    codes: Int32s | None = None
    origins: tuple[Origin, ...] = ()  # what ids are made of instead of the name of each query
    ids: tuple[UInt64s, UInt64s] | None = None
    keys: UInt64s | None = None
    sparse: bool = False  # fields without a value are left out of the event

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of matches of each query."""
        if self.codes is None:
            return {self.query: len(self)}
        found = np.bincount(self.codes)
        totals: Counter[str] = Counter()
        for code in np.flatnonzero(found).tolist():
            totals[self.queries[code]] += int(found[code])
        return dict(totals)

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of its queries."""
        return (self.query,) if self.codes is None else self.queries

    @property
    def query_origins(self) -> tuple[Origin, ...]:
        """The origins of its queries, from which ids are computed."""
        return self.origins or tuple((name,) for name in self.query_names)

    @property
    def query_codes(self) -> Int32s:
        """The index of each match's query among the names."""
        return np.zeros(len(self), np.int32) if self.codes is None else self.codes

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, query: str) -> MatchBatch:
        """Return the matches of one query."""
        if query not in self.query_names:
            return self.slice(0, 0)
        if self.codes is None:
            return self
        own = self.take(np.flatnonzero(np.array([name == query for name in self.queries])[self.codes]))
        # Rules of one type differ in what ids are made of.
        return replace(own, query=query) if self.origins else replace(own, query=query, queries=(), codes=None)

    def slice(self, begin: int, end: int) -> MatchBatch:
        """Return matches `begin` to `end` (exclusive), sharing memory with this batch."""
        if begin == 0 and end == len(self):
            return self
        low, high = self.offsets[begin], self.offsets[end]
        return replace(
            self,
            starts=self.starts[begin:end],
            ends=self.ends[begin:end],
            firsts=None if self.firsts is None else self.firsts[begin:end],
            lasts=None if self.lasts is None else self.lasts[begin:end],
            offsets=self.offsets[begin : end + 1] - low,
            positions=self.positions[low:high],
            labels=self.labels[low:high],
            fields={name: values.slice(begin, end - begin) for name, values in self.fields.items()},
            events=None if self.events is None else self.events.slice(begin, end - begin),
            codes=None if self.codes is None else self.codes[begin:end],
            ids=None if self.ids is None else (self.ids[0][begin:end], self.ids[1][begin:end]),
            keys=None if self.keys is None else self.keys[begin:end],
        )

    def take(self, rows: Int64s) -> MatchBatch:
        """Return the matches at these places, in that order."""
        offsets = room(len(rows) + 1, np.int64)
        offsets[0] = 0
        np.cumsum(picked(np.diff(self.offsets), rows), out=offsets[1:])
        positions, labels = room(int(offsets[-1]), np.int64), room(int(offsets[-1]), np.int32)
        take_lists(
            fixed(rows),
            fixed(self.offsets),
            fixed(self.positions),
            fixed(self.labels.astype(np.int32, copy=False)),
            fixed(offsets),
            positions,
            labels,
        )
        chosen = pa.array(rows)
        return replace(
            self,
            starts=picked(self.starts, rows),
            ends=picked(self.ends, rows),
            firsts=None if self.firsts is None else picked(self.firsts, rows),
            lasts=None if self.lasts is None else picked(self.lasts, rows),
            offsets=offsets,
            positions=positions,
            labels=labels,
            codes=None if self.codes is None else picked(self.codes, rows),
            fields={name: values.take(chosen) for name, values in self.fields.items()},
            events=None if self.events is None else self.events.take(chosen),
            ids=None if self.ids is None else (picked(self.ids[0], rows), picked(self.ids[1], rows)),
            keys=None if self.keys is None else picked(self.keys, rows),
        )


def add_counts(totals: Counter[str], found: Iterable[MatchBatch]) -> None:
    """Add the number of matches of each query to totals."""
    for batch in found:
        totals.update(batch.counts)


def put_in_order(begin: int, end: int, columns: Sequence[npt.NDArray[Any]]) -> Int64s:
    """Return the numbers of matches `begin` to `end` (exclusive) in match order, by the columns of the kernel."""
    order = room(end - begin, np.int64)
    match_order(begin, order, room(end - begin, np.int64), *columns)
    return order


class PlainMatch(NamedTuple):
    """A match as plain values: times, the positions its interval covers, its events, and its id."""

    start: int
    end: int
    first: int
    last: int
    positions: tuple[int, ...]
    bindings: Mapping[str, Sequence[int]]
    event: Mapping[str, object]
    id: str = "0" * 32


def to_batch(query: str, matches: Sequence[PlainMatch], origin: Origin | None = None) -> MatchBatch:
    """Convert plain matches of one query to columns."""
    labels: dict[tuple[str, ...], int] = {}
    codes: list[int] = []
    for match in matches:
        for position in match.positions:
            names = tuple(sorted(name for name, places in match.bindings.items() if position in places))
            codes.append(labels.setdefault(names, len(labels)))
    sizes = [0, *(len(match.positions) for match in matches)]
    halves = [np.array([int(match.id[at : at + 16], 16) for match in matches], np.uint64) for at in (0, 16)]
    return MatchBatch(
        query=query,
        names=tuple(labels),
        starts=np.array([match.start for match in matches], np.int64),
        ends=np.array([match.end for match in matches], np.int64),
        firsts=np.array([match.first for match in matches], np.int64),
        lasts=np.array([match.last for match in matches], np.int64),
        offsets=np.cumsum(sizes).astype(np.int64),
        positions=np.array([position for match in matches for position in match.positions], np.int64),
        labels=np.array(codes, np.int32),
        events=pa.array([json_object(match.event) for match in matches], pa.string()),
        origins=() if origin is None else (origin,),
        ids=(halves[0], halves[1]),
    )


def ids_of(batch: MatchBatch) -> tuple[UInt64s, UInt64s]:
    """Return the two halves of the ids of matches, or 0 for those without a matcher, which knows their events."""
    if batch.ids is None:
        return np.zeros(len(batch), np.uint64), np.zeros(len(batch), np.uint64)
    return batch.ids
