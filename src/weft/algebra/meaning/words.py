"""Hashes of values in plain arithmetic: XXH64, which Spark's `xxhash64` computes too, and the hash of keys.

Values are hashed by kind and value: 1, 1.0 and the decimal 1.00 are the same, and a missing value hashes differently
from all others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Context, Decimal

from weft.algebra.meaning.functions import Value, is_number
from weft.algebra.meaning.values import worth

WORD = 2**64
SEED = 42  # Spark's
MISSING, WHOLE, FLOAT, DIGITS, TEXT, BOOLEAN = range(6)
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_DIGITS = Context(prec=152)
_KEY_KINDS = {WHOLE: 0x243F6A8885A308D3, FLOAT: 0x13198A2E03707344, BOOLEAN: 0xA4093822299F31D0}
_KEY_TEXT = 0x082EFA98EC4E6C89


def hash_value(value: Value | None, seed: int) -> int:
    """A value as the next part of a hash: its kind, and the value."""
    kind, plain = canonical(value)
    state = hash_long(kind, seed)
    match plain:
        case int():
            return hash_long(plain, state)
        case str():
            return hash_bytes(plain.encode(), state)
    return state


def canonical(value: Value | None) -> tuple[int, int | str | None]:
    """The kind of a value, and a word or a text that is the same for equal values of the kind only."""
    if value is None:
        return MISSING, None
    if isinstance(value, bool):
        return BOOLEAN, int(value)
    if isinstance(value, str):
        return TEXT, value
    assert is_number(value)
    if value not in (float("inf"), float("-inf")) and value == int(value) and -(2**63) <= value < 2**63:
        return WHOLE, int(value)
    near = _nearest(value)
    if isinstance(value, float) or worth(near) == value:
        return FLOAT, int(struct.unpack("<q", struct.pack("<d", near))[0])
    return DIGITS, f"{Decimal(value).normalize(_DIGITS):f}"


def _nearest(number: int | float | Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


# ---------------------------------------------------------------- XXH64


def hash_long(value: int, seed: int) -> int:
    """The hash of a 64-bit integer."""
    state = (seed + P5 + 8) % WORD
    state ^= _round(0, value % WORD)
    return _finished((_rotated(state, 27) * P1 + P4) % WORD)


def hash_bytes(data: bytes, seed: int) -> int:
    """The hash of bytes."""
    at, state = 0, seed + P5
    if len(data) >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while at + 32 <= len(data):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        state = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * P1 + P4) % WORD
    state = (state + len(data)) % WORD
    while at + 8 <= len(data):
        state = _rotated(state ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4
        at += 8
    if at + 4 <= len(data):
        state = _rotated(state ^ struct.unpack_from("<I", data, at)[0] * P1, 23) * P2 + P3
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ byte * P5, 11) * P1
    return _finished(state % WORD)


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * P2, 31) * P1 % WORD


def _rotated(word: int, by: int) -> int:
    word %= WORD
    return (word << by | word >> 64 - by) % WORD


def _finished(word: int) -> int:
    word = (word ^ word >> 33) * P2 % WORD
    word = (word ^ word >> 29) * P3 % WORD
    return word ^ word >> 32


# ---------------------------------------------------------------- keys of partitions


def hash_key(values: Iterable[Value]) -> int:
    """The hash of the values that a partition is divided by; 0 for none."""
    parts = [_key_part(*canonical(value)) for value in values]
    state = parts[0] if parts else 0
    for part in parts[1:]:
        state = (_mixed(state) + part) % WORD
    return state


def _key_part(kind: int, plain: int | str | None) -> int:
    if isinstance(plain, int):
        return _mixed(plain % WORD ^ _KEY_KINDS[kind])
    data = (plain or "").encode()
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, max(len(data), 1), 8)]
    state = words[0]
    for word in words[1:]:
        state = (_mixed(state) + word) % WORD
    found = _mixed(state ^ (len(data) << 56) % WORD ^ _KEY_TEXT)
    return WORD - 1 - found if kind == DIGITS else found


def _mixed(word: int) -> int:
    word = (word ^ word >> 32) * 0x9E3779B97F4A7C15 % WORD
    word = (word ^ word >> 29) * 0xBF58476D1CE4E5B9 % WORD
    return word ^ word >> 32
