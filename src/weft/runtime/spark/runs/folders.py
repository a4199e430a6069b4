"""The sources of a run, as a user names them, as folders of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.algebra.query import Program
from weft.errors import UsageError
from weft.runtime.reading.sources import defaults_of
from weft.runtime.spark.files.log import Folder


def folders_of(sources: Sequence[tuple[str, str]], program: Program, type: str) -> tuple[Folder, ...]:
    """Sources as NAME and URI; the name is the events' stream when there are several, or when it is declared."""
    if not sources:
        raise UsageError("a run needs a source: --source NAME=FOLDER")
    names = [name for name, _ in sources]
    if len(set(names)) < len(names):
        raise UsageError("two sources have one name: give each its own")
    folders = []
    for name, uri in sources:
        path = uri.removeprefix("file://")
        if "://" in path:
            raise UsageError(f"source {name}: {uri} is not a folder of files, and nothing else can be read yet")
        if not Path(path).exists():
            raise UsageError(f"source {name}: no such folder: {path}")
        defaults = defaults_of(name, len(sources), program, type)
        folders.append(Folder(name, str(Path(path).absolute()), defaults))
    return tuple(folders)
