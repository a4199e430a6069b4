"""The parts of Numba that its documentation does not promise to keep: the installed release has them, in one file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numba

from weft.kernels import numba_internals

FOLDER = Path(numba_internals.__file__).parent
PUBLIC = {"numba", "numba.extending", "numba.core.errors"}
WITHOUT = """
import numba.core.ssa
del numba.core.ssa.reconstruct_ssa
import weft.kernels.jit
"""


def test_the_installed_numba_has_what_kernels_use() -> None:
    missing = numba_internals.missing_members()
    assert not missing, (
        f"Numba {numba.__version__} is not supported: it lacks {', '.join(missing)}. "
        "Adapt what uses it and MEMBERS in kernels/numba_internals.py, or exclude the release in pyproject.toml"
    )


def test_what_is_renamed_is_listed() -> None:
    class Codegen:
        def magic_tuple(self) -> tuple[str, ...]:
            return (self.triple,)

        triple = "x86_64"

    before = dict(numba_internals.MEMBERS)
    try:
        numba_internals.MEMBERS[Codegen] = ("magic_tuple", "triple", "_tm")
        assert [name.rpartition(".")[2] for name in numba_internals.missing_members()] == ["_tm"]
    finally:
        numba_internals.MEMBERS.clear()
        numba_internals.MEMBERS.update(before)


def test_a_numba_without_a_part_is_refused_in_words() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert f"ImportError: weft does not support Numba {numba.__version__}: " in done.stderr


def test_internals_are_imported_in_one_file() -> None:
    for file in FOLDER.rglob("*.py"):
        if file.name == "numba_internals.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            private = [name for name in names if name.startswith("numba") and name not in PUBLIC]
            assert not private, f"{file}: import {private} in kernels/numba_internals.py"
