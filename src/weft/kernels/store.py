"""Compiled kernels on disk: one file for each kernel and signature, named by a hash of its sources.

Numba's own cache notices changes of a kernel's own file only, and has one place for all packages of a process. Ours
looks into the cache folder and, for a common kind of processor, into what the package brings along. Of several
processes that need a kernel, one compiles it while the rest wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import re
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from platform import machine
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba

from weft.cache import cache_folder
from weft.kernels.numba_internals import CompileResult, FunctionCache, dumps, event, rtsys

SUPPLIED = Path(__file__).parents[1] / "compiled" / "kernels"
_AVX2 = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")
# The processor for which wheels supply kernels, and what it must have: AVX2 on x86 (all since about 2015), any ARM.
BASELINE, BASELINE_FEATURES = ("x86-64-v3", _AVX2) if machine() in ("x86_64", "AMD64") else ("generic", ())
WAITING = "weft:waiting"  # the event: another process compiles a kernel that this one wants
LOCK_TIMEOUT_S = 120.0  # seconds that a process waits for another one's kernel before it compiles the kernel itself
_IMPORTED = re.compile(r"^from (weft\.kernels[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_KERNELS = Path(__file__).parent
_MADE_BY = f"{sys.implementation.cache_tag} numba {numba.__version__} llvmlite {llvmlite.__version__}"


@cache
def texts_of(file: Path) -> dict[Path, bytes]:
    """The text of a kernel file and of those it is made of."""
    text = file.read_bytes()
    texts = {file: text}
    for package, names in _IMPORTED.findall(text.decode()):
        folder = _KERNELS.joinpath(*package.split(".")[2:])
        modules = [folder.with_suffix(".py"), *(folder / f"{name}.py" for name in re.findall(r"\w+", names))]
        for module in modules:
            if module.is_file():
                texts |= texts_of(module)
    return texts


@cache
def _digest_of(file: Path) -> str:
    return hashlib.sha256(b"".join(text for _, text in sorted(texts_of(file).items()))).hexdigest()


@cache
def _has_baseline() -> bool:
    host = llvm.get_host_cpu_features()
    return all(host.get(feature) for feature in BASELINE_FEATURES)


class KernelStore(FunctionCache):  # type: ignore[misc, unused-ignore]
    """The compiled forms of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._locks: dict[Path, int] = {}

    def file_of(self, folder: Path, signature: object, target: object) -> Path:
        """The file of a compiled form, whether it is there or not."""
        module = self._function.__module__.removeprefix("weft.kernels.")
        digest = _digest_of(Path(self._function.__code__.co_filename))
        made_of = hashlib.sha256(repr((digest, _MADE_BY, str(signature), target)).encode()).hexdigest()
        return folder / f"{module}.{self._function.__name__}-{made_of[:24]}"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """A compiled form, if there is one; else this process is the one that compiles it."""
        rtsys.initialize(target_context)  # what makes arrays; to compile, Numba loads far more
        triple, *processor = target_context.codegen().magic_tuple()
        data = None
        if SUPPLIED.is_dir() and _has_baseline():
            data = _read(self.file_of(SUPPLIED, signature, [triple, BASELINE, ""]))
        folder = cache_folder()
        if data is None and folder is not None:
            file = self.file_of(folder / "kernels", signature, [triple, *processor])
            data = _read(file) or _sent(file.name) or self._awaited(file)
        return None if data is None else CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form."""
        folder = cache_folder()
        if folder is None:
            return
        file = self.file_of(folder / "kernels", signature, [*result.codegen.magic_tuple()])
        if not result.library.has_dynamic_globals:
            _write(file, dumps(result._reduce()))
        self._release(file)

    def is_wanted(self, signature: Any, target_context: Any) -> bool:
        """Whether a compiled form is not there, and no other process is at it."""
        folder, (triple, *processor) = cache_folder(), target_context.codegen().magic_tuple()
        if folder is None or (_has_baseline() and self.file_of(SUPPLIED, signature, [triple, BASELINE, ""]).is_file()):
            return False
        file = self.file_of(folder / "kernels", signature, [triple, *processor])
        if file.is_file() or not self._lock(file):
            return False
        self._release(file)
        return True

    def _awaited(self, file: Path) -> bytes | None:
        """What another process that compiles the kernel makes; None when this one is to compile it."""
        until = time.monotonic() + LOCK_TIMEOUT_S
        if file not in self._locks and not self._lock(file):  # Ctrl-C may have ended this process's own attempt
            with event.trigger_event(WAITING):
                while not self._lock(file) and time.monotonic() < until:
                    time.sleep(0.02)
        data = _read(file)
        if data is None:
            _ask_for_help()
        else:
            self._release(file)
        return data

    def _lock(self, file: Path) -> bool:
        """Become the process that compiles a kernel; a process that ends stops being it."""
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        except OSError:  # a file system without locks: several may compile the same
            pass
        self._locks[file] = lock
        return True

    def _release(self, file: Path) -> None:
        lock = self._locks.pop(file, None)
        if lock is not None:
            file.with_name(f"{file.name}.lock").unlink(missing_ok=True)
            os.close(lock)

    @property
    def cache_path(self) -> str:
        """Where Numba is to say that compiled forms are."""
        return str(cache_folder())

    def enable(self) -> None:
        """It always is."""

    def disable(self) -> None:
        """It never is."""

    def flush(self) -> None:
        """Do nothing: stale files are ignored."""


_SENT: list[Path] = []  # folders with compiled forms that were sent here


def take_from(folder: Path) -> None:
    """Look for compiled forms in a folder, too: those for this processor and these versions are found there."""
    if folder not in _SENT:
        _SENT.append(folder)


def _sent(name: str) -> bytes | None:
    return next((data for folder in _SENT if (data := _read(folder / name)) is not None), None)


@cache
def _ask_for_help() -> None:
    """Have other kernels compiled elsewhere while this process compiles its first."""
    from weft.kernels.warming import help_out

    help_out()


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _write(file: Path, data: bytes) -> None:
    """Write a file so that it appears whole."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh.write_bytes(data)
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)
