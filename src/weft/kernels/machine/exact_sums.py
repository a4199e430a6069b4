"""Exact sums, rounded once: in fixed point of three words, or with partial sums (Shewchuk 1997) for any floats.

The fixed point has 64 bits before and 128 bits after the point, in two's complement, modulo 2^64: the difference of
two running sums is exact as long as it fits itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device_no_refcount

Floats = npt.NDArray[np.float64]
Uint64s = npt.NDArray[np.uint64]

BITS = 40  # numbers below 2^40 have a place in fixed point, so that 2^22 of them can be added up
MOST = 1 << 22
_FRACTION = 128
_EXACT = 2.0**53
_SIGN = np.uint64(1 << 63)
_MANTISSA = np.uint64((1 << 52) - 1)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@device_no_refcount
def fixed(is_float: bool, word: int) -> Any:
    """Convert an integer, or a float by its bits, to fixed point: whether it fits, and its three words."""
    if not is_float:
        fits = -(1 << BITS) < word < (1 << BITS)
        return fits, np.uint64(word) if fits else _ZERO, _ZERO, _ZERO
    bits = np.uint64(word)
    exponent = np.int64((bits >> np.uint64(52)) & np.uint64(2047))
    mantissa = bits & _MANTISSA
    shift = exponent - 1075 + _FRACTION  # of the mantissa as an integer
    if shift < 0 or exponent - 1023 >= BITS:
        return exponent == 0 and mantissa == 0, _ZERO, _ZERO, _ZERO
    mantissa |= np.uint64(1 << 52)
    part = np.uint64(shift & 63)
    low, high = mantissa << part, (mantissa >> _ONE) >> (np.uint64(63) - part)
    a, b, c = (_ZERO, high, low) if shift < 64 else (high, low, _ZERO)
    if bits & _SIGN:
        a, b, c = negated(a, b, c)
    return True, a, b, c


@device_no_refcount
def added(a: Any, b: Any, c: Any, x: Any, y: Any, z: Any) -> Any:
    """Add two numbers of three words."""
    low = c + z
    carry = np.uint64(low < z)
    middle = b + y
    more = np.uint64(middle < y)
    middle += carry
    more |= np.uint64(middle < carry)
    return a + x + more, middle, low


@device_no_refcount
def negated(a: Any, b: Any, c: Any) -> Any:
    """Negate a number of three words."""
    low = ~c + _ONE
    carry = np.uint64(low == 0)
    middle = ~b + carry
    more = np.uint64(carry != 0 and middle == 0)
    return ~a + more, middle, low


@device_no_refcount
def rounded(a: Any, b: Any, c: Any, fraction: int, rest: bool) -> float:
    """Return the float nearest to a number of three words with `fraction` bits after the point.

    With `rest` the number is slightly greater.
    """
    if a == 0 and b == 0 and c == 0:
        return 0.0
    negative = (a & _SIGN) != 0
    if negative:
        a, b, c = negated(a, b, c)
    exponent = 128 - fraction
    while a == 0:
        a, b, c = b, c, _ZERO
        exponent -= 64
    step = 32
    while step:
        if not a >> np.uint64(64 - step):
            by, back = np.uint64(step), np.uint64(64 - step)
            a, b, c = (a << by) | (b >> back), (b << by) | (c >> back), c << by
            exponent -= step
        step >>= 1
    # The last of the 64 bits is far below the float's own: it stands for all that follow.
    a |= np.uint64(b != 0 or c != 0 or rest)
    value = math.ldexp(np.float64(a), exponent)
    return -value if negative else value


@device_no_refcount
def quotient(high: Any, low: Any, count: Any) -> float:
    """Divide an integer of two words by a count, rounded once."""
    negative = (high & _SIGN) != 0
    if negative:
        _, high, low = negated(_ZERO, high, low)
    a, b, c = _ZERO, _ZERO, _ZERO
    divisor, rest = np.uint64(count), _ZERO
    for _ in range(192):  # the bits of the integer, then 64 after the point
        bit = (high >> np.uint64(63)) & _ONE
        high, low = (high << _ONE) | (low >> np.uint64(63)), low << _ONE
        rest = (rest << _ONE) | bit
        a, b, c = (a << _ONE) | (b >> np.uint64(63)), (b << _ONE) | (c >> np.uint64(63)), c << _ONE
        if rest >= divisor:
            rest -= divisor
            c |= _ONE
    value = rounded(a, b, c, 64, rest != 0)
    return -value if negative else value


@device_no_refcount
def sign_word(word: Any) -> Any:
    """Return the higher word of a sign-extended word: all ones if it is negative."""
    return ~_ZERO if np.int64(word) < 0 else _ZERO


@device_no_refcount
def whole_result(high: Any, low: Any, count: Any, mean: bool) -> Any:
    """Return the sum or mean of integers from their sum in two words: whether it is the lower word, else the float."""
    if high == sign_word(low) and not mean:
        return True, 0.0
    total = rounded(sign_word(high), high, low, 0, False)
    if mean:
        total = total / count if abs(total) < _EXACT else quotient(high, low, count)
    return False, total


@device_no_refcount
def add_partial(partials: Floats, count: int, number: float) -> int:
    """Add a finite number to non-overlapping partial sums; return their number, or -1 on overflow."""
    kept = 0
    for k in range(count):
        other = partials[k]
        if abs(number) < abs(other):
            number, other = other, number
        total = number + other
        rest = other - (total - number)
        if rest != 0.0:
            partials[kept] = rest
            kept += 1
        number = total
    if not math.isfinite(number):
        return -1
    if number != 0.0:
        partials[kept] = number
        kept += 1
    return kept


@device_no_refcount
def partials_sum(partials: Floats, count: int) -> float:
    """Return the total of partial sums, rounded once, half to even."""
    if count == 0:
        return 0.0
    place = count - 1
    total, rest = partials[place], 0.0
    while place > 0 and rest == 0.0:
        place -= 1
        before = total
        total = before + partials[place]
        rest = partials[place] - (total - before)
    # Half way between two floats, what lies below decides.
    if place > 0 and (rest < 0.0) == (partials[place - 1] < 0.0):
        twice = 2.0 * rest
        beyond = total + twice
        if beyond - total == twice:
            total = beyond
    return float(total)
