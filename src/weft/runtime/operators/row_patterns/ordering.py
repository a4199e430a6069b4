"""Exact comparisons of numbers where Arrow's kernels are inexact: NaN, and integers with floats.

NaN equals itself and is the greatest number. An integer and a float compare by value, also where the float type cannot
represent the integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.operators.row_patterns.sql_types import Value

Int64s = npt.NDArray[np.int64]
EXACT = 2**53  # all integers up to this are exact as floats
_HOLDS: dict[str, Callable[[Any], Any]] = {
    "=": lambda signs: signs == 0,
    "<>": lambda signs: signs != 0,
    "<": lambda signs: signs < 0,
    "<=": lambda signs: signs <= 0,
    ">": lambda signs: signs > 0,
    ">=": lambda signs: signs >= 0,
}


def float_ranks(values: pa.Array) -> Int64s:
    """Map floats to integers in their order; those of nulls are arbitrary."""
    floats = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
    bits: Int64s = floats.view(np.int64)
    ranks: Int64s = np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
    ranks[np.isnan(floats)] = np.iinfo(np.int64).max
    return ranks


def largest_of(values: Value) -> int:
    """Return the largest absolute value of integers, or 0 without any."""
    if isinstance(values, pa.Scalar):
        return abs(int(values.as_py() or 0))
    found = pc.min_max(values)
    return max(abs(int(found[end].as_py() or 0)) for end in ("min", "max"))


def has_nan(values: Value) -> bool:
    """Whether any float is NaN."""
    found = pc.is_nan(values)
    return (found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py()) is True


def needs_exactness(left: Value, right: Value) -> bool:
    """Whether Arrow's comparison of two operands as floats would be wrong."""
    floats = [value for value in (left, right) if pa.types.is_floating(value.type)]
    wholes = [value for value in (left, right) if pa.types.is_integer(value.type)]
    if not floats or len(floats) + len(wholes) < 2:
        return False
    return any(has_nan(value) for value in floats) or any(largest_of(value) > EXACT for value in wholes)


def compare_exactly(function: str, left: Value, right: Value) -> Value:
    """Compare two operands, at least one of which is a float."""
    alone = isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar)
    size = max(1 if isinstance(value, pa.Scalar) else len(value) for value in (left, right))
    one, other = (pa.array([value.as_py()] * size, value.type) if isinstance(value, pa.Scalar) else value
                  for value in (left, right))  # fmt: skip
    if pa.types.is_integer(one.type):
        signs = _signs_of_mixed(one, other)
    elif pa.types.is_integer(other.type):
        signs = -_signs_of_mixed(other, one)
    else:
        signs = _signs(float_ranks(one), float_ranks(other))
    missing = np.asarray(pc.or_(pc.is_null(one), pc.is_null(other)))
    truths = pa.array(_HOLDS[function](signs), mask=missing)
    return truths[0] if alone else truths


def _signs(one: Any, other: Any) -> Any:
    return (one > other).astype(np.int8) - (one < other).astype(np.int8)


def _signs_of_mixed(wholes: pa.Array, floats: pa.Array) -> Any:
    """Compare integers with floats: -1, 0 or 1."""
    left = wholes.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    right = floats.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    above, below = ~(right < 2.0**63), right < -(2.0**63)  # NaN is above
    inside = np.where(above | below, 0.0, right)
    floor = np.floor(inside)
    signs = _signs(left, floor.astype(np.int64))
    signs = np.where((signs == 0) & (inside > floor), -1, signs)
    return np.where(above, -1, np.where(below, 1, signs))
