"""Copy rows of occurrences between the arrays of different lanes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START
from weft.kernels.jit import bare_kernel, kernel
from weft.kernels.joins.occurrences import GREATEST, KIND, LATER, LEAST, LEFT, RIGHT, ROW, SHIFT, SLOTS, SOURCE, Int64s
from weft.kernels.memory.growing import grown


@bare_kernel
def export_rows(rows: Int64s, live: npt.NDArray[np.bool_], places: Int64s, event_places: Int64s, out: Int64s) -> None:
    """Copy the marked rows without slots, numbered from 0; write their new numbers into `places`.

    Parts have smaller numbers than the rows that consist of them. `event_places` has the new numbers of events.
    """
    count = 0
    for row in range(len(live)):
        if not live[row]:
            continue
        at, to = row * ROW, count * ROW
        for field in range(ROW):
            out[to + field] = rows[at + field]
        out[to + SLOTS] = 0
        if rows[at + KIND] == SOURCE:
            out[to + RIGHT] = event_places[rows[at + RIGHT]]
        else:
            if rows[at + LEFT] >= 0:
                out[to + LEFT] = places[rows[at + LEFT]]
            if rows[at + RIGHT] >= 0:
                out[to + RIGHT] = places[rows[at + RIGHT]]
        places[row] = count
        count += 1


@bare_kernel
def import_rows(
    given: Int64s, numbers: Int64s, is_root: npt.NDArray[np.bool_], size: int, rows: Int64s, first: int, used: int
) -> int:
    """Append exported rows, given the numbers of their events, and return the new end of slots.

    Roots, which are occurrences, get `size` slots each.
    """
    for row in range(len(is_root)):
        at, to = row * ROW, (first + row) * ROW
        for field in range(ROW):
            rows[to + field] = given[at + field]
        rows[to + SLOTS] = used
        if is_root[row]:
            used += size
        if given[at + KIND] == SOURCE:
            rows[to + RIGHT] = numbers[given[at + RIGHT]]
        else:
            if given[at + LEFT] >= 0:
                rows[to + LEFT] = first + given[at + LEFT]
            if given[at + RIGHT] >= 0:
                rows[to + RIGHT] = first + given[at + RIGHT]
    return int(used)


@kernel
def fill_received(rows: Int64s, events: Int64s, roots: Int64s, wanted: Int64s, slots: Int64s) -> None:
    """Fill the empty slots of rows: (LATER, LEAST or GREATEST, number of a variable) for each slot."""
    stack = np.empty(64, np.int64)
    count = len(wanted) // 2
    for root in roots:
        begin = rows[root * ROW + SLOTS]
        stack[0], stack[1] = root, 0
        top = 2
        while top > 0:
            top -= 2
            row, shift = stack[top], stack[top + 1]
            at = row * ROW
            if rows[at + KIND] == SOURCE:
                event = rows[at + RIGHT]
                for k in range(count):
                    if wanted[2 * k + 1] != shift:
                        continue
                    which, best = wanted[2 * k], slots[begin + k]
                    if (
                        best < 0
                        or which == LATER
                        or (which == LEAST and events[event * EVENT + EVENT_START] < events[best * EVENT + EVENT_START])
                        or (which == GREATEST and events[event * EVENT + EVENT_END] > events[best * EVENT + EVENT_END])
                    ):
                        slots[begin + k] = event
                continue
            stack = grown(stack, top, 4)
            if rows[at + RIGHT] >= 0:
                stack[top], stack[top + 1] = rows[at + RIGHT], shift + rows[at + SHIFT]
                top += 2
            if rows[at + LEFT] >= 0:
                stack[top], stack[top + 1] = rows[at + LEFT], shift
                top += 2
