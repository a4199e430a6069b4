"""Write values as JSON texts like Python's `json`, and join texts to JSON objects, without Python objects.

An empty text means null, as no other JSON value is empty.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount, kernel
from weft.kernels.memory.byte_copy import copy_bytes
from weft.kernels.signatures import Read

Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

LONGEST_FLOAT = 24  # -1.2345678901234567e-308
_ZERO, _POINT, _MINUS, _PLUS, _QUOTE, _BACKSLASH = 48, 46, 45, 43, 34, 92
_ESCAPES = np.zeros(32, np.uint8)  # the letters of control characters that have one
_ESCAPES[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", np.uint8)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_NAN, _INFINITE, _NULL = (np.frombuffer(text, np.uint8) for text in (b"NaN", b"1e999", b"null"))


@bare_kernel
def quote(
    offsets: Read[Int32s], data: Read[Bytes], valid: Read[Bytes], first_bit: int, out_offsets: Int32s, out: Bytes
) -> int:
    """Write texts as JSON strings with their end offsets; return the number of bytes. Invalid ones become null."""
    at = 0
    out_offsets[0] = 0
    for text in range(len(offsets) - 1):
        bit = first_bit + text
        if len(valid) == 0 or (valid[bit >> 3] >> (bit & 7)) & 1:
            out[at] = _QUOTE
            at += 1
            for place in range(offsets[text], offsets[text + 1]):
                letter = data[place]
                if letter < 32 or letter in (_QUOTE, _BACKSLASH):
                    at = _escape(out, at, letter)
                else:
                    out[at] = letter
                    at += 1
            out[at] = _QUOTE
            at += 1
        out_offsets[text + 1] = at
    return at


@device_no_refcount
def _escape(out: Bytes, at: int, letter: np.uint8) -> int:
    out[at] = _BACKSLASH
    out[at + 1] = letter if letter >= 32 else _ESCAPES[letter]
    if out[at + 1] > 0:
        return at + 2
    out[at + 1] = 117  # u
    out[at + 2] = out[at + 3] = _ZERO
    out[at + 4], out[at + 5] = _DIGITS[letter >> 4], _DIGITS[letter & 15]
    return at + 6


@kernel
def spell_floats(offsets: Read[Int32s], data: Read[Bytes], out_offsets: Int32s, out: Bytes) -> int:
    """Write shortest decimal representations of floats in Python's notation; return the number of bytes."""
    at = 0
    out_offsets[0] = 0
    digits = np.empty(32, np.uint8)
    for text in range(len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        if begin < end:
            place, zeros, has_point = begin, 0, False
            while place < end and data[place] < 58:
                has_point |= data[place] == _POINT
                zeros += data[place] < 49 and zeros == place - begin  # with the sign and the point
                place += 1
            if place == end and zeros < 5:
                at = copy_bytes(out, at, data, begin, end)
                if not has_point:
                    out[at], out[at + 1] = _POINT, _ZERO
                    at += 2
            else:
                at = _rewrite(data, begin, end, digits, out, at)
        out_offsets[text + 1] = at
    return at


@device_no_refcount
def _rewrite(data: Bytes, begin: int, end: int, digits: Bytes, out: Bytes, at: int) -> int:
    """Write an unusual number: a very large or small one, infinity, or NaN."""
    if data[begin] == _MINUS:
        out[at] = _MINUS
        at += 1
        begin += 1
    if data[begin] > 57:  # inf or nan
        return copy_bytes(out, at, _INFINITE, 0, 5) if data[begin] == 105 else copy_bytes(out, at, _NAN, 0, 3)
    count, point = _parse(data, begin, end, digits)
    return _spell(digits, count, point, out, at)


@device_no_refcount
def _parse(data: Bytes, place: int, end: int, digits: Bytes) -> tuple[int, int]:
    """Parse the digits of a number, from the first non-zero one, and the place of the point relative to it."""
    count = 0
    point = 0
    fraction = 0
    while place < end and data[place] < 58:
        letter = data[place]
        place += 1
        if letter == _POINT:
            fraction = 1
        elif count > 0 or letter != _ZERO:
            digits[count] = letter
            count += 1
            point += 1 - fraction
        else:
            point -= fraction
    if place < end:  # e, a sign, digits
        is_negative = data[place + 1] == _MINUS
        exponent = 0
        for later in range(place + 1, end):
            if data[later] >= _ZERO:
                exponent = 10 * exponent + data[later] - _ZERO
        point += -exponent if is_negative else exponent
    return count, point


@device_no_refcount
def _spell(digits: Bytes, count: int, point: int, out: Bytes, at: int) -> int:
    exponent = point - 1
    is_positional = -4 <= exponent < 16
    before = point if is_positional else 1  # digits before the point
    for place in range(min(before - 1, 0), max(before + 1, count) if is_positional else count):
        if place == before:
            out[at] = _POINT
            at += 1
        out[at] = digits[place] if 0 <= place < count else _ZERO
        at += 1
    if is_positional:
        return at
    out[at] = 101  # e
    out[at + 1] = _MINUS if exponent < 0 else _PLUS
    at += 2
    exponent = abs(exponent)
    if exponent >= 100:
        out[at] = _ZERO + exponent // 100
        at += 1
    out[at], out[at + 1] = _ZERO + exponent // 10 % 10, _ZERO + exponent % 10
    return at + 2


@bare_kernel
def join(
    codes: Int32s,
    offsets: Read[Int32s],
    data: Read[Bytes],
    between: Read[Int32s],
    fixed: Read[Bytes],
    out_offsets: Int32s,
    out: Bytes,
) -> int:
    """Write one text per row from texts of its values, with constant texts around them; return the number of bytes.

    The value in row r of column c has the text number `codes[c * rows + r]`; column c comes after constant text c.
    """
    rows, columns = len(out_offsets) - 1, len(between) - 2
    at = 0
    out_offsets[0] = 0
    for row in range(rows):
        for column in range(columns):
            at = copy_bytes(out, at, fixed, between[column], between[column + 1])
            code = codes[column * rows + row]
            begin, end = offsets[code], offsets[code + 1]
            at = copy_bytes(out, at, data, begin, end) if begin < end else copy_bytes(out, at, _NULL, 0, 4)
        at = copy_bytes(out, at, fixed, between[columns], between[columns + 1])
        out_offsets[row + 1] = at
    return at
