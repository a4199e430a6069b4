"""Golden files: a program, a line of dashes, and what becomes of it.

With WEFT_UPDATE_GOLDEN set, the tests rewrite what follows the dashes; review the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
DASHES = "--------\n"


def golden_files(folder: str) -> list[Path]:
    """The golden files of a folder, by name."""
    return sorted((GOLDEN / folder).glob("*.txt"))


def check_golden(path: Path, render: Callable[[str], str]) -> None:
    """Render the program of a golden file and compare with what the file says."""
    program, _, expected = path.read_text(encoding="utf-8").partition(DASHES)
    actual = render(program).rstrip() + "\n"
    if os.environ.get("WEFT_UPDATE_GOLDEN"):
        path.write_text(program + DASHES + actual, encoding="utf-8")
        return
    assert actual == expected
