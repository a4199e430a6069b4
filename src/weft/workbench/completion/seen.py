"""The types and attributes that files of events show at their beginning, for texts that declare none."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pyarrow as pa

from weft.workbench.event_files import file_rows

ROWS = 200  # of a file that are looked at
HIDDEN = frozenset({"type", "ts"})
Types = dict[str, tuple[str, ...]]  # with their attributes


def types_in(files: Iterable[Path]) -> Types:
    """What the first events of files are."""
    found: dict[str, dict[str, None]] = {}
    for path in files:
        try:
            state = path.stat()
        except OSError:
            continue
        for type_, names in _types_of(path, state.st_mtime_ns, state.st_size).items():
            found.setdefault(type_, {}).update(dict.fromkeys(names))
    return {type_: tuple(names) for type_, names in found.items()}


@lru_cache(maxsize=256)
def _types_of(path: Path, changed: int, size: int) -> Types:
    """Of one file, as long as it does not change; what cannot be read tells nothing."""
    found: dict[str, dict[str, None]] = {}
    try:
        for row in islice(file_rows(path), ROWS):
            if isinstance(row.get("type"), str):
                names = (name for name, value in row.items() if value is not None and name not in HIDDEN)
                found.setdefault(row["type"], {}).update(dict.fromkeys(names))
    except (OSError, ValueError, pa.ArrowException, csv.Error, RecursionError):
        return {}
    return {type_: tuple(names) for type_, names in found.items()}
