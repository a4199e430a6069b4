"""Rows by partition and order: where each partition begins, and a permutation if the input is not sorted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import OrderKey, RowPattern
from weft.errors import InputError, did_you_mean
from weft.runtime.operators.row_patterns.ordering import float_ranks

Int64s = npt.NDArray[np.int64]
_DIGIT = 16  # bits that NumPy sorts by radix


@dataclass
class RowLayout:
    """The rows of a table, sorted by partition and order. Columns are sorted on first access."""

    table: pa.Table
    order: Int64s | None  # None: the table is sorted
    begins: Int64s
    ends: Int64s
    ties: int = 0  # rows that equal the row before them in partition and order
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a column in sorted order, as one array of a plain type."""
        if name not in self._columns:
            found = plain(self.table.column(name))
            self._columns[name] = found if self.order is None else found.take(pa.array(self.order))
        return self._columns[name]

    def taken(self, name: str, rows: Int64s) -> pa.ChunkedArray:
        """Return the values of a column at some of the sorted rows, in the type of the input."""
        places = rows if self.order is None else self.order[rows]
        return self.table.column(name).take(pa.array(places))


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Convert a column to one array, without dictionaries and other encodings of the same values."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(found.type):
        found = found.dictionary_decode()
    if pa.types.is_large_string(found.type) or pa.types.is_string_view(found.type):
        found = found.cast(pa.string())
    return found


def laid_out(table: pa.Table, query: RowPattern, *, by_others: bool = False) -> RowLayout:
    """Sort the rows of a table by partition and order of a query; rows that tie keep their order.

    With `by_others`, rows that tie are ordered by their other columns, so that the order of the table does not matter.
    """
    for name in (*query.partition, *(key.column for key in query.order)):
        if name not in table.column_names:
            raise InputError(f"there is no column {name!r}; {did_you_mean(name, table.column_names) or ''}")
    codes = partition_codes(table, query.partition)
    keys = [_sortable(plain(table.column(key.column)), key) for key in query.order]
    order = None if _is_contiguous(codes) else stable_order([codes])
    arranged = _arranged([codes, *keys], order)
    if not _is_ordered(arranged):
        order = stable_order([codes, *keys])
        arranged = _arranged([codes, *keys], order)
    ties = _ties(arranged) if keys else 0
    if ties and by_others:
        order = stable_order([codes, *keys, *_other_keys(table, query)])
    codes = arranged[0]
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    begins = np.concatenate(([0], changes)).astype(np.int64) if len(codes) else np.empty(0, np.int64)
    ends = np.append(begins[1:], len(codes)).astype(np.int64) if len(codes) else begins
    return RowLayout(table, order, begins, ends, ties)


def _arranged(keys: list[Int64s], order: Int64s | None) -> list[Int64s]:
    return keys if order is None else [key[order] for key in keys]


def _ties(arranged: list[Int64s]) -> int:
    """Return how many rows equal the row before them in partition and order."""
    same = arranged[0][1:] == arranged[0][:-1]
    for key in arranged[1:]:
        same &= key[1:] == key[:-1]
    return int(np.count_nonzero(same))


def _other_keys(table: pa.Table, query: RowPattern) -> list[Int64s]:
    """Return the columns that neither partition nor order names as sort keys, without types that have no order."""
    named = {*query.partition, *(key.column for key in query.order)}
    found = []
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name not in named and not pa.types.is_nested(kind):
            found.append(_sortable(plain(table.column(name)), OrderKey(name)))
    return found


def partition_codes(table: pa.Table, names: tuple[str, ...]) -> Int64s:
    """Return the number of each row's partition. Nulls are equal."""
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        encoded = pc.dictionary_encode(plain(table.column(name)), null_encoding="encode")
        of_column = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes.any():
            joint = pc.dictionary_encode(pa.array(codes * len(encoded.dictionary) + of_column))
            codes = joint.indices.to_numpy().astype(np.int64)
        else:
            codes = of_column
    return codes


def _is_contiguous(codes: Int64s) -> bool:
    if not len(codes):
        return True
    runs = 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))
    return bool(runs == int(codes.max()) + 1)


def _is_ordered(arranged: list[Int64s]) -> bool:
    """Whether rows are in the order of the keys inside partitions."""
    same = arranged[0][1:] == arranged[0][:-1]
    for key in arranged[1:]:
        if np.any(same & (key[1:] < key[:-1])):
            return False
        same &= key[1:] == key[:-1]
    return True


def stable_order(keys: list[Int64s]) -> Int64s:
    """Return the stable permutation that sorts by non-negative keys, the first being the most significant."""
    order: Int64s | None = None
    for key in reversed(keys):
        most, shift = int(key.max(initial=0)), 0
        while most >> shift:
            digit = (key >> shift & 0xFFFF).astype(np.uint16)
            if order is None:
                order = np.argsort(digit, kind="stable")
            else:
                order = order[np.argsort(digit[order], kind="stable")]
            shift += _DIGIT
    return np.arange(len(keys[0])) if order is None else order


def _sortable(values: pa.Array, key: OrderKey) -> Int64s:
    """Map values to non-negative numbers in their order; nulls are where the key says."""
    numbers, absent = _ranked(values), np.asarray(values.is_null())
    here = numbers[~absent]
    if not len(here):
        return np.zeros(len(values), np.int64)
    low, high = int(here.min()), int(here.max())
    if high - low >= 2**62:
        dense = np.unique(here, return_inverse=True)[1]
        numbers = numbers.copy()
        numbers[~absent] = dense
        low, high = 0, int(dense.max(initial=0))
    found = (high - numbers if key.descending else numbers - low) + 1
    if absent.any():
        found[absent] = 0 if key.nulls_first else high - low + 2
    return found


def _ranked(values: pa.Array) -> Int64s:
    """Map values to numbers in their order."""
    kind = values.type
    if pa.types.is_floating(kind):
        return float_ranks(values)
    if pa.types.is_signed_integer(kind) or (pa.types.is_unsigned_integer(kind) and kind.bit_width < 64):
        return _integers(values.cast(pa.int64()))
    if pa.types.is_temporal(kind) and kind.bit_width == 64:
        return _integers(values.view(pa.int64()))
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return _integers(values.view(pa.int32()))
    encoded = values.dictionary_encode()
    by_value = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(by_value), np.int64)
    ranks[by_value] = np.arange(len(by_value))
    if not len(ranks):
        return np.zeros(len(values), np.int64)
    return ranks[_integers(encoded.indices)]


def _integers(values: pa.Array) -> Int64s:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
