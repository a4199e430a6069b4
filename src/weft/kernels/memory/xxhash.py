"""XXH64 over columns: each row's hash of one more value, seeded with the hash of the values before it.

Spark's `xxhash64` of the same values gives the same hashes, so that they can be computed before events leave the JVM.
Each value is preceded by its kind, so that equal bytes of different kinds differ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.memory.hashing import load_word
from weft.kernels.signatures import Read

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

SEED = 42  # Spark's
MISSING, WHOLE, FLOAT, DIGITS, TEXT, BOOLEAN = map(np.uint64, range(6))
_P1, _P2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_P3, _P4 = np.uint64(0x165667B19E3779F9), np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@always_inline
def _rotated(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word << by) | (word >> (np.uint64(64) - by))


@always_inline
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    rotated: np.uint64 = _rotated(lane + word * _P2, np.uint64(31)) * _P1
    return rotated


@always_inline
def _finished(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(33))) * _P2
    word = (word ^ (word >> np.uint64(29))) * _P3
    return word ^ (word >> np.uint64(32))


@device_no_refcount
def _long(value: np.uint64, seed: np.uint64) -> np.uint64:
    """Hash a word."""
    state = seed + _P5 + np.uint64(8)
    state ^= _round(np.uint64(0), value)
    return _finished(_rotated(state, np.uint64(27)) * _P1 + _P4)


@device_no_refcount
def _text(data: Bytes, at: np.uint64, length: np.uint64, seed: np.uint64) -> np.uint64:
    """Hash bytes."""
    end = at + length
    state = seed + _P5
    if length >= np.uint64(32):
        one, two, three, four = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + np.uint64(32) <= end:
            one = _round(one, load_word(data, at))
            two = _round(two, load_word(data, at + np.uint64(8)))
            three = _round(three, load_word(data, at + np.uint64(16)))
            four = _round(four, load_word(data, at + np.uint64(24)))
            at += np.uint64(32)
        state = _rotated(one, np.uint64(1)) + _rotated(two, np.uint64(7))
        state += _rotated(three, np.uint64(12)) + _rotated(four, np.uint64(18))
        state = (state ^ _round(np.uint64(0), one)) * _P1 + _P4
        state = (state ^ _round(np.uint64(0), two)) * _P1 + _P4
        state = (state ^ _round(np.uint64(0), three)) * _P1 + _P4
        state = (state ^ _round(np.uint64(0), four)) * _P1 + _P4
    state += length
    while at + np.uint64(8) <= end:
        state = _rotated(state ^ _round(np.uint64(0), load_word(data, at)), np.uint64(27)) * _P1 + _P4
        at += np.uint64(8)
    if at + np.uint64(4) <= end:
        word = np.uint64(0)
        for k in range(4):
            word |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
        state = _rotated(state ^ (word * _P1), np.uint64(23)) * _P2 + _P3
        at += np.uint64(4)
    while at < end:
        state = _rotated(state ^ (np.uint64(data[at]) * _P5), np.uint64(11)) * _P1
        at += np.uint64(1)
    return _finished(state)


@bare_kernel
def add_types(offsets: Read[Int32s], data: Read[Bytes], hashes: UInt64s) -> None:
    """Begin hashes with types of events, as texts without their kind."""
    for i in range(np.uint64(len(hashes))):
        at = np.uint64(offsets[i])
        hashes[i] = _text(data, at, np.uint64(offsets[i + np.uint64(1)]) - at, np.uint64(SEED))


@bare_kernel
def add_wholes(values: Read[Int64s], has: Read[Bytes], hashes: UInt64s) -> None:
    """Add integers, where present."""
    for i in range(np.uint64(len(hashes))):
        if has[i]:
            hashes[i] = _long(np.uint64(values[i]), _long(WHOLE, hashes[i]))


@bare_kernel
def add_floats(values: Read[npt.NDArray[np.float64]], words: Read[UInt64s], has: Read[Bytes], hashes: UInt64s) -> None:
    """Add floats (`words`: their bits), where present; integral ones as integers."""
    for i in range(np.uint64(len(hashes))):
        if has[i]:
            value = values[i]
            inside = -(2.0**63) <= value < 2.0**63
            whole = np.int64(value if inside else 0.0)
            if inside and np.float64(whole) == value:
                hashes[i] = _long(np.uint64(whole), _long(WHOLE, hashes[i]))
            else:
                hashes[i] = _long(words[i], _long(FLOAT, hashes[i]))


@bare_kernel
def add_texts(offsets: Read[Int32s], data: Read[Bytes], kind: int, has: Read[Bytes], hashes: UInt64s) -> None:
    """Add texts, or the digits of numbers, where present."""
    for i in range(np.uint64(len(hashes))):
        if has[i]:
            at = np.uint64(offsets[i])
            length = np.uint64(offsets[i + np.uint64(1)]) - at
            hashes[i] = _text(data, at, length, _long(np.uint64(kind), hashes[i]))


@bare_kernel
def add_booleans(values: Read[Bytes], has: Read[Bytes], hashes: UInt64s) -> None:
    """Add Booleans, where present."""
    for i in range(np.uint64(len(hashes))):
        if has[i]:
            hashes[i] = _long(np.uint64(values[i]), _long(BOOLEAN, hashes[i]))


@bare_kernel
def add_missing(has: Read[Bytes], hashes: UInt64s) -> None:
    """Add a marker where there is no value."""
    for i in range(np.uint64(len(hashes))):
        if not has[i]:
            hashes[i] = _long(MISSING, hashes[i])
