"""Functions over the values of a batch, and their representation: numbers, texts and booleans by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates import Like, RegexMatch
from weft.regexes import finder, liker
from weft.runtime.data.events import Column
from weft.runtime.data.exact import numbers_of

Mask = npt.NDArray[np.bool_]
DAY = 86400 * 10**9
_FIRST_DAY = date.min.toordinal() - date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal() - date(1970, 1, 1).toordinal()
_TIMES = {"HOUR": (3600, 24), "MINUTE": (60, 60), "SECOND": (1, 60)}


@dataclass(frozen=True)
class Numbers:
    """Numbers of the events (int64, float64 or Python objects), or one for all; undefined where not valid."""

    values: npt.NDArray[Any]
    valid: Mask

    @property
    def whole(self) -> bool:
        """Whether they are 64-bit integers."""
        return self.values.dtype == np.int64

    def bound(self) -> int:
        """An upper bound of the absolute value of integers."""
        return max(abs(int(self.values.min())), abs(int(self.values.max()))) if self.values.size else 0

    def objects(self) -> npt.NDArray[np.object_]:
        """Return the numbers as Python numbers."""
        return self.values.astype(object)


@dataclass(frozen=True)
class Vector:
    """The values of an expression, by kind."""

    numbers: Numbers | None = None
    texts: pa.Array | pa.Scalar | None = None
    booleans: tuple[Mask, Mask] | None = None  # values, valid


def present(vector: Vector) -> Mask:
    """Return where there is a value of any kind."""
    found: Mask = np.zeros((), bool)
    if vector.numbers is not None:
        found = found | vector.numbers.valid
    if vector.texts is not None:
        found = found | valid_texts(vector.texts)
    return found if vector.booleans is None else found | vector.booleans[1]


def to_column(vector: Vector, count: int) -> Column:
    """Return the values as a column of `count` events."""
    texts = flags = None
    numbers = Column() if vector.numbers is None else _number_column(vector.numbers, count)
    if vector.texts is not None:
        scalar = isinstance(vector.texts, pa.Scalar)
        texts = pa.array([vector.texts.as_py()] * count, pa.string()) if scalar else vector.texts
    if vector.booleans is not None:
        truth, valid = (np.broadcast_to(part, count) for part in vector.booleans)
        flags = pa.array(truth, mask=~valid)
    return replace(numbers, texts=texts, booleans=flags)


def _number_column(numbers: Numbers, count: int) -> Column:
    values, valid = np.broadcast_to(numbers.values, count), np.broadcast_to(numbers.valid, count)
    if values.dtype != object:
        return Column(pa.array(values, mask=~valid))
    known = [value if ok else 0 for value, ok in zip(values, valid, strict=True)]
    whole = [isinstance(value, int) and -(2**63) <= value < 2**63 for value in known]
    wholes = np.array([value if fits else 0 for value, fits in zip(known, whole, strict=True)], np.int64)
    return numbers_of(np.array(whole, bool), valid, wholes, np.array(known, np.float64))


def call(function: str, operands: Sequence[Vector], tick: int) -> Vector:
    """Evaluate a function; see `weft.algebra.predicates.Call`."""
    if function == "COALESCE":
        found = operands[0]
        for other in operands[1:]:
            found = _first_of(found, other)
        return found
    if function in ("LEAST", "GREATEST"):
        numbers = [operand.numbers for operand in operands]
        return Vector(_outermost(function, [own for own in numbers if own is not None])) if all(numbers) else Vector()
    (operand,) = operands
    if function in ("LOWER", "UPPER"):
        change = str.lower if function == "LOWER" else str.upper
        return Vector(texts=None if operand.texts is None else _changed(operand.texts, change))
    if function == "LENGTH":
        return Vector() if operand.texts is None else Vector(_lengths(operand.texts))
    if operand.numbers is None:
        return Vector()
    return Vector(_absolute(operand.numbers) if function == "ABS" else _part_of_date(function, operand.numbers, tick))


def text_test(predicate: Like | RegexMatch) -> Callable[[str], bool]:
    """Return the test of a predicate on texts."""
    return finder(predicate.pattern) if isinstance(predicate, RegexMatch) else liker(predicate.pattern)


def text_truths(texts: pa.Array | pa.Scalar | None, test: Callable[[str], bool]) -> Mask:
    """Return which texts pass a test; each distinct one is tested once."""
    if texts is None:
        return np.zeros((), bool)
    if isinstance(texts, pa.Scalar):
        return np.array(texts.is_valid and test(texts.as_py()))
    coded = texts.dictionary_encode()
    truths = np.array([*map(test, coded.dictionary.to_pylist()), False], bool)
    found: Mask = truths[np.asarray(coded.indices.fill_null(len(truths) - 1))]
    return found


def _first_of(one: Vector, other: Vector) -> Vector:
    """Return the value of the first where it has one, else that of the second."""
    own = present(one)
    size = np.broadcast_shapes(own.shape, present(other).shape)
    own = np.broadcast_to(own, size)
    return Vector(_numbers_of(one, other, own), _texts_of(one, other, own), _booleans_of(one, other, own))


def _numbers_of(one: Vector, other: Vector, own: Mask) -> Numbers | None:
    if one.numbers is None or other.numbers is None:
        only, mask = (one.numbers, own) if other.numbers is None else (other.numbers, ~own)
        return None if only is None else Numbers(np.broadcast_to(only.values, own.shape), only.valid & mask)
    a, b = one.numbers, other.numbers
    plain = a.values.dtype == b.values.dtype
    values = np.where(own, a.values, b.values) if plain else np.where(own, a.objects(), b.objects())
    return Numbers(values, np.where(own, a.valid, b.valid))


def _texts_of(one: Vector, other: Vector, own: Mask) -> pa.Array | pa.Scalar | None:
    if one.texts is None and other.texts is None:
        return None
    none = pa.scalar(None, pa.string())
    a = none if one.texts is None else one.texts
    b = none if other.texts is None else other.texts
    if not own.shape:
        return a if own else b
    return pc.if_else(pa.array(own), a, b)


def _booleans_of(one: Vector, other: Vector, own: Mask) -> tuple[Mask, Mask] | None:
    if one.booleans is None and other.booleans is None:
        return None
    none = (np.zeros((), bool), np.zeros((), bool))
    a, b = one.booleans or none, other.booleans or none
    return np.where(own, a[0], b[0]), np.where(own, a[1], b[1])


def valid_texts(texts: pa.Array | pa.Scalar) -> Mask:
    """Return where there is a text."""
    if isinstance(texts, pa.Scalar):
        return np.array(texts.is_valid)
    valid: Mask = texts.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _changed(texts: pa.Array | pa.Scalar, change: Callable[[str], str]) -> pa.Array | pa.Scalar:
    """Change each distinct text once. Arrow's own functions classify some letters differently from Python's."""
    if isinstance(texts, pa.Scalar):
        return pa.scalar(change(texts.as_py()) if texts.is_valid else None, pa.string())
    coded = texts.dictionary_encode()
    return pa.array(list(map(change, coded.dictionary.to_pylist())), pa.string()).take(coded.indices)


def _lengths(texts: pa.Array | pa.Scalar) -> Numbers:
    found = pc.utf8_length(texts)
    if isinstance(found, pa.Scalar):
        return Numbers(np.array(found.as_py() or 0, np.int64), np.array(found.is_valid))
    return Numbers(np.asarray(found.fill_null(0)).astype(np.int64), valid_texts(texts))


def _absolute(numbers: Numbers) -> Numbers:
    if numbers.values.dtype == object or (numbers.whole and numbers.bound() == 2**63):
        # What does not fit into 64 bits is a float.
        values = [float(v) if isinstance(v, int) and v >= 2**63 else v for v in np.abs(numbers.objects()).flat]
        made = np.empty(len(values), object)
        made[:] = values
        return Numbers(made.reshape(numbers.values.shape), numbers.valid)
    return Numbers(np.abs(numbers.values), numbers.valid)


def _outermost(function: str, numbers: Sequence[Numbers]) -> Numbers:
    """Return the least or the greatest of several numbers, where all are present; of equal ones the first."""
    found = numbers[0]
    for other in numbers[1:]:
        plain = found.values.dtype == other.values.dtype != object
        one, two = (found.values, other.values) if plain else (found.objects(), other.objects())
        valid = found.valid & other.valid
        one, two = np.where(valid, one, 0), np.where(valid, two, 0)
        taken = np.asarray(two < one if function == "LEAST" else two > one, bool)
        found = Numbers(np.where(taken, two, one), valid)
    return found


def _part_of_date(part: str, numbers: Numbers, tick: int) -> Numbers:
    ticks, valid = _whole_ticks(numbers)
    per_day = DAY // tick
    days, rest = np.floor_divide(ticks, per_day), np.mod(ticks, per_day)
    valid = valid & (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    if part in _TIMES:
        length, most = _TIMES[part]
        # A tick is a whole part of a second, or a whole number of them.
        seconds = rest // (10**9 // tick) if tick < 10**9 else rest * (tick // 10**9)
        return Numbers(seconds // length % most, valid)
    dates = np.where(valid, days, 0).astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    if part == "DAY":
        return Numbers((dates - months).astype(np.int64) + 1, valid)
    numbers_of_months = months.astype(np.int64)
    found = numbers_of_months // 12 + 1970 if part == "YEAR" else numbers_of_months % 12 + 1
    return Numbers(np.asarray(found), valid)


def _whole_ticks(numbers: Numbers) -> tuple[npt.NDArray[np.int64], Mask]:
    """Return the numbers as 64-bit integers, and which fit; larger ones are no dates."""
    if numbers.whole:
        return numbers.values, numbers.valid
    values = numbers.values if numbers.values.dtype == np.float64 else numbers.objects().astype(np.float64)
    with np.errstate(all="ignore"):
        fits = numbers.valid & (np.abs(values) < 2.0**62) & (np.floor(values) == values)
    if numbers.values.dtype == np.float64:
        return np.where(fits, values, 0).astype(np.int64), fits
    return np.where(fits, numbers.values, 0).astype(np.int64), fits
