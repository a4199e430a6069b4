"""CPU time of a piece of work, and the rows that `weft bench` shows."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence

from weft.plan.operators import Plan
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.matcher import Matcher

Row = dict[str, object]
UNMEASURED = 2  # batches with which a run takes the memory that it needs to go on


def cpu_seconds(work: Callable[[], object], *, repeats: int = 3) -> float:
    """The least CPU time of several runs, after one that fills caches and compiles."""
    return cpu_seconds_in_turns(work, repeats=repeats)[0]


def cpu_seconds_in_turns(*works: Callable[[], object], repeats: int = 3) -> list[float]:
    """The same for works that are compared: they take turns, so that a slower moment of the machine slows down all."""
    for work in works:
        work()
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for number, work in enumerate(works):
            gc.collect()
            start = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - start)
    return best


class Steady:
    """What plans take for the same batches once they have the memory that they need: they take turns, each as often the
    first as the last, and of each batch the least CPU time counts. Of several batches the first are not measured."""

    def __init__(self, plans: Sequence[Plan], batches: Sequence[EventBatch]) -> None:
        self._plans, self._batches = plans, batches
        self._least = [[float("inf")] * len(batches) for _ in plans]
        self._first = min(UNMEASURED, len(batches) - 1)
        self._turns = 0

    def measure(self, times: int = 1) -> list[Counter[str]]:
        """Run all plans so many times more; what each found."""
        found = [Counter[str]() for _ in self._plans]
        for _ in range(times):
            self._turns += 1
            for number in range(len(self._plans))[:: -1 if self._turns % 2 else 1]:
                matcher, found[number] = Matcher(self._plans[number]), Counter()
                for place, batch in enumerate(self._batches):
                    start = time.process_time()
                    found[number].update(matcher.count(batch))
                    self._least[number][place] = min(self._least[number][place], time.process_time() - start)
        return found

    @property
    def seconds(self) -> list[float]:
        """What each plan took."""
        return [sum(least[self._first :]) for least in self._least]

    @property
    def events(self) -> int:
        """How many events that was for."""
        return sum(map(len, self._batches[self._first :]))


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
