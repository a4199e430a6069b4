"""Array tables: the address and length of many arrays in one array, so that passing all of them is free.

A kernel of many parts receives its arrays as tuples, registers them in an array table ("room", `lend`), and passes this
to its parts, which access the arrays they need (`words`, `halves`, `floats`, `octets`). So each part is compiled
separately, which takes a fraction of the time. The caller of the kernel holds the arrays; a view must not leave the
kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite.ir import Constant
from numba import types
from numba.extending import intrinsic

from weft.kernels.jit import always_inline
from weft.kernels.lowering import DATA, ITEMS, SHAPE

Int64s = npt.NDArray[np.int64]
NOTE = 2  # words of an array in a room: its address, and its length; a number stands for itself


def _place(builder: Any, number: Any, word: int) -> Any:
    """Return where a word of an array is in the table; for a constant number this is a constant and needs no code."""
    if isinstance(number, Constant):
        return number.type(NOTE * number.constant + word)
    return builder.add(builder.mul(number, number.type(NOTE)), number.type(word))


def _view(dtype: Any) -> Callable[[Int64s, int], Any]:
    """Create the accessor of an array in the table, by its number."""

    @intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
    def view(typing_context: Any, room: Any, number: Any) -> Any:
        array = types.Array(dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            notes = builder.extract_value(arguments[0], DATA)
            address, length = (
                builder.load(builder.gep(notes, [_place(builder, arguments[1], k)])) for k in range(NOTE)
            )
            kind, number = context.get_value_type(array), length.type
            null, size = kind.elements[0](None), number(dtype.bitwidth // 8)
            made = kind([null, null, number(0), size, kind.elements[DATA](None), [number(0)], [size]])
            data = builder.inttoptr(address, kind.elements[DATA])
            for part, place in ((length, ITEMS), (data, DATA), (length, (SHAPE, 0))):
                made = builder.insert_value(made, part, place)
            return made

        return array(room, types.int64), generate

    found: Callable[[Int64s, int], Any] = view
    return found


words, halves, floats, octets = (_view(dtype) for dtype in (types.int64, types.int32, types.float64, types.uint8))


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def lend(typing_context: Any, room: Any, first: Any, parts: Any) -> Any:
    """Register the arrays and numbers of a tuple in a table, from a number on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        notes = builder.extract_value(arguments[0], DATA)
        for number, kind in enumerate(parts):
            part = builder.extract_value(arguments[2], number)
            noted = [part, part]
            if isinstance(kind, types.Array):
                address = builder.ptrtoint(builder.extract_value(part, DATA), arguments[1].type)
                noted = [address, builder.extract_value(part, ITEMS)]
            for word, value in enumerate(noted):
                builder.store(value, builder.gep(notes, [_place(builder, arguments[1], NOTE * number + word)]))
        return context.get_dummy_value()

    return types.void(room, types.int64, parts), generate


@always_inline
def noted(room: Int64s, place: int) -> Any:
    """Return a number that is registered in a table."""
    return room[NOTE * place]
