"""Stored events of operators: fixed fields in one flat array, and values that conditions read in another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Fields of an event. TRUTHS has a bit for each condition on one event that some operator tests later.
POSITION, EVENT_START, EVENT_END, TRUTHS = range(4)
EVENT = 4


@bare_kernel
def write_events(
    relevant: Int64s,
    positions: Read[Int64s],
    starts: Read[Int64s],
    ends: Read[Int64s],
    first: int,
    events: Int64s,
) -> None:
    """Write events by place, numbered from `first` on, without truths."""
    for k in range(len(relevant)):
        i, at = np.uint64(relevant[k]), (first + k) * EVENT
        events[at + POSITION], events[at + EVENT_START], events[at + EVENT_END] = positions[i], starts[i], ends[i]
        events[at + TRUTHS] = 0


@bare_kernel
def slide_events(events: Int64s, values: Int64s, width: int, live: Mask, places: Int64s) -> int:
    """Move live events and their values to the front, and write their new numbers; return how many remain."""
    kept = 0
    for event in range(len(live)):
        if not live[event]:
            continue
        for field in range(EVENT):
            events[kept * EVENT + field] = events[event * EVENT + field]
        for k in range(width):
            values[kept * width + k] = values[event * width + k]
        places[event] = kept
        kept += 1
    return kept
