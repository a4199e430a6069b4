"""Operators in stages: what the lanes of each node take, measured one lane at a time, against one lane for all.

A node's time is that of its lanes, with what they send and receive. Stages overlap, so the busiest node decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.measure import Row, row

from weft.algebra.query import Program
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.execution.staged_matcher import StagedMatcher, Work
from weft.statistics import Statistics

REPEATS = 3


@dataclass(frozen=True)
class StagedPass:
    """The CPU seconds of each node, and the number of matches."""

    nodes: tuple[float, ...]
    matches: int


class TimedStages(StagedMatcher):
    """Lanes that say how long each was at work."""

    def gather(self, batch: EventBatch) -> None:
        """See `ThreadedMatcher.gather`."""
        if not self.members:
            super().gather(batch)
            self.busy = [0.0] * len(self.members)

    def _done(self, work: dict[int, Work], bound: int | None = None) -> list[MatchBatch]:
        return super()._done({at: self._timed(at, own) for at, own in work.items()}, bound)

    def _timed(self, at: int, work: Work) -> Work:
        def timed() -> list[MatchBatch]:
            start = time.process_time()
            found = work()
            self.busy[at] += time.process_time() - start
            return found

        return timed


def by_node(chosen: Plan, batch: EventBatch) -> StagedPass:
    """One pass of a placed plan over events, lane after lane."""
    matcher = TimedStages(chosen, chosen.lanes_for(len(chosen.placed)))
    matches = sum(len(found) for some, _ in matcher.waves(batch) for found in some)
    matches += sum(map(len, matcher.finish()))
    nodes = [0.0] * len(chosen.placed)
    for seconds, node in zip(matcher.busy, (node for group in chosen.lanes for node in group.nodes), strict=True):
        nodes[node] += seconds
    return StagedPass(tuple(nodes), matches)


def alone(chosen: Plan, batch: EventBatch) -> StagedPass:
    """One pass of a plan over events, in one lane."""
    matcher, start = Matcher(chosen), time.process_time()
    matches = sum(len(found) for piece in blocks.pieces(batch) for found in matcher.push(piece))
    matches += sum(map(len, matcher.finish()))
    return StagedPass((time.process_time() - start,), matches)


def staged(
    case: str, program: Program, batch: EventBatch, nodes: Iterable[int], statistics: Statistics | None = None
) -> Iterator[Row]:
    """The busiest node and all nodes together, against one lane; both take turns."""
    whole = plan(program, statistics=statistics)
    for count in nodes:
        placed = plan(program, strategy="placed", lanes=count, statistics=statistics)
        passes = [(alone(whole, batch), by_node(placed, batch)) for _ in range(REPEATS + 1)][1:]
        if any(one.matches != shared.matches for one, shared in passes):
            raise RuntimeError(f"{case}: placed operators find something else")
        one = min(own.nodes[0] for own, _ in passes)
        busiest, total = (min(of(own.nodes) for _, own in passes) for of in (max, sum))
        name = f"{case}, placed on {count} nodes"
        yield row(f"{name}, the busiest", busiest, "s of CPU", "one lane", one / busiest)
        yield row(f"{name}, all of them", total, "s of CPU", "one lane", one / total)
