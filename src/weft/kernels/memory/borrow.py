"""Borrowed arrays, which kernels pass around without reference counting.

A borrowed array must not leave the kernel, and its owner must stay. Kernels keep the owner of `x` as `lent_x` and
return that: a variable is released after its last use, and its array with it.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from weft.kernels.numba_internals import cgutils


@intrinsic  # type: ignore[misc, untyped-decorator, unused-ignore]
def borrowed(typing_context: Any, array: Any) -> Any:
    """Return the same array without ownership: valid while the caller of the kernel holds it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    if not isinstance(array, types.Array):
        raise TypeError("only arrays can be borrowed")
    return array(array), generate
