"""Tagged values of two words: a kind, and an integer, the bits of a float, or the id of a text.

Numbers compare by exact value; values of different kinds are not comparable, nor is a missing one. A number that
neither a word nor a float represents is a decimal, stored as a text (`decimals`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.decimals import order_decimals, order_digits, real_of, side_of
from weft.kernels.machine.exact_sums import quotient, rounded

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]

MISSING, TEXT, INTEGER, FLOAT, BOOLEAN, DECIMAL = range(6)
VALUE = 2  # words of a value
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, UNEQUAL = range(6)
ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER = range(5)
BEYOND = 2.0**63  # the first float that no word holds
SHIFTED = 2.0**64  # what a word more is worth
EXACT = 1 << 53  # whole numbers up to here are floats, too
NOT_COMPARED = 2


@always_inline
def float_of(word: Any) -> Any:
    """Return the float with these bits."""
    return np.int64(word).view(np.float64)


@always_inline
def bits_of(number: Any) -> Any:
    """Return the bits of a float."""
    return np.float64(number).view(np.int64)


@device_no_refcount
def _order_texts(one: int, other: int, pool: Bytes, offsets: Int64s) -> int:
    """Compare texts by bytes, which is the order of characters: -1, 0 or 1."""
    if one == other:
        return 0
    a, b = offsets[one], offsets[other]
    size, other_size = offsets[one + 1] - a, offsets[other + 1] - b
    for k in range(min(size, other_size)):
        if pool[a + k] != pool[b + k]:
            return -1 if pool[a + k] < pool[b + k] else 1
    return -1 if size < other_size else 1


@device_no_refcount
def _order_mixed(whole: int, number: float) -> int:
    """Compare an integer with a float, without rounding: -1, 0 or 1."""
    if number >= BEYOND:
        return -1
    if number < -BEYOND:
        return 1
    near = np.int64(number)  # cut off towards zero
    if whole != near:
        return -1 if whole < near else 1
    rest = number - np.float64(near)
    return -1 if rest > 0.0 else 1 if rest < 0.0 else 0


@device_no_refcount
def _order_decimal(word: Any, kind: Any, other: Any, pool: Bytes, offsets: Int64s) -> int:
    """Compare a decimal with a number of another kind: -1 or 1."""
    if kind == INTEGER:
        return order_digits(word, other, pool, offsets)
    if kind != FLOAT:
        return NOT_COMPARED
    near, number = real_of(word, pool, offsets), float_of(other)
    return -1 if near < number else 1 if near > number else side_of(word, pool, offsets)


@device_no_refcount
def order_of(kind: Any, word: Any, other_kind: Any, other_word: Any, pool: Bytes, offsets: Int64s) -> int:
    """Compare two values: -1, 0 or 1, or NOT_COMPARED."""
    if kind == MISSING or other_kind == MISSING:
        return NOT_COMPARED
    if kind == other_kind:
        if kind == FLOAT:
            x, y = float_of(word), float_of(other_word)
            return -1 if x < y else 1 if x > y else 0
        if kind == TEXT:
            return _order_texts(word, other_word, pool, offsets)
        if kind == DECIMAL:
            return order_decimals(word, other_word, pool, offsets)
        return -1 if word < other_word else 1 if word > other_word else 0
    if kind == INTEGER and other_kind == FLOAT:
        return _order_mixed(word, float_of(other_word))
    if kind == FLOAT and other_kind == INTEGER:
        return -_order_mixed(other_word, float_of(word))
    if kind == DECIMAL:
        return _order_decimal(word, other_kind, other_word, pool, offsets)
    if other_kind == DECIMAL:
        order = _order_decimal(other_word, kind, word, pool, offsets)
        return NOT_COMPARED if order == NOT_COMPARED else -order
    return NOT_COMPARED


@always_inline
def satisfies(operator: Any, order: Any) -> Any:
    """Whether an order of two values satisfies a comparison."""
    # For each operator a bit for each order: less, equal, greater.
    masks = 0b101_010_110_100_011_001
    return order != NOT_COMPARED and ((masks >> (3 * operator + order + 1)) & 1) != 0


@device_no_refcount
def _product(x: Any, y: Any) -> Any:
    """Multiply two integers to two words, of which the higher has the sign."""
    low_half = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a, b = np.uint64(x) >> half, np.uint64(x) & low_half
    c, d = np.uint64(y) >> half, np.uint64(y) & low_half
    middle = a * d + ((b * d) >> half)
    other = (middle & low_half) + b * c
    high = a * c + (middle >> half) + (other >> half)
    if x < 0:
        high -= np.uint64(y)
    if y < 0:
        high -= np.uint64(x)
    return high, np.uint64(x) * np.uint64(y)


@device_no_refcount
def _whole(operation: int, x: Any, y: Any) -> Any:
    """Calculate with integers; a result that does not fit into a word becomes the nearest float."""
    if operation == REMAINDER:
        if y == 0:
            return MISSING, np.int64(0)
        rest = np.int64(0) if y == -1 else x % y
        if rest != 0 and (x < 0) != (y < 0):  # it has the sign of the left side
            rest -= y
        return INTEGER, rest
    if operation == DIVIDE:
        if y == 0:
            return MISSING, np.int64(0)
        if y == 1 or y == -1 or (-EXACT <= x <= EXACT and -EXACT <= y <= EXACT):
            return FLOAT, bits_of(np.float64(x) / np.float64(y))
        size = np.uint64(y) if y > 0 else np.uint64(0) - np.uint64(y)
        value = quotient(np.uint64(x), np.uint64(0), size) / SHIFTED
        return FLOAT, bits_of(value if y > 0 else -value)
    if operation == MULTIPLY:
        high, low = _product(x, y)
    else:
        other = y if operation == ADD else ~y  # x - y is x + ~y + 1
        low = np.uint64(x) + np.uint64(other)
        carry = np.uint64(low < np.uint64(x))
        if operation == SUBTRACT:
            low += np.uint64(1)
            carry += np.uint64(low == 0)
        high = np.uint64(x >> 63) + np.uint64(other >> 63) + carry
    if high == np.uint64(np.int64(low) >> 63):
        return INTEGER, np.int64(low)
    return FLOAT, bits_of(rounded(high, low, np.uint64(0), 64, False))


@always_inline
def rounded_off(kind: Any, word: Any, pool: Any, offsets: Any) -> Any:
    """Convert a decimal to the nearest float for arithmetic."""
    if kind == DECIMAL:
        kind, word = np.int64(FLOAT), bits_of(real_of(word, pool, offsets))
    return kind, word


@device_no_refcount
def calculated(operation: int, kind: Any, word: Any, other_kind: Any, other_word: Any) -> Any:
    """Calculate with two values; integers stay integers while they fit, except in divisions."""
    if kind == INTEGER and other_kind == INTEGER:
        return _whole(operation, word, other_word)
    if (kind != INTEGER and kind != FLOAT) or (other_kind != INTEGER and other_kind != FLOAT):
        return MISSING, np.int64(0)
    x = np.float64(word) if kind == INTEGER else float_of(word)
    y = np.float64(other_word) if other_kind == INTEGER else float_of(other_word)
    if operation == ADD:
        result = x + y
    elif operation == SUBTRACT:
        result = x - y
    elif operation == MULTIPLY:
        result = x * y
    elif y == 0.0:
        result = np.nan
    else:
        result = x / y if operation == DIVIDE else np.fmod(x, y)
    if np.isnan(result):
        return MISSING, np.int64(0)
    return FLOAT, bits_of(result)


@always_inline
def normal(kind: Any, word: Any) -> Any:
    """Normalise a value for lookups, so that equal numbers are the same."""
    if kind == FLOAT:
        value = float_of(word)
        if -BEYOND <= value < BEYOND and np.floor(value) == value:
            kind, word = np.int64(INTEGER), np.int64(value)
    return kind, word


@always_inline
def mixed_in(state: Any, kind: Any, word: Any) -> Any:
    """Add a value to a hash."""
    state = (state ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(kind)
    state ^= state >> np.uint64(29)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    return state ^ (state >> np.uint64(32))
