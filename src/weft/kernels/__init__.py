"""Compiled by Numba: flat arrays in, flat arrays out; no objects, no input or output."""

from __future__ import annotations

import sys
from pathlib import Path

if "numba" not in sys.modules:
    # With colorama installed, Numba writes escape codes to terminals at exit, and compiles more slowly; PyYAML it loads
    # for a file of settings that few have.
    left_out = {"colorama"} if Path(".numba_config.yaml").exists() else {"colorama", "yaml"}
    left_out -= sys.modules.keys()
    sys.modules.update(dict.fromkeys(left_out))  # type: ignore[arg-type]
    import numba.core.errors  # noqa: F401

    for name in left_out:
        del sys.modules[name]
