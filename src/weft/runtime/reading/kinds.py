"""Convert any column of an input to columns split by kind: numbers, texts and booleans."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import InputError, UsageError, did_you_mean
from weft.runtime.data import blocks
from weft.runtime.data.events import Column
from weft.runtime.data.exact import MOST_DIGITS, exact_column
from weft.runtime.reading.halves import has_half

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
INT64 = range(-(2**63), 2**63)


def check_time_unit(unit: str) -> None:
    """Raise an error for an unknown unit of time."""
    if unit not in NANOSECONDS:
        raise UsageError(f"unknown time unit {unit!r}; {did_you_mean(unit, NANOSECONDS)}")


def column_of(array: pa.Array, time_unit: str = "ms") -> Column:
    """Convert an Arrow array to a column. Nested and binary values count as missing."""
    kind = array.type
    if pa.types.is_int64(kind):
        return Column(numbers=array)
    if pa.types.is_floating(kind):
        return Column(numbers=_floats(array))
    if pa.types.is_string(kind):
        return Column(texts=array)
    if pa.types.is_boolean(kind):
        return Column(booleans=array)
    if pa.types.is_integer(kind):
        return _integers(array)
    if pa.types.is_decimal(kind):
        return exact_column(array.cast(pa.string()))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return Column(texts=array.cast(pa.string()))
    return _unusual_column(array, time_unit)


def _unusual_column(array: pa.Array, time_unit: str) -> Column:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _dictionary(array, time_unit)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _times(array, time_unit)
    if isinstance(kind, pa.BaseExtensionType):
        return column_of(array.storage, time_unit)
    if pa.types.is_run_end_encoded(kind):
        return column_of(pc.run_end_decode(array), time_unit)
    return Column() if pa.types.is_null(kind) else Column(others=array.is_valid())


def _dictionary(array: pa.DictionaryArray, time_unit: str) -> Column:
    values = array.type.value_type
    if not (pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values)):
        return column_of(array.dictionary_decode(), time_unit)
    if array.dictionary.null_count:
        return column_of(array.dictionary_decode(), time_unit)
    if not pa.types.is_string(values):
        texts = array.dictionary.cast(pa.string())
        return Column(texts=pa.DictionaryArray.from_arrays(array.indices, texts))
    return Column(texts=array)


def _integers(array: pa.Array) -> Column:
    """Convert integers to int64, or to their digits if one does not fit."""
    try:
        return Column(numbers=array.cast(pa.int64()))
    except pa.ArrowInvalid:
        return exact_column(array.cast(pa.string()))


def _floats(array: pa.Array) -> pa.Array:
    """Convert to float64, with null for NaN."""
    if not pa.types.is_float64(array.type):
        array = array.cast(pa.float64())
    if not len(array):
        return array
    values: npt.NDArray[np.float64] = np.frombuffer(array.buffers()[1], np.float64)
    values = values[array.offset : array.offset + len(array)]
    # A sum is NaN if a part of it is, and costs less than looking at each; infinities of both signs also give NaN.
    with np.errstate(all="ignore"):
        suspicious = bool(np.isnan(np.sum(values)))
    if suspicious and bool(np.isnan(values).any()):
        return pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)
    return array


def _times(array: pa.Array, time_unit: str) -> Column:
    """Convert times to ticks, with the rest of those that are finer."""
    kind = array.type
    if pa.types.is_date(kind) or NANOSECONDS[kind.unit] >= NANOSECONDS[time_unit]:
        return Column(numbers=ticks_of(array, time_unit))
    unit = NANOSECONDS[kind.unit]
    numbers = array.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(pa.int64()).fill_null(0)
    rest = numbers.to_numpy(zero_copy_only=False) % (NANOSECONDS[time_unit] // unit) * unit
    return Column(numbers=ticks_of(array, time_unit), fine=pa.array(rest) if rest.any() else None)


def ticks_of(array: pa.Array, time_unit: str) -> pa.Array:
    """Convert timestamps, dates, times of day and durations to whole ticks of the unit, rounded down."""
    kind = array.type
    if pa.types.is_date32(kind):
        array = array.cast(pa.timestamp("s"))
    elif pa.types.is_date64(kind):
        array = array.cast(pa.timestamp("ms"))
    unit = NANOSECONDS[array.type.unit]
    numbers = array.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(pa.int64())
    wanted = NANOSECONDS[time_unit]
    if unit == wanted:
        return numbers
    if unit > wanted:
        return pc.multiply(numbers, pa.scalar(unit // wanted, pa.int64()))
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False) // (wanted // unit)
    return pa.array(values, mask=numbers.is_null().to_numpy(zero_copy_only=False))


def plain_array(column: Column, length: int) -> pa.Array:
    """Convert a column to one array: of its kind, or of JSON texts if it has values of several kinds."""
    present = [values for values in (column.numbers, column.texts, column.booleans) if values is not None]
    present = [values for values in present if values.null_count < len(values)]
    if len(present) < 2:
        array = present[0] if present else pa.nulls(length)
        return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    kinds = [values.to_pylist() for values in present]
    found = (next((value for value in row if value is not None), None) for row in zip(*kinds, strict=True))
    return pa.array([None if value is None else json.dumps(value) for value in found], pa.string())


def columns_of_dicts(
    events: Sequence[Mapping[str, object]], names: Iterable[str] | None, time_unit: str = "ms"
) -> dict[str, Column]:
    """Convert attributes of dicts to columns; `names` None means all."""
    if names is None:
        names = dict.fromkeys(name for event in events for name in event)
    return {name: column_of_values(values_of_dicts(events, name), time_unit) for name in names}


def values_of_dicts(events: Sequence[Mapping[str, object]], name: str) -> list[object]:
    """Return an attribute of all events."""
    try:
        return list(map(itemgetter(name), events))
    except KeyError:
        return [field_of(event, name) for event in events]


def field_of(event: Mapping[str, object], name: str) -> object:
    """Return an attribute, or with dots in its name a field of a nested mapping."""
    if name in event or "." not in name:
        return event.get(name)
    value: object = event
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def column_of_values(values: list[Any], time_unit: str = "ms") -> Column:
    """Convert Python values to a column. A Boolean is not a number."""
    found = set(map(type, values)) - {type(None)}
    try:
        if found == {str}:
            return Column(texts=_texts(values))
        if found == {int}:
            return Column(numbers=pa.array(values, pa.int64()))
        if found == {bool}:
            return Column(booleans=pa.array(values, pa.bool_()))
        if found == {float}:
            return Column(numbers=_floats(pa.array(values, pa.float64())))
        if len(found) == 1 and issubclass(next(iter(found)), datetime):
            return column_of(pa.array(values), time_unit)
    except InputError:
        raise
    except (pa.ArrowException, ValueError, OverflowError):
        pass  # an integer that does not fit, a text that is not Unicode
    return _split(values, time_unit) if found else Column()


def _texts(values: Sequence[str | None]) -> pa.Array:
    """Convert texts to one array, which has at most 2 GiB of them."""
    array = pa.array(values, pa.string())
    if isinstance(array, pa.ChunkedArray):
        raise InputError(blocks.TOO_LONG)
    return array


def _split(values: Sequence[Any], time_unit: str) -> Column:
    numbers: list[int | float | Decimal | None] = [None] * len(values)
    texts: list[str | None] = [None] * len(values)
    booleans: list[bool | None] = [None] * len(values)
    others: list[bool | None] = [None] * len(values)
    for row, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, (bool, np.bool_)):
            booleans[row] = bool(value)
        elif isinstance(value, str):
            if has_half(value):
                others[row] = True  # it is no text; events with it are rejected
            else:
                texts[row] = value
        else:
            numbers[row] = number_of(value, time_unit)
            others[row] = True if numbers[row] is None and value == value else None
    near, exact = (None, None) if _blank(numbers) else _number_arrays(numbers)
    return Column(
        near,
        None if _blank(texts) else _texts(texts),
        None if _blank(booleans) else pa.array(booleans, pa.bool_()),
        None if _blank(others) else pa.array(others, pa.bool_()),
        exact,
    )


def _blank(values: Sequence[object]) -> bool:
    return all(value is None for value in values)


def number_of(value: object, time_unit: str) -> int | float | Decimal | None:
    """Convert a Python value to a number (times to ticks), or None."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, (float, np.floating, Decimal)):
        number = math.nan if isinstance(value, Decimal) and value.is_nan() else float(value)
        return None if number != number else number
    if isinstance(value, (datetime, date, timedelta, np.datetime64, np.timedelta64)):
        array = pa.array([value])
        ticks: int | None = None if array.null_count else ticks_of(array, time_unit)[0].as_py()
        return ticks
    return None


def _number_arrays(numbers: list[int | float | Decimal | None]) -> tuple[pa.Array, pa.Array | None]:
    """Convert numbers to integers if all are, else to floats, with the digits of inexact ones."""
    if all(number is None or (isinstance(number, int) and number in INT64) for number in numbers):
        return pa.array(numbers, pa.int64()), None
    digits = [None if number is None else _digits(number) for number in numbers]
    near = [None if number is None else _as_float(number) for number in numbers]
    return pa.array(near, pa.float64()), None if _blank(digits) else pa.array(digits, pa.string())


def _digits(number: int | float | Decimal) -> str | None:
    """Return the digits of a number that is inexact as a float, or None, also if there are too many digits."""
    if isinstance(number, float) or (isinstance(number, int) and abs(number) >= 10**MOST_DIGITS):
        return None
    if isinstance(number, Decimal) and not -MOST_DIGITS <= number.adjusted() < MOST_DIGITS:
        return None
    return str(number) if isinstance(number, int) else f"{number:f}"


def _as_float(number: int | float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
