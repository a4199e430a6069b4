"""Where things that are dear to make are kept between processes: compiled kernels and parsers."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path


@cache
def cache_folder() -> Path | None:
    """A writable folder: beside the package, in the user's cache, or among temporary files; None if there is none."""
    chosen = os.environ.get("WEFT_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    temporary = Path(tempfile.gettempdir()) / f"weft-{os.getuid()}"
    folders = [Path(chosen)] if chosen else [Path(__file__).parent / "__pycache__", Path(home) / "weft", temporary]
    return next((folder for folder in folders if _is_writable(folder)), None)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
