"""Texts to ids: a hash table that is probed with the bytes of an Arrow array, without a Python object per text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.memory import hashing
from weft.runtime.data.buffers import text_buffers, validity_of

Ids = npt.NDArray[np.int32]
NULL, UNKNOWN = hashing.NULL, hashing.UNKNOWN
LEAST_TEXTS = 1 << 12  # with fewer, a search for unused ones does not pay


class TextTable:
    """Distinct texts, each with an id: 0, 1, … in the order they were added."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._state = np.zeros(3, np.int64)  # texts, whether unknown ones are added, most texts the slots are made for
        self._pool = np.zeros(1024, np.uint8)
        self._offsets = np.zeros(1, np.int64)
        self._used = 0  # texts that the last search for unused ones left
        self._room(len(texts), sum(len(text.encode()) for text in texts))
        if texts:
            self.ids(pa.array(texts, pa.string()), add=True)

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def size(self) -> int:
        """The bytes of all texts."""
        return int(self._offsets[len(self)])

    @property
    def is_crowded(self) -> bool:
        """Whether a search for unused texts pays."""
        return len(self) > max(LEAST_TEXTS, 2 * self._used)

    @property
    def buffers(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The bytes of all texts, and where each begins; valid until texts are added."""
        return self._pool, self._offsets

    def ids(self, array: pa.Array, *, add: bool) -> Ids:
        """Return the id of each text: NULL for a null, UNKNOWN for an unknown text unless `add` is set."""
        offsets, data = text_buffers(array)
        bits, bit_offset = validity_of(array), array.offset
        ids = np.empty(len(array), np.int32)
        self._state[1] = add
        row = 0
        while True:
            texts = hashing.TextPool(self._hashes, self._entries, self._pool, self._offsets, self._state)
            row = int(hashing.find_texts(offsets, data, bits, bit_offset, row, texts, ids))
            if row == len(array):
                return ids
            self._room(2 * len(self) + 64, 2 * self.size + int(offsets[row + 1] - offsets[row]) + 1024)

    def texts(self, first: int = 0) -> list[str]:
        """Return the texts from this id on."""
        offsets = self._offsets[first : len(self) + 1]
        pool = self._pool[: self.size].tobytes()
        return [pool[a:b].decode() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]

    def only(self, kept: npt.NDArray[np.bool_]) -> TextTable:
        """Return a table of some of the texts, by id, in the same order."""
        whole = pa.LargeStringArray.from_buffers(
            len(self), pa.py_buffer(self._offsets[: len(self) + 1]), pa.py_buffer(self._pool[: self.size])
        )
        table = TextTable()
        table.ids(whole.filter(pa.array(kept)).cast(pa.string()), add=True)
        table._used = len(table)
        return table

    def _room(self, texts: int, size: int) -> None:
        """Reserve space for texts of this number and size. Small tables are sparse, so that collisions are rare."""
        slots = 64
        while slots < texts * (16 if texts < 512 else 4):
            slots *= 2
        self._state[2] = texts
        self._hashes = np.zeros(slots, np.uint64)
        self._entries = np.zeros(slots, np.uint64)
        self._pool = np.concatenate([self._pool, np.zeros(max(0, size - len(self._pool)), np.uint8)])
        self._offsets = np.concatenate([self._offsets, np.zeros(max(0, texts + 1 - len(self._offsets)), np.int64)])
        hashing.place_texts(self._offsets, self._pool, len(self), self._hashes, self._entries)
