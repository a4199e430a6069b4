"""CPU time of a piece of work, and the rows that `weft bench` shows."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

Row = dict[str, object]


def cpu_seconds(work: Callable[[], object], *, repeats: int = 3) -> float:
    """The least CPU time of several runs, after one that fills caches and compiles."""
    work()
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def row(case: str, value: float, unit: str, baseline: str = "", ratio: float | None = None, goal: str = "") -> Row:
    """A result: a value with its unit, and how it compares with a baseline of the same run."""
    return {
        "case": case,
        "value": round(value, 3),
        "unit": unit,
        "baseline": baseline,
        "ratio": None if ratio is None else round(ratio, 3),
        "goal": goal,
    }
