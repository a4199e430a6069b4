"""Compaction: remove rows, slots and events without references; the remaining ones get smaller ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel
from weft.kernels.joins.buckets import ENTRY, HEAD, ID, MARK, PLACE, SINCE, TAIL
from weft.kernels.joins.occurrences import KIND, LEFT, RIGHT, ROW, SLOTS, SOURCE

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@bare_kernel
def sift(entries: Int64s, table: Int64s, oldest: int, marks: bool, live: Mask) -> tuple[int, int]:
    """Remove old and marked entries from a store; return how many entries and keys remain.

    Old entries started before `oldest`; marked ones are removed if `marks`. The rows of remaining ones become live.
    """
    count = keys = 0
    for place in range(0, len(table), PLACE):
        head, tail = table[place + HEAD], table[place + TAIL]
        to = head
        for k in range(head, tail):
            at = k * ENTRY
            if entries[at + ID] < 0 or entries[at + SINCE] < oldest or (marks and entries[at + MARK] != 0):
                continue
            live[entries[at + ID]] = True
            if k > to:
                for field in range(ENTRY):
                    entries[to * ENTRY + field] = entries[at + field]
            to += 1
        table[place + TAIL] = to
        count += to - head
        keys += 1 if to > head else 0
    return count, keys


@bare_kernel
def renumber(entries: Int64s, table: Int64s, places: Int64s) -> None:
    """Replace the rows of entries by their new ids."""
    for place in range(0, len(table), PLACE):
        for k in range(table[place + HEAD], table[place + TAIL]):
            entries[k * ENTRY + ID] = places[entries[k * ENTRY + ID]]


@bare_kernel
def mark(rows: Int64s, live: Mask, live_events: Mask) -> None:
    """Mark everything that the marked rows consist of; parts have smaller ids, so one downward pass is enough."""
    for row in range(len(live) - 1, -1, -1):
        if not live[row]:
            continue
        left, right = rows[row * ROW + LEFT], rows[row * ROW + RIGHT]
        if rows[row * ROW + KIND] == SOURCE:
            live_events[right] = True
            continue
        if left >= 0:
            live[left] = True
        if right >= 0:
            live[right] = True


@bare_kernel
def slide(
    rows: Int64s, slots: Int64s, slot_count: int, live: Mask, places: Int64s, event_places: Int64s
) -> tuple[int, int]:
    """Move live rows and their slots to the front, and write their new ids into `places`; return how many remain."""
    kept, used = 0, 0
    for row in range(len(live)):
        if not live[row]:
            continue
        at, to = row * ROW, kept * ROW
        begin = rows[at + SLOTS]
        end = rows[at + ROW + SLOTS] if row + 1 < len(live) else slot_count
        for field in range(ROW):
            rows[to + field] = rows[at + field]
        rows[to + SLOTS] = used
        if rows[to + KIND] == SOURCE:
            rows[to + RIGHT] = event_places[rows[to + RIGHT]]
        else:
            if rows[to + LEFT] >= 0:
                rows[to + LEFT] = places[rows[to + LEFT]]
            if rows[to + RIGHT] >= 0:
                rows[to + RIGHT] = places[rows[to + RIGHT]]
        for k in range(begin, end):
            slots[used] = event_places[slots[k]] if slots[k] >= 0 else np.int64(-1)
            used += 1
        places[row] = kept
        kept += 1
    return kept, used
