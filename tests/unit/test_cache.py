"""Compiled kernels are kept, and compiled anew when a file that they are made of has changed."""

from __future__ import annotations

import ast
from pathlib import Path

from weft.kernels import jit

FOLDER = Path(jit.__file__).parent


def imported(module: str) -> set[str]:
    """The kernel files that a kernel file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "weft.kernels":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft.kernels."):
            found.add((node.module or "").removeprefix("weft.kernels."))
    return found


def test_a_kernel_is_made_of_all_the_kernel_files_it_imports() -> None:
    modules = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    for module in modules:
        known = set(jit._texts(module))
        assert imported(module) <= known
        assert all(imported(other) <= known for other in known)
