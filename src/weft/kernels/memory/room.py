"""Many arrays as one: a room has the address and the length of each, so that handing all of them on costs nothing.

A kernel of many parts takes its arrays as tuples, notes them in a room (`lend`) and gives the room to its parts, which
look at the arrays they need (`words`, `halves`, `floats`, `octets`). So each part is compiled for itself, which takes
a fraction of the time. The caller of the kernel holds the arrays; a view must not leave the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from weft.kernels.jit import spliced

Int64s = npt.NDArray[np.int64]
NOTE = 2  # words of an array in a room: its address, and its length; a number stands for itself


def _view(dtype: Any) -> Callable[[Int64s, int], Any]:
    """How a part of a kernel looks at an array of the room, by its number."""

    @intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
    def view(typing_context: Any, room: Any, number: Any) -> Any:
        array = types.Array(dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            notes = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
            at = builder.mul(arguments[1], arguments[1].type(NOTE))
            address = builder.load(builder.gep(notes, [at]))
            length = builder.load(builder.gep(notes, [builder.add(at, at.type(1))]))
            made = context.make_array(array)(context, builder)
            size = context.get_constant(types.intp, dtype.bitwidth // 8)
            data = builder.inttoptr(address, made.data.type)
            populate_array(made, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
            return made._getvalue()

        return array(room, types.int64), generate

    found: Callable[[Int64s, int], Any] = view
    return found


words, halves, floats, octets = (_view(dtype) for dtype in (types.int64, types.int32, types.float64, types.uint8))


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def lend(typing_context: Any, room: Any, first: Any, parts: Any) -> Any:
    """Note the arrays and numbers of a tuple in a room, from a number on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        notes = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        at = builder.mul(arguments[1], arguments[1].type(NOTE))
        for number, kind in enumerate(parts):
            part = builder.extract_value(arguments[2], number)
            noted = [part, part]
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value=part)
                noted = [builder.ptrtoint(array.data, at.type), array.nitems]
            for word, value in enumerate(noted):
                builder.store(value, builder.gep(notes, [builder.add(at, at.type(NOTE * number + word))]))
        return context.get_dummy_value()

    return types.void(room, types.int64, parts), generate


@spliced
def noted(room: Int64s, place: int) -> Any:
    """A number of a room."""
    return room[NOTE * place]
