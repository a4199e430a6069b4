"""Decimals: numbers that neither a 64-bit integer nor a float represents exactly, as texts that the machine reads.

Such a text has the bits of the nearest float as 16 hexadecimal digits; then `<` or `>`: whether the number is less or
greater than that float; then its digits, without leading and trailing zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device_no_refcount

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

SIDE = 16  # where it says whether the number is less or more than the float
DIGITS = 17
_MINUS, _POINT, _ZERO, _NINE, _A, _LESS = (ord(sign) for sign in "-.09a<")
_LONGEST = 19  # digits that a word without a sign holds


@device_no_refcount
def real_of(word: Any, pool: Bytes, offsets: Int64s) -> Any:
    """Return the float nearest to a decimal."""
    bits = np.uint64(0)
    at = offsets[word]
    for k in range(at, at + SIDE):
        sign = np.int64(pool[k])
        bits = (bits << np.uint64(4)) | np.uint64(sign - _ZERO if sign <= _NINE else sign - _A + 10)
    return np.int64(bits).view(np.float64)


@device_no_refcount
def side_of(word: Any, pool: Bytes, offsets: Int64s) -> int:
    """Return -1 or 1: whether a decimal is less or greater than its nearest float."""
    return -1 if pool[offsets[word] + SIDE] == _LESS else 1


@device_no_refcount
def _whole_digits(at: Any, end: Any, pool: Bytes) -> Any:
    """Count the digits before the point."""
    count = np.int64(0)
    while at + count < end and pool[at + count] != _POINT:
        count += 1
    return count


@device_no_refcount
def whole_part(word: Any, pool: Bytes, offsets: Int64s) -> Any:
    """Return the integer part of a decimal: whether it fits into an unsigned word, its size, whether it is negative."""
    at, end = offsets[word] + DIGITS, offsets[word + 1]
    negative = pool[at] == _MINUS
    at += np.int64(negative)
    count = _whole_digits(at, end, pool)
    size = np.uint64(0)
    if count <= _LONGEST:
        for k in range(at, at + count):
            size = size * np.uint64(10) + np.uint64(pool[k] - _ZERO)
    return count <= _LONGEST, size, negative


@device_no_refcount
def order_digits(word: Any, whole: Any, pool: Bytes, offsets: Int64s) -> int:
    """Compare a decimal with an integer, which it never equals: -1 or 1."""
    fits, size, negative = whole_part(word, pool, offsets)
    if negative != (whole < 0):
        return -1 if negative else 1
    other = np.uint64(0) - np.uint64(whole) if whole < 0 else np.uint64(whole)
    order = -1 if fits and size < other else 1  # of equal ones the decimal has something after the point
    return -order if negative else order


@device_no_refcount
def order_decimals(word: Any, other: Any, pool: Bytes, offsets: Int64s) -> int:
    """Compare two decimals, which are equal if they are the same text: -1, 0 or 1."""
    if word == other:
        return 0
    near, far = real_of(word, pool, offsets), real_of(other, pool, offsets)
    if near != far:
        return -1 if near < far else 1
    a, b = offsets[word] + DIGITS, offsets[other] + DIGITS
    a_end, b_end = offsets[word + 1], offsets[other + 1]
    negative = pool[a] == _MINUS  # and so is the other: none is zero
    if negative:
        a, b = a + 1, b + 1
    count, other_count = _whole_digits(a, a_end, pool), _whole_digits(b, b_end, pool)
    order = -1 if count < other_count else 1
    if count == other_count:
        while a < a_end and b < b_end and pool[a] == pool[b]:
            a, b = a + 1, b + 1
        order = -1 if a == a_end or (b < b_end and pool[a] < pool[b]) else 1
    return -order if negative else order
