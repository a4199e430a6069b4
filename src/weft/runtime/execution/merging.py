"""The merged input of a layer with feeders: input events and derived events in one order, numbered by places.

Operators use places like positions. Their matches are converted back to input positions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data import blocks
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.lists import Lists, grouped, joined_lists
from weft.runtime.data.matches import MatchBatch, put_in_order
from weft.runtime.execution.derived import INPUT, Derived, given
from weft.runtime.store.pages import Array, Pages


class Merge:
    """Pending events, and the places of those that were released."""

    def __init__(self, types: frozenset[str] | None, position: int) -> None:
        self._types = types  # input types that are read; None: all
        self._waiting: list[Derived] = []
        self._latest = position  # of the last released input event
        self._first = 0  # the place of the first event whose positions are known
        self._lists = Lists(np.zeros(1, np.int64), np.empty(0, np.int64))
        self._spans = np.empty((2, 0), np.int64)  # the first and last position of each place

    # -- events in ------------------------------------------------------------------------------

    def sees(self, types: frozenset[str] | None) -> bool:
        """Whether these types of the input are read already."""
        return self._types is None or (types is not None and types <= self._types)

    def see(self, types: frozenset[str] | None) -> None:
        """Read these types of the input, too, from now on."""
        self._types = None if self._types is None or types is None else self._types | types

    def next_place(self) -> int | None:
        """Return the place of the next event, or None if it may precede pending events.

        Pending input events precede everything that follows; derived events may precede pending ones.
        """
        if not all(_is_input(part).all() for part in self._waiting):
            return None
        return self._first + self._lists.size + sum(len(part.batch) for part in self._waiting)

    def add_input(self, batch: EventBatch) -> None:
        """Add input events of the types that are read."""
        if self._types is not None:
            wanted = pa.array(sorted(self._types), pa.string())
            batch = blocks.take(batch, np.flatnonzero(_is_in(batch.types, wanted)))
        if len(batch):
            self._waiting.append(given(batch))

    def add(self, events: Derived) -> None:
        """Add derived events, in any order."""
        self._waiting.append(events)

    def ready(self, bound: int | None) -> EventBatch | None:
        """Release the events that end before a time (None: all), in order, with places."""
        parts = self._waiting
        if not any(bound is None or int(part.batch.ends.min()) < bound for part in parts):
            return None
        whole = _joined(parts)
        due = np.ones(len(whole.batch), bool) if bound is None else whole.batch.ends < bound
        self._waiting = [] if due.all() else [whole.take(np.flatnonzero(~due))]
        found = whole.take(np.flatnonzero(due))
        found = found.take(_order(found))
        places = self._first + self._lists.size + np.arange(len(found.batch), dtype=np.int64)
        self._lists = joined_lists([self._lists, found.lists])
        self._spans = np.concatenate([self._spans, np.stack(found.spans)], axis=1)
        return replace(found.batch, positions=places, latest=self._latest_positions(found), origins=found.lists.firsts)

    def _latest_positions(self, events: Derived) -> Int64s:
        """Return the last input position up to each event."""
        own = np.where(_is_input(events), events.lists.firsts, -1)
        found: Int64s = np.maximum.accumulate(np.append(self._latest, own))[1:]
        self._latest = int(found[-1])
        return found

    # -- matches out ----------------------------------------------------------------------------

    def in_input(self, found: MatchBatch, *, spans: bool) -> MatchBatch:
        """Convert matches from places to input positions; `spans`: also the places that they cover."""
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
        regrouped = grouped(rows[first], positions[first], count)
        firsts, lasts = found.firsts, found.lasts
        if spans and firsts is not None and lasts is not None:
            firsts, lasts = self._spans[0, firsts - self._first], self._spans[1, lasts - self._first]
        return replace(
            found,
            offsets=regrouped.offsets,
            positions=regrouped.values,
            labels=labels,
            names=names,
            firsts=firsts,
            lasts=lasts,
        )

    @property
    def known(self) -> int:
        """The number of places whose positions are known."""
        return self._lists.size

    def oldest(self) -> int | None:
        """Return the first position of the pending events and those with a place."""
        lists = [self._lists.values, *(part.lists.values for part in self._waiting)]
        return min((int(values.min()) for values in lists if len(values)), default=None)

    def forget(self, before: int | None) -> None:
        """Release places before this one, or None for all existing ones, as no later match contains them."""
        gone = self.known if before is None else before - self._first
        offsets = self._lists.offsets[gone:]
        self._lists = Lists(offsets - offsets[0], self._lists.values[offsets[0] :].copy())
        self._spans = self._spans[:, gone:].copy()
        self._first += gone

    # -- state ----------------------------------------------------------------------------------

    def small(self) -> dict[str, bytes]:
        """Return the pending events and the current place, as pages."""
        pages = {"merge": json.dumps([self._latest, self._first]).encode()}
        for number, part in enumerate(self._waiting):
            lists = [array.tolist() for array in (*part.lists, *part.ranks, *part.ids)]
            pages[f"waiting/{number}"] = blocks.pack(part.batch)
            pages[f"ranks/{number}"] = json.dumps(lists).encode()
        return pages

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Return the positions of places."""
        yield "list_offsets", self._lists.offsets
        yield "lists", self._lists.values
        yield "spans", self._spans.ravel()

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        self._latest, self._first = json.loads(pages["merge"])
        saved = Pages(pages)
        self._lists = Lists(saved.numbers("list_offsets"), saved.numbers("lists"))
        self._spans = saved.numbers("spans").reshape(2, -1)
        count = sum(name.startswith("waiting/") for name in pages)
        for number in range(count):
            *arrays, high, low = json.loads(pages[f"ranks/{number}"])
            arrays = [np.array(values, np.int64) for values in arrays]
            batch = blocks.unpack(pages[f"waiting/{number}"])
            ids = np.array([high, low], np.uint64)
            self._waiting.append(Derived(batch, Lists(*arrays[:2]), Lists(*arrays[2:]), ids))


def _is_input(events: Derived) -> npt.NDArray[np.bool_]:
    """Return which events are of the input."""
    found: npt.NDArray[np.bool_] = events.ranks.values[events.ranks.offsets[:-1] + 2] == INPUT
    return found


def _joined(parts: Sequence[Derived]) -> Derived:
    return Derived(
        blocks.concat(part.batch for part in parts),
        joined_lists([part.lists for part in parts]),
        joined_lists([part.ranks for part in parts]),
        np.concatenate([part.ids for part in parts], axis=1),
    )


def _order(events: Derived) -> Int64s:
    """Return the order by end, then by rank and id."""
    none = np.zeros(len(events.batch), np.int64)
    ends, (high, low) = np.asarray(events.batch.ends, np.int64), events.ids
    columns = (ends, none, *events.ranks, none.astype(np.int32), high, low)
    return put_in_order(0, len(columns[0]), list(map(fixed, columns)))


def _shared(
    labels: npt.NDArray[np.int32], first: npt.NDArray[np.bool_], names: tuple[tuple[str, ...], ...]
) -> tuple[npt.NDArray[np.int32], tuple[tuple[str, ...], ...]]:
    """Return the label of each position; a new one if a derived event binds an event to more variables."""
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
