"""The house rules that can be counted: short files, and folders that one can look over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import weft

PACKAGE = Path(weft.__file__).parent
MOST_LINES = 400
MOST_FILES = 20


def test_files_are_short_and_folders_have_few() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts]
    lengths = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in files}
    folders = Counter(str(file.parent.relative_to(PACKAGE)) for file in files)
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}
