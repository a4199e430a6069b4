"""A lane's share of the matches that end at an event (DCORE 5): every lane has the whole match graph, and walks a part.

Without conditions a share is a range of ranks, which are the places of matches in the order of the walk: sets of paths
that lie before it are passed by as a whole. Shares differ by one match at most. Under conditions ranks say little about
how many matches are kept, so the top of the graph is cut into many small parts, which are dealt out: all lanes walk
the top, and agree about who has which part.
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

# Marks, after those of counts: output events so far; whether the share of the current event is known, how many ranks
# are to be passed by, how many matches are left; how high the stack is below the part that is walked, -1 for none.
OUTPUTS, BEGUN, SKIP, LEFT, BASE = range(2, 7)
MARKS = 7
PARTS = 32  # into which the work of an event is cut for each lane, under conditions
EXACT = 2.0**53  # numbers of paths are floats, and exact up to here: nobody can list more


class Ranks(NamedTuple):
    """Numbers of paths as `Counts` has them, each one float; and the lane, of none when all matches are listed."""

    paths: Floats
    eldest: Int64s
    inside: Floats
    known: Int64s
    marks: Int64s
    loads: Floats  # what each lane was dealt of the current event, and at the end how large a part may be
    size: int  # 1
    share: int
    shares: int


@device_no_refcount
def weight(state: State, ranks: Ranks, horizon: int, node: int) -> Any:
    """How many paths of a node are inside the window."""
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
    """How many ranks there are before a share."""
    if total >= EXACT:
        return np.int64(EXACT // shares) * index
    # Not index * total // shares, which may be too large.
    whole, rest = np.int64(total) // shares, np.int64(total) % shares
    return whole * index + rest * index // shares


@device_no_refcount
def end_share(control: Int64s, ranks: Ranks) -> None:
    """All is walked; some lane has found a match, as far as it does not depend on conditions."""
    if ranks.shares > 0:
        control[EMITTED] = 1
        ranks.marks[BEGUN] = 0
        ranks.marks[OUTPUTS] += 1


@device_no_refcount
def deal(ranks: Ranks, size: Any) -> bool:
    """Deal out a part to the lane that has least; whether it is this one."""
    least = 0
    for lane in range(1, ranks.shares):
        if ranks.loads[lane] < ranks.loads[least]:
            least = lane
    ranks.loads[least] += size
    return bool(least == lane_index(ranks))
