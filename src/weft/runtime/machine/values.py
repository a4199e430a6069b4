"""Convert columns of events, and constants, to tagged values (`weft.kernels.machine.tagged`), and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.numbers import worth
from weft.algebra.predicates import Value
from weft.kernels.machine import tagged
from weft.kernels.machine.decimals import DIGITS
from weft.kernels.machine.tagged import VALUE
from weft.runtime.classify.texts import TextTable
from weft.runtime.classify.vectors import held
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import (
    decimal_text,
    digits_at,
    nearest,
    numbers_of,
    unnamed_rows,
    whole_numbers,
    with_digits,
)

Mask = npt.NDArray[np.bool_]
Tagged = tuple[int, int]  # kind and word


def tag(value: Value | Decimal, texts: TextTable) -> Tagged:
    """Encode a constant; a text is added to the texts, and so is a number without an exact integer or float."""
    if isinstance(value, bool):
        return tagged.BOOLEAN, int(value)
    if isinstance(value, str):
        return tagged.TEXT, int(texts.ids(pa.array([value], pa.string()), add=True)[0])
    if not isinstance(value, float) and value == int(value):
        value = int(value)
        if -(2**63) <= value < 2**63:
            return tagged.INTEGER, value
    if not isinstance(value, float) and value != worth(nearest(value)):
        return tagged.DECIMAL, int(texts.ids(pa.array([decimal_text(value)]), add=True)[0])
    number = held(value)
    return tagged.FLOAT, int(np.float64(number).view(np.int64))


def tag_events(
    batch: EventBatch, rows: Int64s | None, attributes: Sequence[str], texts: TextTable, values: Int64s
) -> None:
    """Write the attributes of all or some events as tagged values, with the same number of words for each event."""
    table = values.reshape(len(batch) if rows is None else len(rows), VALUE * len(attributes))
    for number, name in enumerate(attributes):
        kinds, words = table[:, VALUE * number], table[:, VALUE * number + 1]
        kinds[:] = tagged.MISSING
        column = batch.columns.get(name)
        if column is not None:
            _tag_column(column, rows, texts, kinds, words)


def _tag_column(column: Column, rows: Int64s | None, texts: TextTable, kinds: Int64s, words: Int64s) -> None:
    if column.numbers is not None:
        known, numbers = _present(column.numbers, rows), _chosen(column.numbers, rows, 0)
        whole = numbers.dtype == np.int64
        _set(kinds, known, tagged.INTEGER if whole else tagged.FLOAT)
        _set(words, known, numbers if whole else numbers.view(np.int64))
    if column.exact is not None:  # among floats
        among, integers = whole_numbers(column)
        known = among if rows is None else among[rows]
        _set(kinds, known, tagged.INTEGER)
        _set(words, known, integers if rows is None else integers[rows])
        _tag_decimals(column, among, rows, texts, kinds, words)
    if column.booleans is not None:
        known = _present(column.booleans, rows)
        _set(kinds, known, tagged.BOOLEAN)
        _set(words, known, _chosen(column.booleans, rows, False).astype(np.int64))
    if column.texts is not None:
        known = _present(column.texts, rows)
        ids = text_ids(column.texts, texts)
        _set(kinds, known, tagged.TEXT)
        _set(words, known, (ids if rows is None else ids[rows]).astype(np.int64))


def _tag_decimals(
    column: Column, among: Mask, rows: Int64s | None, texts: TextTable, kinds: Int64s, words: Int64s
) -> None:
    """Write the numbers that neither an integer nor a float represents exactly."""
    places = unnamed_rows(column)
    places = places[~among[places]]
    if not len(places):
        return
    found = np.full((len(among), VALUE), -1, np.int64)
    found[places] = [tag(number, texts) for number in digits_at(column, places)]
    chosen = found if rows is None else found[rows]
    _set(kinds, chosen[:, 0] >= 0, chosen[:, 0])
    _set(words, chosen[:, 0] >= 0, chosen[:, 1])


def text_ids(array: pa.Array, texts: TextTable) -> npt.NDArray[np.int32]:
    """Return the ids of texts, which are added; -1 or less for missing ones."""
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


def column_of(kinds: npt.NDArray[np.integer], words: Int64s, texts: TextTable) -> Column:
    """Values as a column."""
    is_whole, named, flags = kinds == tagged.INTEGER, kinds == tagged.TEXT, kinds == tagged.BOOLEAN
    known = is_whole | (kinds == tagged.FLOAT)
    numbers = numbers_of(is_whole, known, words, words.view(np.float64)) if known.any() else Column()
    long = kinds == tagged.DECIMAL
    if long.any():
        numbers = with_digits(numbers, _digits(words, long, texts))
    return replace(
        numbers,
        texts=_texts(words, named, texts) if named.any() else None,
        booleans=pa.array(words == 1, mask=~flags) if flags.any() else None,
    )


def _digits(words: Int64s, known: Mask, texts: TextTable) -> pa.Array:
    """Return the digits of decimals from their texts."""
    return pc.binary_replace_slice(_texts(words, known, texts).cast(pa.binary()), 0, DIGITS, b"").cast(pa.string())


def _texts(words: Int64s, known: Mask, texts: TextTable) -> pa.Array:
    pool, offsets = texts.buffers
    whole = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets[: len(texts) + 1]), pa.py_buffer(pool))
    return whole.take(pa.array(np.where(known, words, 0), mask=~known)).cast(pa.string())


def only_used(texts: TextTable, values: Int64s, used: Mask | None = None) -> TextTable:
    """Return a table of the texts that values have (among those that `used` marks), and replace their ids."""
    pairs = values.reshape(-1, VALUE)
    places = np.flatnonzero((pairs[:, 0] == tagged.TEXT) | (pairs[:, 0] == tagged.DECIMAL))
    kept = np.zeros(len(texts), bool)
    kept[pairs[places if used is None else places[used[places]], 1]] = True
    pairs[places, 1] = (np.cumsum(kept) - 1)[pairs[places, 1]]
    return texts.only(kept)
