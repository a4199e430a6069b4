"""Where things that are dear to make are kept between processes: compiled kernels and parsers.

What is kept there is run when it is read, so only a folder counts that belongs to the user and that nobody else can
write to. There is no such folder among shared temporary files.
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
