"""The one decorator of all kernels: compiled by Numba, without the GIL, cached on disk where that is possible.

Numba's cache notices changes of a kernel's own file only. So a kernel never calls a kernel of another
file and uses no constant of one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose_cache() -> bool:
    """Whether compiled kernels can be kept; points Numba to a writable folder when its own choice is not."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return _writable(Path(os.environ["NUMBA_CACHE_DIR"]))
    if _writable(Path(__file__).parent / "__pycache__"):
        return True
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft"
    for folder in (home, Path(tempfile.gettempdir()) / f"weft-{os.getuid()}"):
        if _writable(folder):
            os.environ["NUMBA_CACHE_DIR"] = str(folder)
            return True
    return False


_CACHE = _choose_cache()

import numba  # noqa: E402 - reads NUMBA_CACHE_DIR when it is imported


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of flat arrays and numbers on its first call."""
    compiled: Callable[P, R] = numba.njit(function, cache=_CACHE, nogil=True, boundscheck=False)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel in the same file, inlined by LLVM where it pays."""
    compiled: Callable[P, R] = numba.njit(function, cache=False, nogil=True, boundscheck=False)
    return compiled
