"""The one decorator of all kernels: compiled by Numba, without the GIL, cached on disk where that is possible.

Numba's own cache notices changes of a kernel's own file only. Ours is a folder named after the text of all
kernel files, so a kernel may call kernels of other files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba

from weft.cache import cache_folder

P = ParamSpec("P")
R = TypeVar("R")


def _choose_cache() -> Path | None:
    """A folder for compiled kernels."""
    folder = cache_folder()
    texts = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return folder and folder / f"kernels-{hashlib.sha256(texts).hexdigest()[:16]}"


_CACHE = _choose_cache()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of flat arrays and numbers on its first call, or take it from the cache."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_CACHE or before)
    try:
        compiled: Callable[P, R] = numba.njit(function, cache=_CACHE is not None, nogil=True, boundscheck=False)
    finally:
        numba.config.CACHE_DIR = before
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel: compiled, and cached, with the kernels that call it."""
    compiled: Callable[P, R] = numba.njit(function, nogil=True, boundscheck=False)
    return compiled


def spliced(function: Callable[P, R]) -> Callable[P, R]:
    """A small part of a kernel, written into it: a call would count references to every array it passes."""
    compiled: Callable[P, R] = numba.njit(function, nogil=True, boundscheck=False, inline="always")
    return compiled
