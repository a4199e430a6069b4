"""The events that a situation keeps: their times, their values for conditions and fields, what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Value
from weft.kernels.automaton.conditions import BOOLEAN, TEXT
from weft.kernels.joins.occurrences import EVENT, EVENT_END, EVENT_START, POSITION
from weft.runtime.events import Column, EventBatch, Int64s
from weft.runtime.joins.arena import Arena
from weft.runtime.state.paging import Pages, text_pages

LEAST_TEXTS = 1 << 12  # fewer are not worth a sweep


class Members:
    """Events by number, in the order of their places; numbers change when events are given up."""

    def __init__(self, columns: Sequence[str], constants: Sequence[Value], depth: int) -> None:
        self.arena = Arena(columns, constants, depth)
        self._whole = np.ones(len(columns), bool)  # of each column: all numbers so far are integers
        self._texts_bound = LEAST_TEXTS

    def __len__(self) -> int:
        return self.arena.event_count

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Keep some events of a batch; the number of the first."""
        for number, name in enumerate(self.arena.columns):
            numbers = batch.columns.get(name, Column()).numbers
            self._whole[number] &= numbers is None or pa.types.is_integer(numbers.type)
        return self.arena.add(batch, chosen)

    # -- what is known of them ------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """The starts and ends of events."""
        at = members * EVENT
        return self.arena.events[at + EVENT_START], self.arena.events[at + EVENT_END]

    @property
    def first(self) -> int:
        """The place of the first that is kept."""
        return int(self.arena.events[POSITION])

    def places(self, members: Int64s) -> Int64s:
        """Their places in what the situation sees: their positions, when it sees the input only."""
        found: Int64s = self.arena.events[members * EVENT + POSITION]
        return found

    def column(self, name: str, members: Int64s) -> Column:
        """An attribute of events; missing where the number is negative."""
        if name not in self.arena.columns or not len(self):
            return Column()
        number = self.arena.columns.index(name)
        at = np.maximum(members, 0) * self.arena.width + 2 * number
        value, rest = self.arena.values[at], self.arena.values[at + 1]
        known = ~np.isnan(value) & (members >= 0)
        texts, flags = known & (rest == TEXT), known & (rest == BOOLEAN)
        numbers = known & ~texts & ~flags
        return Column(
            self._numbers(number, value, rest, numbers) if numbers.any() else None,
            self._texts(value, texts) if texts.any() else None,
            pa.array(value == 1.0, mask=~flags) if flags.any() else None,
        )

    def _numbers(
        self, number: int, value: npt.NDArray[Any], rest: npt.NDArray[Any], known: npt.NDArray[Any]
    ) -> pa.Array:
        if not self._whole[number]:
            return pa.array(value, mask=~known)
        whole = np.where(known, value, 0.0).astype(np.int64) + np.where(known, rest, 0.0).astype(np.int64)
        return pa.array(whole, mask=~known)

    def _texts(self, value: npt.NDArray[Any], known: npt.NDArray[Any]) -> pa.Array:
        pool, offsets = self.arena.texts.buffers
        count = len(self.arena.texts)
        texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets[: count + 1]), pa.py_buffer(pool))
        return texts.take(pa.array(np.where(known, value, 0.0).astype(np.int64), mask=~known)).cast(pa.string())

    # -- giving up ------------------------------------------------------------------------------

    def keep(self, live: npt.NDArray[np.bool_]) -> Int64s:
        """Give up all but some events; the new number of each."""
        arena, kept = self.arena, np.flatnonzero(live)
        numbers: Int64s = np.cumsum(live) - 1
        arena.events = arena.events[: len(live) * EVENT].reshape(-1, EVENT)[kept].ravel()
        if arena.width:
            arena.values = arena.values[: len(live) * arena.width].reshape(-1, arena.width)[kept].ravel()
        arena.event_count = len(kept)
        if len(arena.texts) > self._texts_bound:
            self._keep_texts()
        return numbers

    def _keep_texts(self) -> None:
        """Give up the texts that no event has."""
        arena = self.arena
        pairs = arena.values.reshape(-1, 2)
        is_text = pairs[:, 1] == TEXT
        used, places = np.unique(pairs[is_text, 0].astype(np.int64), return_inverse=True)
        texts = arena.texts.texts()
        arena.restore_texts([texts[number] for number in used.tolist()])
        pairs[is_text, 0] = places.reshape(-1).astype(np.float64)
        self._texts_bound = max(LEAST_TEXTS, 2 * len(arena.texts))

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """What is kept, as arrays; texts are apart."""
        arena, count = self.arena, len(self)
        return {
            "events": arena.events[: count * EVENT],
            "values": arena.values[: count * arena.width].view(np.int64),
            "whole": self._whole.astype(np.int64),
        }

    def texts(self) -> dict[str, bytes]:
        """The texts that are kept, as pages."""
        return text_pages("texts", self.arena.texts.texts())

    def load(self, pages: Pages) -> None:
        """Go on from the pages of arrays and texts."""
        arena = self.arena
        arena.events, arena.values = pages.numbers("events"), pages.numbers("values").view(np.float64)
        arena.event_count = len(arena.events) // EVENT
        self._whole = pages.numbers("whole").astype(bool)
        arena.restore_texts(pages.texts("texts"))
