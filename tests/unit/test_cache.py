"""Compiled kernels are kept, and compiled anew when a file that they are made of has changed."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from weft.kernels import jit

FOLDER = Path(jit.__file__).parent


def imported(file: Path) -> set[Path]:
    """The kernel files that a kernel file imports, as Python finds them."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_text())):
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
        known = set(jit._texts(file))
        assert imported(file) <= known
        assert all(imported(other) <= known for other in known)
