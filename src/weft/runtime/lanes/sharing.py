"""User options for splitting work: a strategy, a number of lanes, a number of threads; or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from weft.errors import UsageError
from weft.plan.partitioning.splits import capacities_of

LaneCount = int | Literal["auto"] | None  # `auto`: as many as the program's rates ask for

THREADS = "WEFT_THREADS"  # how many threads are used where nothing else is said


@dataclass(frozen=True)
class Sharing:
    """`strategy`: one of STRATEGIES. `lanes`: their number, or `auto`. `threads`: how many run in parallel here."""

    strategy: str | None = None
    lanes: LaneCount = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.lanes, str) and self.lanes != "auto":
            raise UsageError(f"`lanes` is a number, or 'auto', not {self.lanes!r}")
        if isinstance(self.lanes, int) and self.lanes < 1:
            raise UsageError(f"there must be at least one lane, not {self.lanes}")
        capacities = capacities_of(self.strategy)
        if capacities and self.lanes not in (None, len(capacities)):
            raise UsageError(
                f"the strategy {self.strategy!r} has {len(capacities)} nodes, not {self.lanes}: leave out lanes"
            )
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"there must be at least one thread, not {self.threads}")

    @property
    def is_asked_for(self) -> bool:
        """Whether any option is set."""
        return self.strategy is not None or self.lanes is not None or self.threads is not None

    @property
    def is_shared_here(self) -> bool:
        """Whether several lanes, or a strategy, are requested in this process."""
        return self.strategy is not None or (self.is_asked_for and self.lanes_here > 1)

    def counted(self, automatic: Callable[[], int]) -> Sharing:
        """Return the same with a number of lanes instead of `auto`."""
        return replace(self, lanes=automatic()) if self.lanes == "auto" else self

    @property
    def number(self) -> int | None:
        """The number of lanes, if it is set; `counted` resolves `auto`."""
        assert not isinstance(self.lanes, str)
        return self.lanes or len(capacities_of(self.strategy)) or None

    @property
    def lanes_here(self) -> int:
        """The number of lanes in this process."""
        return self.number or self.threads_here

    @property
    def threads_here(self) -> int:
        """The number of lanes that run in parallel in this process, by default the number of cores."""
        return self.threads or _threads_by_default()


def _threads_by_default() -> int:
    said = os.environ.get(THREADS)
    if said is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not said.isdigit() or int(said) < 1:
        raise UsageError(f"{THREADS} is a number of threads, at least 1, not {said!r}")
    return int(said)
