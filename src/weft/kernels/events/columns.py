"""Encode columns of a batch as small codes, and codes as the letters that a query reads.

Arrow's buffers are read directly: values, offsets and bytes of texts, validity bitmaps with a bit offset.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.signatures import Read

Bytes = npt.NDArray[np.uint8]
Codes = Annotated[npt.NDArray[Any], np.uint16]  # uint32 for a column with very many codes
Numbers = Annotated[npt.NDArray[Any], np.int64, np.float64]
Indices = Annotated[npt.NDArray[Any], np.int32]  # of any integers
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Uint32s = npt.NDArray[np.uint32]
Uint64s = npt.NDArray[np.uint64]


@bare_kernel
def codes_of_ids(ids: Int32s, codes_by_id: Codes, codes: Codes) -> None:
    """Map the ids of texts to codes; entry 0 is for a missing text, entry 1 for an unknown one."""
    for i in range(np.uint64(len(ids))):
        codes[i] = codes_by_id[np.uint64(np.int64(ids[i]) + 2)]


@bare_kernel
def codes_of_indices(indices: Read[Indices], codes_by_index: Codes, codes: Codes) -> None:
    """Map dictionary-encoded texts to codes; the result is arbitrary for missing ones."""
    last = np.uint64(len(codes_by_index) - 1)
    for i in range(np.uint64(len(indices))):
        codes[i] = codes_by_index[min(np.uint64(indices[i]), last)]


@bare_kernel
def mark_nulls(bits: Read[Bytes], bit_offset: int, code: int, codes: Codes) -> None:
    """Assign a code to the rows without a value."""
    for i in range(np.uint64(len(codes))):
        bit = np.uint64(bit_offset) + i
        if not (bits[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & np.uint64(1):
            codes[i] = code


@bare_kernel
def codes_of_bits(bits: Read[Bytes], bit_offset: int, codes: Codes) -> None:
    """Convert a bitmap to codes 0 and 1."""
    for i in range(np.uint64(len(codes))):
        bit = np.uint64(bit_offset) + i
        codes[i] = (bits[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & np.uint64(1)


@bare_kernel
def count_cuts(values: Read[Numbers], cuts: Numbers, codes: Codes) -> None:
    """Count the ascending cuts that each value reaches, by comparing with every cut; many values at a time."""
    block = 2048
    for low in range(0, len(values), block):
        high = min(low + block, len(values))
        for i in range(np.uint64(low), np.uint64(high)):
            codes[i] = values[i] >= cuts[0]
        for k in range(np.uint64(1), np.uint64(len(cuts))):
            cut = cuts[k]
            for i in range(np.uint64(low), np.uint64(high)):
                codes[i] += np.uint16(values[i] >= cut)


@bare_kernel
def search_cuts(values: Read[Numbers], tree: Numbers, count: int, codes: Codes) -> None:
    """Count the ascending cuts that each value reaches, by a branch-free search.

    `tree` is a complete binary search tree, root at place 1, padded at its end with the largest possible value.
    """
    size = np.uint64(len(tree))
    most = np.uint64(count)
    for i in range(np.uint64(len(values))):
        value = values[i]
        node = np.uint64(1)
        while node < size:
            node = (node << np.uint64(1)) + np.uint64(tree[node] <= value)
        codes[i] = min(node - size, most)


@bare_kernel
def letters_of_one(codes: Codes, table: Int32s, letters: Int32s) -> None:
    """Compute the letters of a query over one column."""
    for i in range(np.uint64(len(codes))):
        letters[i] = table[codes[i]]


@bare_kernel
def letters_of_two(a: Codes, part_a: Uint32s, b: Codes, part_b: Uint32s, table: Int32s, letters: Int32s) -> int:
    """Compute the letters of a query over two columns; return the smallest, negative if one is unknown."""
    low = np.int32(0)
    for i in range(np.uint64(len(a))):
        letter = table[part_a[a[i]] + part_b[b[i]]]
        letters[i] = letter
        low = min(low, letter)
    return int(low)


@bare_kernel
def letters_of_three(
    a: Codes,
    part_a: Uint32s,
    b: Codes,
    part_b: Uint32s,
    c: Codes,
    part_c: Uint32s,
    table: Int32s,
    letters: Int32s,
) -> int:
    """Compute the letters of a query over three columns; return the smallest, negative if one is unknown."""
    low = np.int32(0)
    for i in range(np.uint64(len(a))):
        letter = table[part_a[a[i]] + part_b[b[i]] + part_c[c[i]]]
        letters[i] = letter
        low = min(low, letter)
    return int(low)


@bare_kernel
def letters_of_four(
    a: Codes,
    part_a: Uint32s,
    b: Codes,
    part_b: Uint32s,
    c: Codes,
    part_c: Uint32s,
    d: Codes,
    part_d: Uint32s,
    table: Int32s,
    letters: Int32s,
) -> int:
    """Compute the letters of a query over four columns; return the smallest, negative if one is unknown."""
    low = np.int32(0)
    for i in range(np.uint64(len(a))):
        letter = table[part_a[a[i]] + part_b[b[i]] + part_c[c[i]] + part_d[d[i]]]
        letters[i] = letter
        low = min(low, letter)
    return int(low)


@bare_kernel
def mark_new(indices: Uint64s, letters: Int32s, seen: Bytes) -> None:
    """Mark the indices of rows without a letter."""
    for i in range(np.uint64(len(indices))):
        if letters[i] < 0:
            seen[indices[i]] = 1


@bare_kernel
def add_part(codes: Codes, part: Uint64s, indices: Uint64s) -> None:
    """Add one column's share to the index of each row."""
    for i in range(np.uint64(len(codes))):
        indices[i] += part[codes[i]]


@bare_kernel
def letters_of_indices(indices: Uint64s, table: Int32s, letters: Int32s) -> int:
    """Look letters up in a table by index; return the smallest."""
    low = np.int32(0)
    for i in range(np.uint64(len(indices))):
        letter = table[indices[i]]
        letters[i] = letter
        low = min(low, letter)
    return int(low)


@device_no_refcount
def _spread(word: np.uint64) -> np.uint64:
    """A bijection of words that spreads every bit."""
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(32))


@bare_kernel
def letters_of_keys(indices: Uint64s, keys: Uint64s, values: Int32s, letters: Int32s) -> int:
    """Look letters up in a hash table (values below 0: empty slot); return the smallest."""
    mask = np.uint64(len(keys) - 1)
    low = np.int32(0)
    for i in range(np.uint64(len(indices))):
        index = indices[i]
        slot = _spread(index) & mask
        while values[slot] >= 0 and keys[slot] != index:
            slot = (slot + np.uint64(1)) & mask
        letter = values[slot]
        letters[i] = letter
        low = min(low, letter)
    return int(low)


@bare_kernel
def add_keys(indices: Uint64s, found: Int32s, keys: Uint64s, values: Int32s) -> None:
    """Add new indices and their letters to a hash table with enough space."""
    mask = np.uint64(len(keys) - 1)
    for i in range(np.uint64(len(indices))):
        slot = _spread(indices[i]) & mask
        while values[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        keys[slot] = indices[i]
        values[slot] = found[i]
