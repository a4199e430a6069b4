"""Events that wait for their turn in a situation that others feed: of the input and derived, put into stream order."""

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
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.situations.members import Lists, joined_lists, single_lists
from weft.runtime.situations.report import Derived

INPUT = -1  # the source of events that nobody derived


class Waiting:
    """What has come for a situation and may not be the next in stream order."""

    def __init__(self, types: Collection[str] | None) -> None:
        self._types = None if types is None else pa.array(sorted(types), pa.string())
        self._parts: list[Derived] = []

    def add_input(self, batch: EventBatch) -> None:
        """Events of the input; others than those of the types do not matter."""
        chosen = np.flatnonzero(np.ones(len(batch), bool) if self._types is None else _is_in(batch.types, self._types))
        if len(chosen):
            own = blocks.take(batch, chosen)
            ranks = np.full((len(chosen), 2), INPUT, np.int64)
            ranks[:, 1] = own.positions
            offsets = np.arange(0, 2 * len(chosen) + 1, 2, dtype=np.int64)
            self.add(Derived(own, single_lists(own.positions), Lists(offsets, ranks.ravel())))

    def add(self, events: Derived) -> None:
        """Events, in any order."""
        self._parts.append(events)

    def ready(self, bound: int | None, first: int) -> Derived | None:
        """Remove those that end before a time (None: all), in stream order; `first` is the place of the first."""
        if not any(bound is None or int(part.batch.ends.min()) < bound for part in self._parts):
            return None
        parts = self._parts
        whole = Derived(
            blocks.concat(part.batch for part in parts),
            joined_lists([part.lists for part in parts]),
            joined_lists([part.ranks for part in parts]),
        )
        ends = whole.batch.ends
        due = np.ones(len(ends), bool) if bound is None else ends < bound
        self._parts = [] if due.all() else [whole.take(np.flatnonzero(~due))]
        found = whole.take(np.flatnonzero(due))
        found = found.take(_stream_order(found))
        places = np.arange(first, first + len(found.batch), dtype=np.int64)
        return found._replace(batch=replace(found.batch, positions=places))

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """As pages of the state."""
        for number, part in enumerate(self._parts):
            lists = [array.tolist() for array in (*part.lists, *part.ranks)]
            yield f"waiting/{number}", blocks.pack(part.batch)
            yield f"ranks/{number}", json.dumps(lists).encode()

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from pages."""
        count = sum(name.startswith("waiting/") for name in pages)
        for number in range(count):
            arrays = [np.array(values, np.int64) for values in json.loads(pages[f"ranks/{number}"])]
            self.add(Derived(blocks.unpack(pages[f"waiting/{number}"]), Lists(*arrays[:2]), Lists(*arrays[2:])))


def _stream_order(events: Derived) -> Int64s:
    """By end, start and rank."""
    count = len(events.batch)
    none, words = fixed(np.zeros(count, np.int32)), fixed(np.zeros(count, np.uint64))
    starts, ends = (fixed(np.asarray(times, np.int64)) for times in (events.batch.starts, events.batch.ends))
    return match_order(ends, starts, fixed(events.ranks.offsets), fixed(events.ranks.values), none, words, words)


def _is_in(types: pa.Array, wanted: pa.Array) -> npt.NDArray[np.bool_]:
    if not pa.types.is_dictionary(types.type):
        return np.asarray(pc.is_in(types, value_set=wanted))
    known = np.append(np.asarray(pc.is_in(types.dictionary.cast(pa.string()), value_set=wanted)), False)
    found: npt.NDArray[np.bool_] = known[np.asarray(types.indices.fill_null(len(known) - 1))]
    return found
