"""The events that a later match may still show, as the input has them: kept in order, looked up by position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.joint_types import join_rows

LEAST = 1 << 12  # fewer events are not worth a look at which still matter, nor a chunk of their own


class Shown(NamedTuple):
    """Events at ascending positions, as the input has them."""

    positions: Int64s
    rows: pa.RecordBatch

    def at(self, positions: Int64s) -> pa.RecordBatch:
        """The events at these positions, in this order."""
        return self.rows.take(pa.array(np.searchsorted(self.positions, positions)))


class KeptEvents:
    """Chunks of events, oldest first. A chunk never changes, so each is written to a snapshot once."""

    def __init__(self) -> None:
        self._chunks: list[Shown] = []
        self._none = pa.record_batch([], names=[])  # no events, with the columns of the last ones
        self._saved: set[str] = set()
        self._look_at = LEAST  # so many events are worth a look at which still matter

    def __len__(self) -> int:
        return sum(len(chunk.positions) for chunk in self._chunks)

    def add(self, batch: EventBatch) -> None:
        """Keep the events of a batch, which come after all others."""
        if batch.rows is None or not len(batch):
            return
        self._chunks.append(Shown(batch.positions, batch.rows))
        self._none = batch.rows.slice(0, 0)
        while len(self._chunks) > 1 and len(self._chunks[-2].positions) < max(LEAST, len(self._chunks[-1].positions)):
            self._chunks[-2:] = [_joined(self._chunks[-2:])]

    def forget(self, oldest: Callable[[], int | None]) -> None:
        """Give up the events before a position (None: all), if they are many; to find that position out takes time."""
        if len(self) < self._look_at:
            return
        first = oldest()
        if first is None:
            self._chunks = []
        else:
            self._chunks = [_since(chunk, first) for chunk in self._chunks if chunk.positions[-1] >= first]
        self._look_at = max(LEAST, 2 * len(self))

    def shown(self, positions: Int64s) -> Shown:
        """The events at these positions (in any order), and maybe others."""
        if not len(positions):
            return Shown(np.empty(0, np.int64), self._none)
        places = np.unique(positions)
        parts = []
        for chunk in self._chunks:
            low, high = np.searchsorted(places, [chunk.positions[0], chunk.positions[-1] + 1])
            if low < high:
                own = places[low:high]
                parts.append(Shown(own, chunk.at(own)))
        return _joined(parts) if parts else Shown(np.empty(0, np.int64), self._none)

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The chunks that are new since the last snapshot; None: the chunk is gone."""
        chunks = {f"{chunk.positions[0]}-{chunk.positions[-1]}": chunk for chunk in self._chunks}
        changes: dict[str, bytes | None] = {
            name: _packed(chunk) for name, chunk in chunks.items() if name not in self._saved
        }
        changes.update(dict.fromkeys(self._saved - chunks.keys()))
        self._saved = set(chunks)
        return changes

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the chunks of snapshots."""
        self._chunks = [_unpacked(pages[name]) for name in sorted(pages, key=lambda name: int(name.partition("-")[0]))]
        self._saved = set(pages)


def _joined(parts: list[Shown]) -> Shown:
    if len(parts) == 1:
        return parts[0]
    rows = join_rows([part.rows for part in parts])
    return Shown(np.concatenate([part.positions for part in parts]), rows)


def _since(chunk: Shown, first: int) -> Shown:
    """The chunk without the events before a position, if they are most of it."""
    gone = int(np.searchsorted(chunk.positions, first))
    if 2 * gone < len(chunk.positions):
        return chunk
    return Shown(chunk.positions[gone:], chunk.rows.slice(gone))


def _packed(chunk: Shown) -> bytes:
    return blocks.packed_rows(
        pa.RecordBatch.from_arrays([pa.array(chunk.positions), chunk.rows.to_struct_array()], names=["p", "r"])
    )


def _unpacked(page: bytes) -> Shown:
    batch = blocks.unpacked_rows(page)
    return Shown(np.asarray(batch.column(0)), pa.RecordBatch.from_struct_array(batch.column(1)))
