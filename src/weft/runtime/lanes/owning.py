"""Which of the matches that a lane finds it tells: where events are copied, others may find them too."""

from __future__ import annotations

from collections.abc import Iterator

from weft.plan.partitioning.splits import Lane
from weft.runtime.matches import MatchBatch


def owned(found: Iterator[MatchBatch], lane: Lane | None) -> Iterator[MatchBatch]:
    """The matches that it falls to this lane to tell."""
    if lane is None or not tells_some(lane):
        yield from found
        return
    raise TypeError(f"no owner is known for {lane.split!r}")


def tells_some(lane: Lane) -> bool:
    """Whether a lane finds matches that another one tells."""
    return False
