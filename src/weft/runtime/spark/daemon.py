"""The parent of Spark's Python workers: loads what every worker needs once, before they are forked."""

from __future__ import annotations

import contextlib

from pyspark import daemon


def preload() -> None:
    """Import the heavy modules; a worker that cannot use them says so itself."""
    with contextlib.suppress(ImportError):
        import weft.runtime.matcher
        import weft.runtime.matches
        import weft.runtime.spark.lane_worker  # noqa: F401


if __name__ == "__main__":
    preload()
    daemon.manager()
