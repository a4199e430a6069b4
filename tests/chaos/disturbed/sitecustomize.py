"""Python processes of a tortured run: their clock is off, and their sink is slow, as files in WEFT_DISTURBED say.

It is found by PYTHONPATH, so that drivers, readers and workers load it before anything else. `clock` has the seconds by
which the clock is off at this moment, `slow` those that every file takes to get its name.
"""

import os
import time
from pathlib import Path

FOLDER = os.environ.get("WEFT_DISTURBED")


def _number(name: str) -> float:
    try:
        return float((Path(FOLDER or "") / name).read_text())
    except (OSError, ValueError):
        return 0.0


def _disturb() -> None:
    wall, wall_ns, replace = time.time, time.time_ns, os.replace

    def slow_replace(source, target, **more):  # type: ignore[no-untyped-def]
        if "matches-" in os.fspath(target):
            time.sleep(_number("slow"))
        return replace(source, target, **more)

    time.time = lambda: wall() + _number("clock")
    time.time_ns = lambda: wall_ns() + int(_number("clock") * 1e9)
    os.replace = slow_replace


if FOLDER:
    _disturb()
