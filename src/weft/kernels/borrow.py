"""Arrays without an owner, for kernels: to hand one around costs nothing, since no references to it are counted.

A borrowed array must not leave the kernel: `owned` gives the caller's own one back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from weft.kernels.jit import inlined

Int64s = npt.NDArray[np.int64]


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def borrowed(typing_context: Any, array: Any) -> Any:
    """The same array, not owned: valid as long as the caller of the kernel holds it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    if not isinstance(array, types.Array):
        raise TypeError("only arrays can be borrowed")
    return array(array), generate


@inlined
def owned(array: Int64s, lent: Int64s) -> Int64s:
    """What to give back for an array that was borrowed: the caller's own, unless a larger one took its place."""
    if len(array) == len(lent):
        return lent
    return array
