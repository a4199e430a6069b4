"""Encode batches of events for rules: types as numbers, tagged values, and only relevant events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.machine.tagged import VALUE
from weft.kernels.rules import tables as t
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.buffers import writable
from weft.runtime.data.events import BEGUN, EventBatch, Int64s
from weft.runtime.machine.values import tag_events


class TypeCoder:
    """Maps types of events to numbers, or -1 if no rule reads them."""

    def __init__(self, types: Mapping[str, int]) -> None:
        self.count = len(types)
        self._table = TextTable(list(types))
        self._dictionary: pa.Array | None = None
        self._codes = np.empty(0, np.int32)

    def code(self, types: pa.Array) -> npt.NDArray[np.int32]:
        """Return the number of each event's type."""
        if not pa.types.is_dictionary(types.type):
            return self._table.ids(types, add=False)
        if self._dictionary is None or not self._dictionary.equals(types.dictionary):
            self._dictionary = types.dictionary
            self._codes = np.append(self._table.ids(types.dictionary, add=False), np.int32(-1))
        found: npt.NDArray[np.int32] = self._codes[np.asarray(types.indices.fill_null(len(self._codes) - 1))]
        return found


def batch_of_events(
    batch: EventBatch, types: npt.NDArray[np.int32], attributes: Mapping[str, int], texts: TextTable
) -> t.Batch:
    """Encode the events whose types have numbers, with the attributes that rules read."""
    chosen = np.flatnonzero(types >= 0)
    rows = None if len(chosen) == len(batch) else chosen
    width = VALUE * len(attributes)
    values = np.empty(len(chosen) * width, np.int64)
    tag_events(batch, rows, list(attributes), texts, values)
    times, starts, positions = (_own(part, rows) for part in (batch.ends, _beginnings(batch), batch.positions))
    return t.Batch(types[chosen], times, starts, positions, values, width)


def _beginnings(batch: EventBatch) -> Int64s:
    """Return the starts of events; for events defined by rules of another layer, the start of their first event."""
    begun = batch.columns.get(BEGUN)
    if begun is None or begun.numbers is None:
        return batch.starts
    known = np.asarray(begun.numbers.is_valid())
    return np.where(known, np.asarray(begun.numbers.fill_null(0)), batch.starts)


def _own(array: Int64s, rows: Int64s | None) -> Int64s:
    """Return rows of an array in the form that the kernel is compiled for: contiguous and writable."""
    return writable(np.ascontiguousarray(array) if rows is None else array[rows])
