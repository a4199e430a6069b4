"""The decorators of all kernels: compiled by Numba, without the GIL, kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

from weft.kernels.compiler import KernelCompiler, PartCompiler
from weft.kernels.store import KernelStore

P = ParamSpec("P")
R = TypeVar("R")
KERNELS: list[Any] = []  # Numba's dispatcher of each kernel of the modules that are imported
_OPTIONS: dict[str, bool] = {"nogil": True, "boundscheck": False, "no_cfunc_wrapper": True}
# A part has no wrapper for Python, which takes longer to compile than many parts do: only kernels can call it. Whether
# it is written into its caller is said of each, or Numba has it do as the caller does.
_PART: dict[str, bool] = {**_OPTIONS, "no_cpython_wrapper": True, "forceinline": False}
_ALWAYS_INLINE: dict[str, bool] = {**_PART, "forceinline": True}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of flat arrays and numbers on its first call, or take it from the cache."""
    return _cached(function, _nrt=True)


def bare_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes no arrays: none are counted, so using many costs nothing."""
    return _cached(function, _nrt=False)


def _cached(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    compiled: Any = numba.njit(function, pipeline_class=KernelCompiler, **_OPTIONS, **options)
    compiled._cache = KernelStore(function)
    KERNELS.append(compiled)
    found: Callable[P, R] = compiled
    return found


def device(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel: compiled, and cached, with the kernels that call it."""
    compiled: Callable[P, R] = numba.njit(function, pipeline_class=PartCompiler, _nrt=True, **_PART)
    return compiled


def device_no_refcount(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that makes no arrays: none are counted, so passing many costs nothing, nor does compiling."""
    compiled: Callable[P, R] = numba.njit(function, pipeline_class=PartCompiler, _nrt=False, **_PART)
    return compiled


def always_inline(function: Callable[P, R]) -> Callable[P, R]:
    """A small part of a kernel, written into it wherever it is called; it makes no arrays."""
    compiled: Callable[P, R] = numba.njit(function, pipeline_class=PartCompiler, _nrt=False, **_ALWAYS_INLINE)
    return compiled
