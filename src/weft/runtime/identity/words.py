"""A hash of the type and some attributes of each event: by kind and value, the same in every process and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.memory import xxhash
from weft.runtime.data.buffers import fixed, text_buffers, values_of
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.exact import MOST_DIGITS, digits_at, unnamed_rows

UInt64s = npt.NDArray[np.uint64]
Has = npt.NDArray[np.uint8]
_DIGITS = Context(prec=2 * MOST_DIGITS)
NO_COLUMN = Column()


def event_words(batch: EventBatch, names: Sequence[str]) -> UInt64s:
    """Return the hash of each event's type and of its attributes with these names, in this order."""
    words = np.empty(len(batch), np.uint64)
    if not len(words):
        return words
    if pa.types.is_dictionary(batch.types.type):
        known = np.empty(len(batch.types.dictionary), np.uint64)
        xxhash.add_types(*_texts(batch.types.dictionary), known)
        words = known[values_of(batch.types.indices)]
    else:
        xxhash.add_types(*_texts(batch.types), words)
    for name in names:
        _add(batch.columns.get(name, NO_COLUMN), words)
    return words


def _add(column: Column, words: UInt64s) -> None:
    """Add an attribute to the hashes of events."""
    found = np.zeros(len(words), np.uint8)  # which have a value
    if column.numbers is not None:
        has = _valid(column.numbers)
        found |= has
        digits = unnamed_rows(column)
        if len(digits):
            has = has.copy()
            _add_digits(column, digits[has[digits] != 0], words)
            has[digits] = 0
        values = values_of(column.numbers)
        if values.dtype == np.int64:
            xxhash.add_wholes(values, fixed(has), words)
        else:
            xxhash.add_floats(values, values.view(np.uint64), fixed(has), words)
    if column.texts is not None:
        has = _valid(column.texts)
        has &= ~found & 1
        found |= has
        xxhash.add_texts(*_texts(column.texts), int(xxhash.TEXT), fixed(has), words)
    if column.booleans is not None:
        has = _valid(column.booleans)
        has &= ~found & 1
        found |= has
        flags = np.asarray(column.booleans.fill_null(False).to_numpy(zero_copy_only=False), np.uint8)
        xxhash.add_booleans(fixed(flags), fixed(has), words)
    if not found.all():
        xxhash.add_missing(fixed(found), words)


def _add_digits(column: Column, rows: npt.NDArray[np.int64], words: UInt64s) -> None:
    """Add numbers that no float represents: integers directly, decimals by their digits."""
    numbers = digits_at(column, rows)
    is_whole = np.array([number == int(number) and -(2**63) <= number < 2**63 for number in numbers], np.uint8)
    wholes = np.array([int(number) if fit else 0 for number, fit in zip(numbers, is_whole, strict=True)], np.int64)
    texts = pa.array([f"{Decimal(number).normalize(_DIGITS):f}" for number in numbers], pa.string())
    own = words[rows]
    xxhash.add_wholes(fixed(wholes), fixed(is_whole), own)
    xxhash.add_texts(*_texts(texts), int(xxhash.DIGITS), fixed(1 - is_whole), own)
    words[rows] = own


def _valid(array: pa.Array) -> Has:
    if not array.null_count:
        return np.ones(len(array), np.uint8)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.uint8)


def _texts(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    plain = array if array.type == pa.string() else array.cast(pa.string())
    return text_buffers(plain)
