"""Compiles kernels ahead, in processes of their own: Numba compiles one function at a time in a process.

`python -m weft.kernels.warming NAME...` compiles kernels by name, and says each that is done.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import weft.kernels
from weft.cache import cache_folder
from weft.kernels.jit import KERNELS
from weft.kernels.signatures import signatures_of
from weft.kernels.store import texts_of

HELPER = "WEFT_COMPILES_FOR"  # the process for which a helper compiles: when that one ends, so does its helper
MOST_HELPERS = 4
COMMON = ("matches", "memory", "events")  # folders of what programs of all languages use, what is used last first


def all_kernels() -> list[str]:
    """The names of all kernels that can be compiled ahead, those of the most text first."""
    for module in pkgutil.walk_packages(weft.kernels.__path__, f"{weft.kernels.__name__}."):
        importlib.import_module(module.name)
    return names_of(KERNELS)


def compiled_files() -> list[Path]:
    """The files of all kernels that are compiled for this processor."""
    all_kernels()
    folder = cache_folder()
    if folder is None:
        return []
    wanted = (
        kernel._cache.file_of(folder / "kernels", signature, [*kernel.targetctx.codegen().magic_tuple()])
        for kernel in KERNELS
        for signature in signatures_of(kernel.py_func)
    )
    return [file for file in wanted if file.is_file()]


def names_of(kernels: Iterable[Any]) -> list[str]:
    """The names of kernels that can be compiled ahead and are not there yet, those of the most text first."""
    missing = [kernel for kernel in kernels if _is_wanted(kernel)]
    return [f"{kernel.py_func.__module__}:{kernel.__name__}" for kernel in sorted(missing, key=_size, reverse=True)]


def _size(kernel: Any) -> int:
    return sum(map(len, texts_of(Path(kernel.py_func.__code__.co_filename)).values()))


def _is_wanted(kernel: Any) -> bool:
    return any(kernel._cache.is_wanted(signature, kernel.targetctx) for signature in signatures_of(kernel.py_func))


def start(names: Sequence[str], processes: int, says: int = subprocess.DEVNULL) -> list[subprocess.Popen[str]]:
    """Start processes that compile kernels, each beginning with another one; they say what is done."""
    command = [sys.executable, "-m", __name__]
    env = {**os.environ, HELPER: str(os.getpid()), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return [
        subprocess.Popen(
            [*command, *names[first:], *names[:first]],
            stdin=subprocess.DEVNULL,
            stdout=says,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        for first in range(min(processes, len(names)))
    ]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def help_out() -> None:
    """Compile missing kernels of the imported modules on free cores, while this process continues."""
    free = min(cores() - 1, round(cores() - os.getloadavg()[0]), MOST_HELPERS)
    if free > 0 and HELPER not in os.environ and cache_folder() is not None:
        _HELPERS.extend(start(sorted(names_of(KERNELS), key=_turn), free))


@cache
def compile_first(kernel: Any) -> None:
    """Compile a large kernel that will be needed, if it is not there: helpers are at the smaller ones meanwhile."""
    if _is_wanted(kernel):
        for signature in signatures_of(kernel.py_func):
            kernel.compile(signature)


def _turn(name: str) -> int:
    """When a helper compiles a kernel: first what any program needs, while the program's process is at its own."""
    folder = name.removeprefix(f"{weft.kernels.__name__}.").split(".")[0]
    return COMMON.index(folder) if folder in COMMON else len(COMMON)


_HELPERS: list[subprocess.Popen[str]] = []  # so that nobody warns of processes that are let go


def compile_kernels(names: Sequence[str], parent: int) -> None:
    """Compile kernels that are not there yet, and that no other process is at."""
    for name in names:
        if os.getppid() != parent:
            return
        module, kernel = name.split(":")
        found = getattr(importlib.import_module(module), kernel)
        if _is_wanted(found):
            for signature in signatures_of(found.py_func):
                found.compile(signature)
            print(name, flush=True)


if __name__ == "__main__":
    gc.disable()  # what compiling leaves behind ends with this process
    compile_kernels(sys.argv[1:], int(os.environ[HELPER]))
