"""The on-disk cache of compiled kernels and parsers, shared between processes.

Cached files are executed when they are read, so a folder is used only if it belongs to the user and only the user can
write to it. Shared temporary folders are never used.
"""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def cache_folder() -> Path | None:
    """The folder that WEFT_CACHE names, one beside the package, or one in the user's cache; None if there is none."""
    chosen = os.environ.get("WEFT_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    beside, own = Path(__file__).parent / "__pycache__", f"weft-{os.getuid()}"
    folders = [Path(chosen), Path(chosen) / own] if chosen else [beside, Path(home) / "weft"]
    return next((folder for folder in folders if is_private(folder)), None)


def is_private(folder: Path) -> bool:
    """Whether a folder is there, or can be made, that only this user can write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & OTHERS_WRITE:
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
