"""The one decorator of all kernels: compiled by Numba, without the GIL, cached on disk where that is possible.

Numba's own cache notices changes of a kernel's own file only. Ours is a folder named after the text of all
kernel files, so a kernel may call kernels of other files.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose_cache() -> Path | None:
    """A writable folder for compiled kernels: beside them, in the user's cache, or among temporary files."""
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))).hexdigest()[:16]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    temporary = Path(tempfile.gettempdir()) / f"weft-{os.getuid()}"
    folders = [Path(chosen)] if chosen else [here / "__pycache__", Path(home) / "weft", temporary]
    return next((folder / digest for folder in folders if _writable(folder / digest)), None)


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
