"""Adaptation in lanes: each lane changes the form of its queries independently, by the rates of its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.query import Program
from weft.plan.partitioning.splits import Lane
from weft.runtime.execution.adapting import Adapting, Replanner
from weft.runtime.execution.matcher import Matcher

ALLOWED = ("key", "slice", "query", "one")  # strategies whose lanes tell a match by its events, whatever its form


def watched(
    matcher: Matcher, lane: Lane, written: Program, replanner: Replanner, numbers: Sequence[int] | None = None
) -> Adapting:
    """Return the watcher of a lane's matcher; queries run under their numbers in the program, or under `numbers`."""
    found, strategy = Adapting(matcher, replanner), lane.split.strategy
    own = replace(written, queries=tuple(written.queries[number] for number in lane.queries))
    against = None if strategy in ALLOWED else f"lanes of the strategy `{strategy}` share out what one form works on"
    found.watch(own, lane.queries if numbers is None else numbers, against=against)
    return found
