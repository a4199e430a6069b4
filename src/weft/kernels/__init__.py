"""Compiled by Numba: flat arrays in, flat arrays out; no objects, no input or output."""

from __future__ import annotations

import sys

if not {"numba", "colorama"} & sys.modules.keys():
    # With colorama installed, Numba writes escape codes to terminals at exit, and compiles more slowly.
    sys.modules["colorama"] = None  # type: ignore[assignment]
    import numba.core.errors  # noqa: F401

    del sys.modules["colorama"]
