"""The events that a situation keeps: their times, their values for conditions and fields, what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Lists(NamedTuple):
    """Lists of numbers: list i is values[offsets[i] : offsets[i + 1]]."""

    offsets: Int64s
    values: Int64s

    def take(self, rows: Int64s) -> Lists:
        """Some of the lists, in this order."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return Lists(offsets, self.values[np.repeat(self.offsets[rows], sizes) + inside])


def joined_lists(parts: Sequence[Lists]) -> Lists:
    """All lists, one part after the other."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    values = [part.values[part.offsets[0] : part.offsets[-1]] for part in parts]
    return Lists(np.cumsum(sizes), np.concatenate([np.empty(0, np.int64), *values]))


def single_lists(values: Int64s) -> Lists:
    """Lists of one number each."""
    return Lists(np.arange(len(values) + 1, dtype=np.int64), values)


class Members:
    """Events by number, in the order of their places; numbers change when events are given up."""

    def __init__(self, columns: Sequence[str], constants: Sequence[Value], depth: int, *, listed: bool) -> None:
        self.arena = Arena(columns, constants, depth)
        self._whole = np.ones(len(columns), bool)  # of each column: all numbers so far are integers
        self._lists = Lists(np.zeros(1, np.int64), np.empty(0, np.int64)) if listed else None
        self._texts_bound = LEAST_TEXTS

    def __len__(self) -> int:
        return self.arena.event_count

    def add(self, batch: EventBatch, chosen: Int64s, lists: Lists | None) -> int:
        """Keep some events of a batch; the number of the first. Its positions are places."""
        for number, name in enumerate(self.arena.columns):
            numbers = batch.columns.get(name, Column()).numbers
            self._whole[number] &= numbers is None or pa.types.is_integer(numbers.type)
        if self._lists is not None and lists is not None:
            self._lists = joined_lists([self._lists, lists.take(chosen)])
        return self.arena.add(batch, chosen)

    # -- what is known of them ------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """The starts and ends of events."""
        at = members * EVENT
        return self.arena.events[at + EVENT_START], self.arena.events[at + EVENT_END]

    def places(self, members: Int64s) -> Int64s:
        """Their places in what the situation sees: their positions, when it sees the input only."""
        found: Int64s = self.arena.events[members * EVENT + POSITION]
        return found

    @property
    def listed(self) -> bool:
        """Whether events may be made of several; otherwise the place of each is its position."""
        return self._lists is not None

    def positions(self, members: Int64s) -> Lists:
        """The positions of the input events that each is made of."""
        return single_lists(self.places(members)) if self._lists is None else self._lists.take(members)

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
        if self._lists is not None:
            self._lists = self._lists.take(kept)
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
        lists = {} if self._lists is None else {"list_offsets": self._lists.offsets, "lists": self._lists.values}
        return {
            "events": arena.events[: count * EVENT],
            "values": arena.values[: count * arena.width].view(np.int64),
            "whole": self._whole.astype(np.int64),
            **lists,
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
        if self._lists is not None:
            self._lists = Lists(pages.numbers("list_offsets"), pages.numbers("lists"))
        arena.restore_texts(pages.texts("texts"))
