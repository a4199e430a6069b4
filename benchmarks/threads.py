"""What threads gain: on the wall, which other programs disturb, and by the CPU time of lanes one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Row, row

from weft.plan.operators import Plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.lanes.routing import routes
from weft.runtime.threads import Threads

REPEATS = 2


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass over events: what is done for all lanes, and each lane's own; and the number of matches."""

    routing: float
    lanes: tuple[float, ...]
    matches: int

    @property
    def slowest(self) -> float:
        """As long as it takes when every lane has a core."""
        return self.routing + max(self.lanes)


def one_after_the_other(chosen: Plan, lanes: int, first: EventBatch, rest: EventBatch) -> Pass:
    """The CPU time of lanes for the rest of some events, each by itself."""
    crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
    list(crew.push(first))
    start = time.process_time()
    given = routes(rest, crew.lanes)
    routing, seconds, matches = time.process_time() - start, [], 0
    for member, route in zip(crew.members, given, strict=True):
        start = time.process_time()
        matches += sum(len(found) for piece in blocks.pieces(route()) for found in member.push(piece))
        seconds.append(time.process_time() - start)
    return Pass(routing, tuple(seconds), matches)


def on_the_wall(chosen: Plan, threads: int, first: EventBatch, rest: EventBatch) -> float:
    """Seconds that threads take for the rest of some events."""
    with Threads(threads) as pool:
        crew = ThreadedMatcher(chosen, chosen.lanes_for(threads), pool)
        list(crew.push(first))
        start = time.perf_counter()
        for _ in crew.push(rest):
            pass
        return time.perf_counter() - start


def gains(case: str, chosen: Plan, threads: int, events: Sequence[EventBatch], goal: str) -> list[Row]:
    """Both gains of so many threads, against one."""
    first, rest = events
    alone, shared = (
        min((one_after_the_other(chosen, n, first, rest) for _ in range(REPEATS)), key=lambda found: found.slowest)
        for n in (1, threads)
    )
    if alone.matches != shared.matches:
        raise RuntimeError(f"{case}: {alone.matches} matches in one lane, {shared.matches} in {threads}")
    one, several = (min(on_the_wall(chosen, n, first, rest) for _ in range(REPEATS)) for n in (1, threads))
    return [
        row(f"{case}, lanes apart", shared.slowest, "s of CPU", "one thread", alone.slowest / shared.slowest, goal),
        row(f"{case}, {threads} threads", several, "s on the wall", "one thread", one / several, goal),
    ]
