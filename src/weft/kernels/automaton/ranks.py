"""A lane's share of the matches that end at an event (DCORE 5): all lanes have the match graph, and enumerate a part.

Without conditions a share is a range of ranks, which are the places of matches in the order of the walk: sets of paths
before it are skipped as a whole. Shares differ by one match at most. With conditions ranks say little about how many
matches remain, so the top of the graph is cut into many small parts that are assigned to lanes: all lanes walk the top
and compute the same assignment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton.counting import count_inside, fill_paths
from weft.kernels.automaton.tecs import (
    DONE,
    EMITTED,
    FINALS,
    TAIL,
    Int64s,
    State,
)
from weft.kernels.jit import device_no_refcount

Floats = npt.NDArray[np.float64]

# Marks, after those of counts: output events so far; whether the share of the current event is known, the ranks
# to be skipped, the remaining matches; the height of the stack below the current part, or -1.
OUTPUTS, BEGUN, SKIP, LEFT, BASE = range(2, 7)
MARKS = 7
PARTS = 32  # parts of an event's work for each lane, with conditions
EXACT = 2.0**53  # numbers of paths are floats, exact up to this, which exceeds any enumeration


class Ranks(NamedTuple):
    """Numbers of paths like `Counts`, each as one float; and the lane, where 0 `shares` means all matches."""

    paths: Floats
    eldest: Int64s
    inside: Floats
    known: Int64s
    marks: Int64s
    loads: Floats  # the load of each lane at the current event, and last the largest size of a part
    size: int  # 1
    share: int
    shares: int


@device_no_refcount
def weight(state: State, ranks: Ranks, horizon: int, node: int) -> Any:
    """Return the number of paths of a node inside the window."""
    slot = node & (state.starts.size - 1)
    if node < 0:  # the current event is the whole match
        return 1.0
    if state.nodes[(slot << 2) + 3] < horizon:
        return 0.0
    return ranks.paths[slot] if ranks.eldest[slot] >= horizon else ranks.inside[slot]


@device_no_refcount
def begin_share(state: State, control: Int64s, ranks: Ranks, horizon: int) -> int:
    """Compute the paths of the current event that the lane enumerates; return DONE or DEEPER."""
    marks = ranks.marks
    if ranks.shares == 0 or marks[BEGUN] == 1:
        return DONE
    fill_paths(state, control, ranks)
    marks[1] += 1
    total = 0.0
    for final in range(control[FINALS]):
        node = state.finals[2 * final + 1]
        if node >= 0:
            answer = count_inside(state, ranks, control[TAIL], horizon, node)
            if answer != DONE:
                return answer
        total += weight(state, ranks, horizon, node)
    marks[BEGUN], marks[BASE] = 1, -1
    index = lane_index(ranks)
    low = part_of(total, index, ranks.shares)
    marks[SKIP], marks[LEFT] = low, part_of(total, index + 1, ranks.shares) - low
    for lane in range(ranks.shares):
        ranks.loads[lane] = 0.0
    ranks.loads[ranks.shares] = total / (PARTS * ranks.shares)
    return DONE


@device_no_refcount
def lane_index(ranks: Ranks) -> Any:
    """Return the lane's number for the current event; it rotates, so that events with few matches are spread, too."""
    return (ranks.share + ranks.marks[OUTPUTS]) % ranks.shares


@device_no_refcount
def part_of(total: Any, index: Any, shares: Any) -> Any:
    """Return how many ranks precede a share."""
    if total >= EXACT:
        return np.int64(EXACT // shares) * index
    # Not index * total // shares, which may be too large.
    whole, rest = np.int64(total) // shares, np.int64(total) % shares
    return whole * index + rest * index // shares


@device_no_refcount
def end_share(control: Int64s, ranks: Ranks) -> None:
    """Finish an event: count it as output if its matches do not depend on conditions."""
    if ranks.shares > 0:
        control[EMITTED] = 1
        ranks.marks[BEGUN] = 0
        ranks.marks[OUTPUTS] += 1


@device_no_refcount
def deal(ranks: Ranks, size: Any) -> bool:
    """Assign a part to the lane with the least load, and return whether it is this one."""
    least = 0
    for lane in range(1, ranks.shares):
        if ranks.loads[lane] < ranks.loads[least]:
            least = lane
    ranks.loads[least] += size
    return bool(least == lane_index(ranks))
