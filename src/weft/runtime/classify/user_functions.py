"""Evaluate user-defined functions over the values of a batch: one call for the events that have all operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from weft.algebra.functions import DTYPES, Kind, Mask, UserFunction, Values
from weft.runtime.classify.functions import Numbers, Vector, valid_texts

_NOTHING = np.zeros((), bool)


def call_user(function: UserFunction, operands: Sequence[Vector]) -> Vector:
    """Evaluate a function; see `weft.algebra.functions.UserFunction`."""
    taken = [_taken(kind, operand) for kind, operand in zip(function.takes, operands, strict=True)]
    valid: Mask = reduce(np.logical_and, [there for _, there in taken])
    rows = np.atleast_1d(valid)
    values, present = function.apply([np.broadcast_to(own, rows.shape)[rows] for own, _ in taken])
    found, there = np.zeros(rows.shape, values.dtype), np.zeros(rows.shape, bool)
    found[rows], there[rows] = values, present
    found, there = found.reshape(valid.shape), there.reshape(valid.shape)
    if function.gives == "boolean":
        return Vector(booleans=(found, there))
    if function.gives == "text":
        texts = pa.array(np.where(there, found, np.array(None, object)).ravel(), pa.string())
        return Vector(texts=texts if valid.shape else texts[0])
    return Vector(Numbers(found, there))


def _taken(kind: Kind, operand: Vector) -> tuple[Values, Mask]:
    """Return the values of an operand of a kind, and where they are present."""
    if kind == "boolean":
        return operand.booleans or (_NOTHING, _NOTHING)
    if kind == "text":
        return (_NOTHING, _NOTHING) if operand.texts is None else _texts(operand.texts)
    if operand.numbers is None:
        return _NOTHING, _NOTHING
    return _whole(operand.numbers) if kind == "integer" else _floats(operand.numbers)


def _texts(texts: pa.Array | pa.Scalar) -> tuple[Values, Mask]:
    if isinstance(texts, pa.Scalar):
        return np.array(texts.as_py(), object), valid_texts(texts)
    return texts.to_numpy(zero_copy_only=False).astype(object), valid_texts(texts)


def _floats(numbers: Numbers) -> tuple[Values, Mask]:
    return np.where(numbers.valid, numbers.values, 0).astype(np.float64), numbers.valid


def _whole(numbers: Numbers) -> tuple[Values, Mask]:
    """Return which numbers are integers of 64 bits."""
    if numbers.whole:
        return numbers.values, numbers.valid
    known = np.where(numbers.valid, numbers.values, 0)
    if known.dtype == np.float64:
        with np.errstate(invalid="ignore"):
            fits = numbers.valid & (np.floor(known) == known) & (known >= -(2.0**63)) & (known < 2.0**63)
    else:
        fits = numbers.valid & np.array([one == one // 1 and -(2**63) <= one < 2**63 for one in known.flat]).reshape(
            known.shape
        )
    return np.where(fits, known, 0).astype(DTYPES["integer"]), fits
