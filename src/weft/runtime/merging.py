"""What a layer sees that queries feed: events of the input and derived ones, put into one order and given places.

Operators work with places as they do with positions. What they find is told in input positions again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels.matches.order import match_order
from weft.runtime import blocks
from weft.runtime.buffers import fixed
from weft.runtime.derived import Derived, given
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.lists import Lists, grouped, joined_lists
from weft.runtime.matches import MatchBatch
from weft.runtime.state.paging import Array, Pages


class Merge:
    """Events that wait for their turn, and the places of those that had it."""

    def __init__(self, types: Collection[str] | None, ranks: Mapping[int, int], *, by_start: bool) -> None:
        self._types = None if types is None else pa.array(sorted(types), pa.string())
        self._ranks = ranks  # of queries, by number, among events of one end
        self._by_start = by_start
        self._waiting: list[Derived] = []
        self._latest = -1  # the position of the last input event that had its turn
        self._first = 0  # the place of the first event whose positions are known
        self._lists = Lists(np.zeros(1, np.int64), np.empty(0, np.int64))

    # -- events in ------------------------------------------------------------------------------

    def add_input(self, batch: EventBatch) -> None:
        """Events of the input; others than those of the types do not matter."""
        if self._types is not None:
            batch = blocks.take(batch, np.flatnonzero(_is_in(batch.types, self._types)))
        if len(batch):
            self._waiting.append(given(batch))

    def add(self, events: Derived) -> None:
        """Derived events, in any order."""
        values, at = events.ranks.values.copy(), events.ranks.offsets[:-1]
        numbers, places = np.unique(values[at], return_inverse=True)
        values[at] = np.array([self._ranks[number] for number in numbers.tolist()], np.int64)[places]
        self._waiting.append(events._replace(ranks=events.ranks._replace(values=values)))

    def ready(self, bound: int | None) -> EventBatch | None:
        """Remove the events that end before a time (None: all): in order, with places."""
        parts = self._waiting
        if not any(bound is None or int(part.batch.ends.min()) < bound for part in parts):
            return None
        whole = Derived(
            blocks.concat(part.batch for part in parts),
            joined_lists([part.lists for part in parts]),
            joined_lists([part.ranks for part in parts]),
        )
        due = np.ones(len(whole.batch), bool) if bound is None else whole.batch.ends < bound
        self._waiting = [] if due.all() else [whole.take(np.flatnonzero(~due))]
        found = whole.take(np.flatnonzero(due))
        found = found.take(self._order(found))
        places = self._first + self._lists.size + np.arange(len(found.batch), dtype=np.int64)
        self._lists = joined_lists([self._lists, found.lists])
        return replace(found.batch, positions=places, latest=self._seen(found), origins=found.lists.firsts)

    def _order(self, events: Derived) -> Int64s:
        """By end, and start if that counts, and rank."""
        count = len(events.batch)
        none, words = fixed(np.zeros(count, np.int32)), fixed(np.zeros(count, np.uint64))
        ends, starts = np.asarray(events.batch.ends, np.int64), np.asarray(events.batch.starts, np.int64)
        starts = fixed(starts if self._by_start else np.zeros(count, np.int64))
        return match_order(
            fixed(ends), starts, fixed(events.ranks.offsets), fixed(events.ranks.values), none, words, words
        )

    def _seen(self, events: Derived) -> Int64s:
        """The last input position up to each event."""
        ranks = events.ranks
        is_input = ranks.firsts < 0
        own = np.where(is_input, events.lists.firsts, -1)
        found: Int64s = np.maximum.accumulate(np.append(self._latest, own))[1:]
        self._latest = int(found[-1])
        return found

    # -- matches out ----------------------------------------------------------------------------

    def told(self, found: MatchBatch, *, spans: bool) -> MatchBatch:
        """Matches of places as matches of input positions; `spans`: they say which places they cover."""
        count = len(found)
        lists = self._lists.take(found.positions - self._first)
        sizes = np.diff(lists.offsets)
        rows = np.repeat(np.repeat(np.arange(count), np.diff(found.offsets)), sizes)
        labels = np.repeat(np.asarray(found.labels, np.int32), sizes)
        order = np.lexsort((labels, lists.values, rows))
        rows, labels, positions = rows[order], labels[order], lists.values[order]
        first = np.ones(len(rows), bool)
        first[1:] = (rows[1:] != rows[:-1]) | (positions[1:] != positions[:-1])
        labels, names = _shared(labels, first, found.names)
        told = grouped(rows[first], positions[first], count)
        firsts, lasts = found.firsts, found.lasts
        if spans and firsts is not None and lasts is not None:
            firsts = self._lists.take(firsts - self._first).firsts
            lasts = self._lists.take(lasts - self._first).lasts
        return replace(
            found,
            offsets=told.offsets,
            positions=told.values,
            labels=labels,
            names=names,
            firsts=firsts,
            lasts=lasts,
        )

    @property
    def known(self) -> int:
        """How many places can be told in positions."""
        return self._lists.size

    def forget(self, before: int | None) -> None:
        """No match will be told any more of places before this one; None: of those that there are."""
        gone = self.known if before is None else before - self._first
        offsets = self._lists.offsets[gone:]
        self._lists = Lists(offsets - offsets[0], self._lists.values[offsets[0] :].copy())
        self._first += gone

    # -- state ----------------------------------------------------------------------------------

    def small(self) -> dict[str, bytes]:
        """What waits, and where it goes on, as pages."""
        pages = {"merge": json.dumps([self._latest, self._first]).encode()}
        for number, part in enumerate(self._waiting):
            lists = [array.tolist() for array in (*part.lists, *part.ranks)]
            pages[f"waiting/{number}"] = blocks.pack(part.batch)
            pages[f"ranks/{number}"] = json.dumps(lists).encode()
        return pages

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """The positions of places."""
        yield "list_offsets", self._lists.offsets
        yield "lists", self._lists.values

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from pages."""
        self._latest, self._first = json.loads(pages["merge"])
        saved = Pages(pages)
        self._lists = Lists(saved.numbers("list_offsets"), saved.numbers("lists"))
        count = sum(name.startswith("waiting/") for name in pages)
        for number in range(count):
            arrays = [np.array(values, np.int64) for values in json.loads(pages[f"ranks/{number}"])]
            batch = blocks.unpack(pages[f"waiting/{number}"])
            self._waiting.append(Derived(batch, Lists(*arrays[:2]), Lists(*arrays[2:])))


def _shared(
    labels: npt.NDArray[np.int32], first: npt.NDArray[np.bool_], names: tuple[tuple[str, ...], ...]
) -> tuple[npt.NDArray[np.int32], tuple[tuple[str, ...], ...]]:
    """The label of each position; new ones where an event is bound to more, through what is derived from it."""
    begins = np.flatnonzero(first)
    sizes = np.diff(np.append(begins, len(labels)))
    found, known = labels[begins], list(names)
    for group in np.flatnonzero(sizes > 1).tolist():
        begin = int(begins[group])
        own = tuple(sorted({name for label in labels[begin : begin + sizes[group]].tolist() for name in names[label]}))
        if own not in known:
            known.append(own)
        found[group] = known.index(own)
    return found, tuple(known)


def _is_in(types: pa.Array, wanted: pa.Array) -> npt.NDArray[np.bool_]:
    if not pa.types.is_dictionary(types.type):
        return np.asarray(pc.is_in(types, value_set=wanted))
    known = np.append(np.asarray(pc.is_in(types.dictionary.cast(pa.string()), value_set=wanted)), False)
    found: npt.NDArray[np.bool_] = known[np.asarray(types.indices.fill_null(len(known) - 1))]
    return found
