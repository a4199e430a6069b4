"""Arrow's buffers as NumPy arrays without a copy; they are read-only, so that a kernel is compiled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.memory.byte_copy import copy_texts

Scalar = TypeVar("Scalar", bound=np.generic)
NO_BYTES: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
NO_BYTES.setflags(write=False)


def lengthened(array: npt.NDArray[Scalar], length: int) -> npt.NDArray[Scalar]:
    """Return a longer copy padded with zeros, whose memory is only used when written to."""
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


def with_room(array: npt.NDArray[Scalar], used: int, needed: int) -> npt.NDArray[Scalar]:
    """Return the array, or a larger copy, with space for `needed` more items."""
    if used + needed <= len(array):
        return array
    larger = np.empty(2 * len(array) + needed, array.dtype)
    larger[:used] = array[:used]
    return larger


def values_of(array: pa.Array) -> npt.NDArray[Any]:
    """Return the values of an array of numbers, arbitrary where it is null."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return _read_only(np.empty(0, dtype))
    return _read_only(np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)])


def text_buffers(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return offsets (one more than there are texts) and bytes of an array of texts."""
    _, offsets, data = array.buffers()
    if not len(array):
        return _read_only(np.zeros(1, np.int32)), NO_BYTES
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return _read_only(places), NO_BYTES if data is None or not data.size else _read_only(np.frombuffer(data, np.uint8))


def strings(offsets: npt.NDArray[np.int32], data: npt.NDArray[Any], size: int) -> pa.Array:
    """Return the `size` bytes of texts in `data` as an array."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data).slice(0, size))


def names_by_number(codes: npt.NDArray[np.int32], names: pa.Array) -> pa.Array:
    """Look up short texts by number."""
    offsets, data = text_buffers(names)
    longest = int(np.diff(offsets).max(initial=0))
    out_offsets, out = room(len(codes) + 1, np.int32), room(longest * len(codes), np.uint8)
    return strings(out_offsets, out, copy_texts(fixed(codes), offsets, data, out_offsets, out))


def validity_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the validity bitmap, and the array's offset in bits; empty when nothing is null."""
    if array.null_count == 0:
        return NO_BYTES
    return _read_only(np.frombuffer(array.buffers()[0], np.uint8))


def bits_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bitmap of an array of Booleans, and the array's offset in bits."""
    return _read_only(np.frombuffer(array.buffers()[1], np.uint8)) if len(array) else NO_BYTES


def room(length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
    """Allocate memory from Arrow's pool, which reuses it: fresh pages cost more than writing to them."""
    return np.frombuffer(pa.allocate_buffer(length * np.dtype(dtype).itemsize), dtype)


def joined(parts: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """Concatenate arrays in memory of Arrow's pool."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, out=room(sum(map(len, parts)), parts[0].dtype.type))


def picked(array: npt.NDArray[Scalar], places: npt.NDArray[np.int64]) -> npt.NDArray[Scalar]:
    """Gather values in memory of Arrow's pool."""
    return np.take(array, places, out=room(len(places), array.dtype.type), mode="clip")


def writable(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return the array, or a copy if it is read-only, which would be another type for a kernel."""
    return array if array.flags.writeable else array.copy()


def fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the same array as read-only."""
    return _read_only(array.view())


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
