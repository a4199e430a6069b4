"""Buffer of events that later matches may include: ordered, looked up and released by position, saved incrementally."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weft.runtime.data import blocks
from weft.runtime.data.events import SHOWN, Column, EventBatch, Int64s
from weft.runtime.data.joint_types import join_rows
from weft.runtime.store.pages import Growing, Pages

LEAST = 1 << 12  # fewer events are not worth a look at which still matter, nor a chunk of their own
_FEW, _MANY = 4, 64  # one event of so many, batches: fewer events and more batches are not left to wait


class Shown(NamedTuple):
    """Events at ascending positions, as the input has them."""

    positions: Int64s
    rows: pa.RecordBatch

    def at(self, positions: Int64s) -> pa.RecordBatch:
        """Return the events at these positions, in this order."""
        count = len(self.positions)
        if count and int(self.positions[-1]) - int(self.positions[0]) + 1 == count:  # none is missing between them
            return self.rows.take(pa.array(positions - self.positions[0]))
        return self.rows.take(pa.array(np.searchsorted(self.positions, positions)))


class EventBuffer:
    """Chunks of events, oldest first: some of their attributes, or without names the rows of the input.

    Events are copied out of their batch when they are first read: until then all buffers share its memory.
    """

    def __init__(self, attributes: Sequence[str] | None = None) -> None:
        self.attributes = attributes
        self.all_fields = False  # whether attributes that `SELECT *` shows are kept, too
        self._chunks: list[EventBatch] = []
        self._fresh: list[tuple[EventBatch, Int64s]] = []  # batches, and which of their events
        self._loose: list[EventBatch] = []  # events at any positions
        self._count = 0  # events ever kept
        self._none = pa.record_batch([], names=[])  # no events, with the columns of the last ones
        self._look_at = LEAST  # so many events are worth a look at which still matter

    def __len__(self) -> int:
        return sum(map(len, [*self._chunks, *self._loose])) + sum(len(chosen) for _, chosen in self._fresh)

    def add(self, batch: EventBatch, chosen: Int64s | None = None) -> None:
        """Add events of a batch (None: all), which follow all earlier ones."""
        whole = self._shown_of(batch)
        count = len(batch) if chosen is None else len(chosen)
        if whole is None or not count:
            return
        self._count += count
        self._fresh.append((whole, np.arange(count) if chosen is None else chosen))
        if chosen is None or count * _FEW < len(batch) or len(self._fresh) > _MANY:  # the others take memory too
            self._pick()

    def merge(self, batch: EventBatch) -> None:
        """Add events at any positions, unless they are stored already."""
        whole = self._shown_of(batch)
        if whole is not None and len(batch):
            self._loose.append(whole)

    def _shown_of(self, batch: EventBatch) -> EventBatch | None:
        """Return the rows of a batch to store, or None."""
        positions, columns, rows = batch.positions, dict[str, Column](), batch.rows
        if self.attributes is None and rows is not None:
            self._none = rows.slice(0, 0)
        elif self.attributes or self.all_fields:
            names = self.attributes or ()
            columns, rows = {name: batch.columns[name] for name in names if name in batch.columns}, None
            if self.all_fields:
                columns |= {name: column for name, column in batch.columns.items() if name.startswith(SHOWN)}
        else:
            return None
        return EventBatch(pa.nulls(len(batch)), positions, positions, positions, columns, rows=rows)

    def _pick(self) -> None:
        """Copy the events out of their batches."""
        self._chunks += (
            whole if len(chosen) == len(whole) else blocks.take(whole, chosen) for whole, chosen in self._fresh
        )
        self._fresh = []
        if self._loose:
            joined = blocks.concat([*self._chunks, *self._loose])
            positions, rows = np.unique(joined.positions, return_index=True)
            self._count += len(positions) - sum(map(len, self._chunks))
            self._chunks, self._loose = [blocks.take(joined, rows)], []

    def _picked(self) -> list[EventBatch]:
        """Return all events in large chunks, except perhaps the last."""
        self._pick()
        return self._joined()

    def _joined(self) -> list[EventBatch]:
        small = next((place for place, chunk in enumerate(self._chunks) if len(chunk) < LEAST), len(self._chunks))
        if small < len(self._chunks) - 1:
            self._chunks[small:] = [blocks.concat(self._chunks[small:])]
        return self._chunks

    def forget(self, oldest: Callable[[], int | None], *, least: int | None = None) -> None:
        """Release the events before a position (None: all) if they are many, as finding it takes time.

        `least`: release them if they are at least this many.
        """
        if len(self) < (self._look_at if least is None else least):
            return
        first = oldest()
        if self._loose:
            self._pick()
        if first is None:
            self._chunks, self._fresh = [], []
        else:
            self._chunks = [_since(chunk, first) for chunk in self._joined() if chunk.positions[-1] >= first]
            self._fresh = [held for held in self._fresh if held[0].positions[held[1][-1]] >= first]
        self._look_at = max(LEAST, 2 * len(self))

    # -- what is shown --------------------------------------------------------------------------

    def column(self, name: str, positions: Int64s) -> Column:
        """Return an attribute of the events at these positions, missing for negative ones."""
        known = positions[positions >= 0]
        if not len(known):
            return Column()
        low, high = known.min(), known.max()
        chunks = [chunk for chunk in self._picked() if chunk.positions[-1] >= low and chunk.positions[0] <= high]
        places = np.concatenate([chunk.positions for chunk in chunks])
        rows = pa.array(np.searchsorted(places, positions), mask=positions < 0)
        parts = [chunk.columns.get(name) for chunk in chunks]
        whole = blocks.join_columns(parts, list(map(len, chunks))) if len(parts) > 1 else parts[0] or Column()
        return whole.map(lambda array: array.take(rows))

    def fields(self) -> list[str]:
        """Return the attributes that `SELECT *` shows of the stored events, in order."""
        names = {name for chunk in self._picked() for name in chunk.columns if name.startswith(SHOWN)}
        return sorted(name.removeprefix(SHOWN) for name in names)

    def shown(self, positions: Int64s) -> Shown:
        """Return the rows at these positions (in any order), possibly among further rows."""
        places, parts = np.sort(positions), list[Shown]()
        places = places[np.append(True, places[1:] != places[:-1])] if len(places) else places
        for chunk in self._picked():
            low, high = np.searchsorted(places, [chunk.positions[0], chunk.positions[-1] + 1])
            if low < high:
                assert chunk.rows is not None
                own = places[low:high]
                parts.append(Shown(own, Shown(chunk.positions, chunk.rows).at(own)))
        if not parts:
            return Shown(np.empty(0, np.int64), self._none)
        return Shown(np.concatenate([part.positions for part in parts]), join_rows([part.rows for part in parts]))

    # -- state ----------------------------------------------------------------------------------

    def growing(self, name: str) -> Growing:
        """Return the buffer as a growing part of a state."""
        return Growing(name, self._count - len(self), self._count, lambda low, high: blocks.pack(self._rows(low, high)))

    def _rows(self, low: int, high: int) -> EventBatch:
        """Return the events with these numbers, counted since the start of the stream."""
        at, parts = self._count - len(self), list[EventBatch]()
        for chunk in self._picked():
            if at < high and low < at + len(chunk):
                parts.append(blocks.slice(chunk, max(low - at, 0), high - max(low, at)))
            at += len(chunk)
        return blocks.concat(parts)

    def load(self, pages: Mapping[str, bytes], name: str) -> None:
        """Restore the events from pages."""
        saved = Pages(pages).numbered(name)
        parts = [blocks.unpack(page) for _, page in saved]
        whole = blocks.concat(parts)
        self._fresh = []
        self._chunks = [whole] if len(whole) else []  # the page where all was given up is empty
        self._count = saved[-1][0] + len(parts[-1]) if parts else 0


def _since(chunk: EventBatch, first: int) -> EventBatch:
    """Return the chunk without the events before a position, if they are most of it."""
    gone = int(np.searchsorted(chunk.positions, first))
    return chunk if 2 * gone < len(chunk) else blocks.slice(chunk, gone)
