"""Copy short texts sixteen bytes at a time, which is several times faster than single bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.numba_internals import cgutils
from weft.kernels.signatures import Read

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def _copy_sixteen(typing_context: Any, out: Any, at: Any, data: Any, begin: Any) -> Any:
    """Copy sixteen bytes between any places of two arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def address(number: int) -> Any:
            array = cgutils.create_struct_proxy(signature.args[number])(context, builder, value=arguments[number])
            place = builder.gep(array.data, [arguments[number + 1]])
            return builder.bitcast(place, cgutils.ir.IntType(128).as_pointer())

        word = builder.load(address(2))
        word.align = 1
        builder.store(word, address(0)).align = 1
        return context.get_dummy_value()

    return types.void(out, types.int64, data, types.int64), generate


@device_no_refcount
def copy_bytes(out: Bytes, at: int, data: Bytes, begin: int, end: int) -> int:
    """Copy a part of `data` to `out`, from `at` on; return where it ends. Bytes after it may be overwritten."""
    place = begin
    while place < end:
        if place + 16 <= len(data) and at + 16 <= len(out):
            _copy_sixteen(out, at, data, place)
            place += 16
            at += 16
        else:
            out[at] = data[place]
            place += 1
            at += 1
    return at + end - place


@bare_kernel
def copy_texts(codes: Read[Int32s], offsets: Read[Int32s], data: Read[Bytes], out_offsets: Int32s, out: Bytes) -> int:
    """Copy the texts chosen by number contiguously, with their end offsets; return the number of bytes."""
    at = 0
    out_offsets[0] = 0
    for row in range(len(codes)):
        at = copy_bytes(out, at, data, offsets[codes[row]], offsets[codes[row] + 1])
        out_offsets[row + 1] = at
    return at
