"""Hashes of values, and a hash table over flat arrays that gives texts their ids.

A hash is a function of the value alone: the same in every process, on every run.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.numba_internals import cgutils
from weft.kernels.signatures import READ, Read

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Uint64s = npt.NDArray[np.uint64]

LOW = np.uint64(0xFFFFFFFF)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Where the two hashes of each kind of value start; no two kinds differ by the same bits in both.
NUMBER, NUMBER_TOO = np.uint64(0x243F6A8885A308D3), np.uint64(0x452821E638D01377)
FRACTION, FRACTION_TOO = np.uint64(0x13198A2E03707344), np.uint64(0xBE5466CF34E90C6C)
BOOLEAN, BOOLEAN_TOO = np.uint64(0xA4093822299F31D0), np.uint64(0xC0AC29B7C97C50DD)
TEXT, TEXT_TOO = np.uint64(0x082EFA98EC4E6C89), np.uint64(0x3F84D5B5B5470917)
NULL, UNKNOWN = -2, -1  # what stands for the id of a missing text and of one that is not in the table


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def load_word(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes at any offset of a byte array as one little-endian word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        word_type = context.get_value_type(types.uint64)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), word_type.as_pointer())
        word = builder.load(address)
        word.align = 1
        return word

    return types.uint64(array, types.uint64), generate


@always_inline
def _word(data: Bytes, start: np.uint64, length: np.uint64, size: np.uint64) -> Any:
    """Return the first (at most eight) bytes of a text, padded with zeros."""
    if length >= np.uint64(8):
        return load_word(data, start)
    if start + np.uint64(8) <= size:
        return load_word(data, start) & ((np.uint64(1) << (length << np.uint64(3))) - np.uint64(1))
    word = np.uint64(0)
    for k in range(length):
        word |= np.uint64(data[start + np.uint64(k)]) << np.uint64(8 * k)
    return word


@device_no_refcount
def _mix(word: np.uint64) -> np.uint64:
    """A bijection of words that spreads every bit."""
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(32))


@device_no_refcount
def _remix(word: np.uint64) -> np.uint64:
    """Another bijection of words, for a second hash."""
    word ^= word >> np.uint64(31)
    word *= np.uint64(0xC2B2AE3D27D4EB4F)
    word ^= word >> np.uint64(30)
    word *= np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(33))


@device_no_refcount
def _long_key(data: Bytes, start: np.uint64, length: np.uint64, size: np.uint64) -> np.uint64:
    key: np.uint64 = _word(data, start, length, size)
    at = start + np.uint64(8)
    left = length - np.uint64(8)
    while left > np.uint64(0):
        key = _mix(key) + _word(data, at, left, size)
        step = min(left, np.uint64(8))
        at += step
        left -= step
    return key


@always_inline
def _text_key(data: Bytes, start: np.uint64, length: np.uint64, size: np.uint64) -> np.uint64:
    """Return the lookup key of a text: the bytes themselves up to eight, a hash of longer texts."""
    if length > np.uint64(8):
        return _long_key(data, start, length, size)
    found: np.uint64 = _word(data, start, length, size)
    return found


@device_no_refcount
def _bits(number: int) -> int:
    """Return the number of bits of a number."""
    bits = 0
    while number > 0:
        number >>= 1
        bits += 1
    return bits


@device_no_refcount
def _same_bytes(data: Bytes, start: np.uint64, pool: Bytes, place: np.uint64, length: np.uint64) -> bool:
    done = np.uint64(0)
    while done < length:
        left = length - done
        word = _word(data, start + done, left, np.uint64(len(data)))
        if word != _word(pool, place + done, left, np.uint64(len(pool))):
            return False
        done += np.uint64(8)
    return True


class TextPool(NamedTuple):
    """Texts by id, and a table to find them.

    `slot_entry` is id + 1 in the high half (0: empty slot) and the length in the low half. `state` is the number
    of texts, whether unknown ones are added, and the largest number of texts.
    """

    slot_key: Uint64s
    slot_entry: Uint64s
    pool: Bytes
    pool_offsets: Int64s
    state: Int64s


@bare_kernel
def find_texts(
    offsets: Read[Int32s],
    data: Read[Bytes],
    bits: Read[Bytes],
    bit_offset: int,
    first: int,
    texts: TextPool,
    ids: Int32s,
) -> np.int64:
    """Return the id of each text from a hash table; return the row where space ran out, or the number of rows.

    If `bits` is empty, there are no nulls.
    """
    slot_key, slot_entry, pool, pool_offsets, state = texts
    mask = np.uint64(len(slot_key) - 1)
    shift = np.uint64(65) - np.uint64(_bits(len(slot_key)))
    size = np.uint64(len(data))
    checked = len(bits) > 0
    adds = state[1] != 0
    for i in range(np.uint64(first), np.uint64(len(offsets) - 1)):
        if checked:
            bit = np.uint64(bit_offset) + i
            if not (bits[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & np.uint64(1):
                ids[i] = NULL
                continue
        start = np.uint64(offsets[i])
        length = np.uint64(offsets[i + np.uint64(1)]) - start
        key = _text_key(data, start, length, size)
        slot = (key * GOLDEN) >> shift
        entry = slot_entry[slot]
        # One branch for the common cases, a short text in its own slot and an empty slot (id UNKNOWN): it seldom
        # goes wrong, while a branch on whether the text is known would for every other text.
        found = np.int64(entry >> np.uint64(32)) - 1
        differs = (slot_key[slot] ^ key) | ((entry & LOW) ^ length) | ((length + np.uint64(7)) >> np.uint64(4))
        if min(differs, entry) != np.uint64(0):
            while entry != np.uint64(0):
                if slot_key[slot] == key and (entry & LOW) == length:
                    place = np.uint64(pool_offsets[(entry >> np.uint64(32)) - np.uint64(1)])
                    if length <= np.uint64(8) or _same_bytes(data, start, pool, place, length):
                        break
                slot = (slot + np.uint64(1)) & mask
                entry = slot_entry[slot]
            found = np.int64(entry >> np.uint64(32)) - 1
        if adds and found == UNKNOWN:
            found = state[0]
            place_end = pool_offsets[found]
            if found >= state[2] or place_end + np.int64(length) > len(pool):
                return np.int64(i)
            for k in range(length):
                pool[np.uint64(place_end) + np.uint64(k)] = data[start + np.uint64(k)]
            pool_offsets[found + 1] = place_end + np.int64(length)
            slot_key[slot] = key
            slot_entry[slot] = (np.uint64(found + 1) << np.uint64(32)) | length
            state[0] = found + 1
        ids[i] = found
    return np.int64(len(offsets) - 1)


@bare_kernel
def place_texts(offsets: Int64s, data: Bytes, count: int, slot_key: Uint64s, slot_entry: Uint64s) -> None:
    """Add the first `count` texts of a pool, all different, to an empty table."""
    mask = np.uint64(len(slot_key) - 1)
    shift = np.uint64(65) - np.uint64(_bits(len(slot_key)))
    size = np.uint64(len(data))
    for i in range(np.uint64(count)):
        start = np.uint64(offsets[i])
        length = np.uint64(offsets[i + np.uint64(1)]) - start
        key = _text_key(data, start, length, size)
        slot = (key * GOLDEN) >> shift
        while slot_entry[slot] != np.uint64(0):
            slot = (slot + np.uint64(1)) & mask
        slot_key[slot] = key
        slot_entry[slot] = ((i + np.uint64(1)) << np.uint64(32)) | length


@bare_kernel
def mark_wanted(bits: Read[Bytes], bit_offset: int, has: Bytes, wanted: Bytes) -> None:
    """Mark the rows that have a value here and had none before."""
    for i in range(np.uint64(len(has))):
        bit = np.uint64(bit_offset) + i
        valid = (bits[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & np.uint64(1)
        wanted[i] = valid & ~has[i]
        has[i] |= valid


@bare_kernel
def hash_wholes(values: Read[Int64s], wanted: Bytes, first: Uint64s, second: Uint64s) -> None:
    """Compute two hashes of integers, for the wanted rows."""
    for i in range(np.uint64(len(values))):
        if wanted[i]:
            word = np.uint64(values[i])
            first[i] = _mix(word ^ NUMBER)
            second[i] = _remix(word ^ NUMBER_TOO)


@bare_kernel
def hash_floats(
    values: Read[npt.NDArray[np.float64]], words: Read[Uint64s], wanted: Bytes, first: Uint64s, second: Uint64s
) -> None:
    """Compute two hashes of floats (`words`: their bits), for the wanted rows; integral ones as integers."""
    for i in range(np.uint64(len(values))):
        if wanted[i]:
            value = values[i]
            inside = -(2.0**63) <= value < 2.0**63
            whole = np.int64(value if inside else 0.0)
            if inside and np.float64(whole) == value:
                first[i] = _mix(np.uint64(whole) ^ NUMBER)
                second[i] = _remix(np.uint64(whole) ^ NUMBER_TOO)
            else:
                first[i] = _mix(words[i] ^ FRACTION)
                second[i] = _remix(words[i] ^ FRACTION_TOO)


@bare_kernel
def hash_booleans(values: Read[Bytes], bit_offset: int, wanted: Bytes, first: Uint64s, second: Uint64s) -> None:
    """Compute two hashes of Booleans in a bitmap, for the wanted rows."""
    for i in range(np.uint64(len(wanted))):
        if wanted[i]:
            bit = np.uint64(bit_offset) + i
            word = np.uint64((values[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & np.uint64(1))
            first[i] = _mix(word ^ BOOLEAN)
            second[i] = _remix(word ^ BOOLEAN_TOO)


@bare_kernel
def hash_texts(offsets: Read[Int32s], data: Read[Bytes], wanted: Bytes, first: Uint64s, second: Uint64s) -> None:
    """Compute two hashes of texts, for the wanted rows."""
    size = np.uint64(len(data))
    for i in range(np.uint64(len(wanted))):
        if wanted[i]:
            at = np.uint64(offsets[i])
            length = np.uint64(offsets[i + np.uint64(1)]) - at
            a = _word(data, at, length, size)
            b = a
            left = length
            while left > np.uint64(8):
                left -= np.uint64(8)
                at += np.uint64(8)
                word = _word(data, at, left, size)
                a = _mix(a) + word
                b = _remix(b) ^ word
            first[i] = _mix(a ^ (length << np.uint64(56)) ^ TEXT)
            second[i] = _remix(b ^ (length * np.uint64(0x9216D5D98979FB1B)) ^ TEXT_TOO)


@bare_kernel
def hash_indices(
    indices: Annotated[npt.NDArray[Any], np.int32, READ],
    first_of: Uint64s,
    second_of: Uint64s,
    wanted: Bytes,
    first: Uint64s,
    second: Uint64s,
) -> None:
    """Look up two hashes of dictionary-encoded texts, for the wanted rows."""
    for i in range(np.uint64(len(indices))):
        if wanted[i]:
            index = np.uint64(indices[i])
            first[i] = first_of[index]
            second[i] = second_of[index]


@bare_kernel
def join_hashes(
    all_have: Bytes, all_first: Uint64s, all_second: Uint64s, has: Bytes, first: Uint64s, second: Uint64s
) -> None:
    """Combine the hashes of the next part of a key with those of the parts before it."""
    for i in range(np.uint64(len(has))):
        all_have[i] &= has[i]
        all_first[i] = _mix(all_first[i]) + first[i]
        all_second[i] = _remix(all_second[i]) ^ second[i]


@bare_kernel
def lanes_of_hashes(has: Bytes, first: Uint64s, count: int, lanes: Int32s) -> None:
    """Assign each row to a lane by the high half of its hash; -1 without a key."""
    for i in range(np.uint64(len(has))):
        lane = ((first[i] >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
        lanes[i] = np.int32(lane) if has[i] else np.int32(-1)
