"""The one decorator of all kernels: compiled by Numba, without the GIL, cached on disk where that is possible.

Numba's own cache notices changes of a kernel's own file only. Ours is a folder named after the texts of that file
and of the kernel files it imports, so a kernel may call kernels of other files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba

from weft.cache import cache_folder

P = ParamSpec("P")
R = TypeVar("R")
_OPTIONS: dict[str, bool] = {"nogil": True, "boundscheck": False, "no_cfunc_wrapper": True}
# A part has no wrapper for Python, which takes longer to compile than many parts do: only kernels can call it.
_PART: dict[str, bool] = {**_OPTIONS, "no_cpython_wrapper": True}
_IMPORTED = re.compile(r"^from (weft\.kernels[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_KERNELS = Path(__file__).parent


@cache
def _texts(file: Path) -> dict[Path, bytes]:
    """The text of a kernel file and of those it is made of."""
    text = file.read_bytes()
    texts = {file: text}
    for package, names in _IMPORTED.findall(text.decode()):
        folder = _KERNELS.joinpath(*package.split(".")[2:])
        modules = [folder.with_suffix(".py"), *(folder / f"{name}.py" for name in re.findall(r"\w+", names))]
        for module in modules:
            if module.is_file():
                texts |= _texts(module)
    return texts


def _cache_of(file: Path) -> Path | None:
    """The folder for the compiled kernels of a file."""
    folder = cache_folder()
    if folder is None:
        return None
    digest = hashlib.sha256(b"".join(text for _, text in sorted(_texts(file).items())))
    return folder / f"kernels-{digest.hexdigest()[:16]}"


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of flat arrays and numbers on its first call, or take it from the cache."""
    return _cached(function, _nrt=True)


def bare_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes no arrays: none are counted, so using many costs nothing."""
    return _cached(function, _nrt=False)


def _cached(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    before, folder = numba.config.CACHE_DIR, _cache_of(Path(function.__code__.co_filename))
    numba.config.CACHE_DIR = str(folder or before)
    try:
        compiled: Callable[P, R] = numba.njit(function, cache=folder is not None, **_OPTIONS, **options)
    finally:
        numba.config.CACHE_DIR = before
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel: compiled, and cached, with the kernels that call it."""
    compiled: Callable[P, R] = numba.njit(function, _nrt=True, **_PART)
    return compiled


def bare(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that makes no arrays: none are counted, so passing many costs nothing, nor does compiling."""
    compiled: Callable[P, R] = numba.njit(function, _nrt=False, **_PART)
    return compiled


def spliced(function: Callable[P, R]) -> Callable[P, R]:
    """A small part of a kernel, written into it: a call would count references to every array it passes."""
    compiled: Callable[P, R] = numba.njit(function, inline="always", **_OPTIONS)
    return compiled
