"""Batches of events as rules take them: types as numbers, values with their kinds, and only events that matter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.machine import tagged
from weft.kernels.rules import tables as t
from weft.runtime.buffers import writable
from weft.runtime.classify.texts import TextTable
from weft.runtime.events import Column, EventBatch, Int64s

Mask = npt.NDArray[np.bool_]


class TypeCoder:
    """Types of events to their numbers; -1 for those that no rule looks at."""

    def __init__(self, types: Mapping[str, int]) -> None:
        self.count = len(types)
        self._table = TextTable(list(types))
        self._dictionary: pa.Array | None = None
        self._codes = np.empty(0, np.int32)

    def code(self, types: pa.Array) -> npt.NDArray[np.int32]:
        """The number of each event's type."""
        if not pa.types.is_dictionary(types.type):
            return self._table.ids(types, add=False)
        if self._dictionary is None or not self._dictionary.equals(types.dictionary):
            self._dictionary = types.dictionary
            self._codes = np.append(self._table.ids(types.dictionary, add=False), np.int32(-1))
        found: npt.NDArray[np.int32] = self._codes[np.asarray(types.indices.fill_null(len(self._codes) - 1))]
        return found


def taken(batch: EventBatch, types: npt.NDArray[np.int32], attributes: Mapping[str, int], texts: TextTable) -> t.Batch:
    """The events whose types have numbers, with the attributes that rules read."""
    chosen = np.flatnonzero(types >= 0)
    rows = None if len(chosen) == len(batch) else chosen
    values = np.zeros((len(chosen), 2 * len(attributes)), np.int64)
    for name, number in attributes.items():
        column = batch.columns.get(name)
        if column is not None:
            tag(column, rows, texts, values[:, 2 * number], values[:, 2 * number + 1])
    times, starts, positions = (_own(part, rows) for part in (batch.ends, batch.starts, batch.positions))
    return t.Batch(types[chosen], times, starts, positions, values.ravel(), values.shape[1])


def _own(array: Int64s, rows: Int64s | None) -> Int64s:
    """The rows of an array, as the kernel is compiled for: contiguous, and not read-only."""
    return writable(np.ascontiguousarray(array) if rows is None else array[rows])


def tag(column: Column, rows: Int64s | None, texts: TextTable, kinds: Int64s, words: Int64s) -> None:
    """The kinds and words of a column's values; what is missing stays 0."""
    if column.numbers is not None:
        known, numbers = _present(column.numbers, rows), _chosen(column.numbers, rows, 0)
        whole = numbers.dtype == np.int64
        _set(kinds, known, tagged.INTEGER if whole else tagged.FLOAT)
        _set(words, known, numbers if whole else numbers.view(np.int64))
    if column.booleans is not None:
        known = _present(column.booleans, rows)
        _set(kinds, known, tagged.BOOLEAN)
        _set(words, known, _chosen(column.booleans, rows, False).astype(np.int64))
    if column.texts is not None:
        known = _present(column.texts, rows)
        ids = text_ids(column.texts, texts)
        _set(kinds, known, tagged.TEXT)
        _set(words, known, (ids if rows is None else ids[rows]).astype(np.int64))


def text_ids(array: pa.Array, texts: TextTable) -> npt.NDArray[np.int32]:
    """The ids of texts, which are added; -1 or less where there is none."""
    if not pa.types.is_dictionary(array.type):
        return texts.ids(array, add=True)
    ids = np.append(texts.ids(array.dictionary, add=True), np.int32(-1))
    found: npt.NDArray[np.int32] = ids[np.asarray(array.indices.fill_null(len(ids) - 1))]
    return found


def _present(array: pa.Array, rows: Int64s | None) -> Mask | None:
    if not array.null_count:
        return None
    present: Mask = np.asarray(array.is_valid())
    return present if rows is None else present[rows]


def _chosen(array: pa.Array, rows: Int64s | None, blank: object) -> npt.NDArray[np.generic]:
    values = np.asarray(array.fill_null(blank) if array.null_count else array)
    return values if rows is None else values[rows]


def _set(target: Int64s, known: Mask | None, values: npt.NDArray[np.generic] | int) -> None:
    if known is None:
        target[:] = values
    elif isinstance(values, int):
        target[known] = values
    else:
        target[known] = values[known]
