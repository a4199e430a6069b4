"""Compiled kernels are kept where only the user can write, and compiled anew when their files have changed."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from weft import cache
from weft.kernels import jit, signatures, store, warming
from weft.kernels.memory import hashing

FOLDER = Path(jit.__file__).parent


def imported(file: Path) -> set[Path]:
    """The kernel files that a kernel file imports, as Python finds them."""
    found: set[Path] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft.kernels"):
            names = [str(node.module), *(f"{node.module}.{name.name}" for name in node.names)]
            found |= {place for name in names if (place := _place(name)) is not None}
    return {place for place in found if place.name != "__init__.py"}


def _place(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # a name in a module, not a module
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def test_a_kernel_is_made_of_all_the_kernel_files_it_imports() -> None:
    files = [file for file in FOLDER.rglob("*.py") if file.name != "__init__.py"]
    assert len(files) > 40
    for file in files:
        known = set(store.texts_of(file))
        assert imported(file) <= known
        assert all(imported(other) <= known for other in known)


# ---------------------------------------------------------------- the folder


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that WEFT_CACHE names, and that is there."""
    folder = tmp_path / "chosen"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("WEFT_CACHE", str(folder))
    return folder


def found() -> Path | None:
    return cache.cache_folder.__wrapped__()


def test_the_chosen_folder_is_used(chosen: Path) -> None:
    assert found() == chosen


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_folder_that_others_can_write_to_is_not_read(chosen: Path, mode: int) -> None:
    chosen.chmod(mode)
    own = found()
    assert own == chosen / f"weft-{os.getuid()}"
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_another_put_there_is_not_read(chosen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: chosen.stat().st_uid + 1)
    assert found() is None


def test_there_is_no_folder_among_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(cache, "__file__", "/dev/null/cache.py")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert found() is None


# ---------------------------------------------------------------- compiled kernels


def add(a: signatures.Read[np.ndarray[Any, np.dtype[np.int64]]], by: int) -> int:
    """What the kernel under test does."""
    return int(a[0] + by)


def kernel() -> Any:
    """A kernel as another process would make it: nothing of it is compiled yet."""
    made = jit.kernel(add)
    jit.KERNELS.remove(made)
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of compiled kernels, empty; no helpers are started."""
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(store, "_ask_for_help", lambda: None)
    return tmp_path / "kernels"


def test_a_compiled_kernel_is_taken_from_the_folder(folder: Path) -> None:
    numbers = np.arange(3)
    numbers.flags.writeable = False
    first, second = kernel(), kernel()
    assert first(numbers, 4) == 4
    (file,) = folder.iterdir()
    assert second(numbers, 5) == 5
    assert (first._cache_hits.total(), second._cache_hits.total()) == (0, 1)
    assert list(folder.iterdir()) == [file]


def test_a_kernel_is_compiled_ahead_by_its_annotations(folder: Path) -> None:
    (signature,) = signatures.signatures_of(add)
    ahead, later = kernel(), kernel()
    assert ahead._cache.is_wanted(signature, ahead.targetctx)
    ahead.compile(signature)
    assert not later._cache.is_wanted(signature, later.targetctx)
    numbers = np.arange(3)
    numbers.flags.writeable = False
    later(numbers, 1)
    assert later._cache_hits.total() == 1


def test_a_kernel_that_another_process_compiles_is_not_wanted(folder: Path) -> None:
    (signature,) = signatures.signatures_of(add)
    one, other = kernel(), kernel()
    assert one._cache.load_overload(signature, one.targetctx) is None  # so this one is at it
    assert not other._cache.is_wanted(signature, other.targetctx)


def test_a_kernel_does_not_wait_for_its_own_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C while it was compiled, it is compiled again at once."""
    made = kernel()
    compiled = made._compiler.compile

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def sleep(_: float) -> None:
        raise AssertionError("it waits for itself")

    monkeypatch.setattr(made._compiler, "compile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(np.arange(3), 4)
    monkeypatch.setattr(made._compiler, "compile", compiled)
    monkeypatch.setattr(store.time, "sleep", sleep)
    assert made(np.arange(3), 4) == 4
    assert not list(folder.glob("*.lock"))


def test_supplied_kernels_are_used_where_the_processor_has_what_they_need(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (signature,) = signatures.signatures_of(add)
    made = kernel()
    made.compile(signature)
    (file,) = folder.iterdir()
    supplied = tmp_path / "supplied"
    triple = made.targetctx.codegen().magic_tuple()[0]
    named = made._cache.file_of(supplied, signature, [triple, store.BASELINE, ""])
    supplied.mkdir()
    file.rename(named)
    monkeypatch.setattr(store, "SUPPLIED", supplied)
    for has, hits in ((True, 1), (False, 0)):
        monkeypatch.setattr(store, "_has_baseline", lambda has=has: has)
        later = kernel()
        later.compile(signature)
        assert later._cache_hits.total() == hits


def test_numba_s_settings_are_left_alone(folder: Path) -> None:
    before = {name: getattr(numba.config, name) for name in dir(numba.config) if name.isupper()}
    kernel()(np.arange(3), 4)
    assert {name: getattr(numba.config, name) for name in before} == before


def test_what_a_kernel_is_compiled_for_is_said_by_its_annotations() -> None:
    int64s = numba.types.Array(numba.types.int64, 1, "C", readonly=True)
    assert signatures.signatures_of(add) == [(int64s, numba.types.int64)]
    for made in jit.KERNELS:
        assert signatures.signatures_of(made.py_func), f"{made} takes arrays of any kind: say which"


def test_kernels_are_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_is_wanted", lambda made: True)
    assert "weft.kernels.memory.hashing:find_texts" in warming.names_of([hashing.find_texts])


FIRST_MATCHES = {
    "ceql": "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x > 1] WITHIN 1 HOUR",
    "eql": "SELECT a.x FROM A a ; B b WHERE FILTER(a.k = b.k), a.x < b.x AND (a, b) OCCURS WITHIN 1 hours",
    "step": 'topology "T"\nexternal A(x: int) < "Q" [1.0]\nexternal B(x: int) < "R" [1.0]\nN(*): A ; B > "Z"',
    "tesla": "define Z(x: int)\nfrom B(x > 3) and each A(x > 1) within 5 min from B\nwhere x=A.x",
    "epn": "pattern P sequence(A a, B b)\npolicies repeated last\ncontext fixed 100000",
}


# In a process of its own: what other tests call, with arrays of their own, does not count.
CALLED = """
import json, sys
import weft
from weft.kernels import jit, signatures

events = [{"type": "AB"[number % 2], "ts": 1000 * number, "k": number // 2, "x": number} for number in range(12)]
for language, text in json.loads(sys.argv[1]).items():
    assert list(weft.detect(events, weft.compile(text, language))), language
    called = [kernel for kernel in jit.KERNELS if kernel.signatures]
    assert called, language
    for kernel in called:
        assert set(kernel.signatures) <= set(signatures.signatures_of(kernel.py_func)), (language, kernel)
print("as compiled ahead")
"""


def test_what_is_compiled_ahead_is_what_a_first_match_calls() -> None:
    """Else the first match after `weft warm`, or with a wheel's kernels, would compile after all."""
    command = [sys.executable, "-W", "ignore", "-c", CALLED, json.dumps(FIRST_MATCHES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "as compiled ahead\n", done.stderr
