"""Sequences of events with equal keys, one slot after the other, whose matching sets may consume their members.

Per key and slot there is a chain of rows, newest first. A row is kept only while some row of the slot before it ends
before it starts, so every walk from the last slot down to the first gives a matching set: enumeration takes time
linear in what it gives. The event that completes a sequence is always the newest, so the last slot keeps no rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import inlined, kernel

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

# Places of the control array.
EVENT, TOP, FREE, WINDOW, FOUND, DEPTH = range(6)
CONTROLS = 6
DONE, FULL, GROW = range(3)
NONE = -1
NEVER = np.iinfo(np.int64).max
# Which events of a slot are taken; all slots take each, or none does.
EACH, EARLIEST, LATEST = range(3)


@inlined
def _free_consumed(
    base: int,
    kept: int,
    free: int,
    heads: Int32s,
    least: Int64s,
    row_starts: Int64s,
    row_ends: Int64s,
    row_next: Int32s,
    row_used: Int8s,
) -> int:
    """Free the rows of a key that were consumed, and those that have nothing before them any more."""
    earliest = NEVER
    for place in range(kept):
        row = heads[base + place]
        last = NONE
        kept_least = NEVER
        while row >= 0:
            after = row_next[row]
            if row_used[row] != 0 or (place > 0 and row_starts[row] <= earliest):
                if last < 0:
                    heads[base + place] = after
                else:
                    row_next[last] = after
                row_next[row] = free
                free = row
            else:
                last = row
                if row_ends[row] < kept_least:
                    kept_least = row_ends[row]
            row = after
        least[base + place] = kept_least
        earliest = kept_least
    return free


@inlined
def _mark_members(
    start: int,
    base: int,
    kept: int,
    consumes: Int8s,
    heads: Int32s,
    row_starts: Int64s,
    row_ends: Int64s,
    row_next: Int32s,
    row_used: Int8s,
) -> None:
    """Mark as used what the sets that an event at `start` completes will consume."""
    before = start
    for place in range(kept - 1, -1, -1):
        latest = -NEVER
        row = heads[base + place]
        while row >= 0:
            if row_ends[row] < before:
                row_used[row] |= consumes[place]
                if row_starts[row] > latest:
                    latest = row_starts[row]
            row = row_next[row]
        before = latest


@inlined
def _choose(
    start: int,
    base: int,
    kept: int,
    consumes: Int8s,
    picks: Int8s,
    heads: Int32s,
    row_starts: Int64s,
    row_ends: Int64s,
    row_next: Int32s,
    row_used: Int8s,
    bounds: Int64s,
    current: Int32s,
) -> None:
    """The one set of an event at `start` when each slot takes its earliest or its latest: in `current`, marked."""
    before = start
    for place in range(kept - 1, -1, -1):
        bounds[place] = before
        latest = -NEVER
        row = heads[base + place]
        while row >= 0:
            if row_ends[row] < before and row_starts[row] > latest:
                latest = row_starts[row]
            row = row_next[row]
        before = latest
    after = -NEVER
    for place in range(kept):
        # Whatever ends before the bound of its slot leads to the last one.
        chosen = NONE
        row = heads[base + place]
        while row >= 0:
            if row_ends[row] < bounds[place] and row_starts[row] > after:
                chosen = row
                if picks[place] == LATEST:
                    break
            row = row_next[row]
        current[place] = chosen
        row_used[chosen] |= consumes[place]
        after = row_ends[chosen]


@inlined
def _count(
    start: int,
    base: int,
    kept: int,
    heads: Int32s,
    row_starts: Int64s,
    row_ends: Int64s,
    row_next: Int32s,
    row_ways: Int64s,
) -> int:
    """The number of sets that an event at `start` completes, without making them."""
    total = 0
    for place in range(kept):
        earlier_total, total = total, 0
        # Rows come by descending end: of the slot before, those too late for a row are at the front.
        other = NONE if place == 0 else heads[base + place - 1]
        rest, last_start = earlier_total, NEVER
        row = heads[base + place]
        while row >= 0:
            ways = 1
            if place > 0:
                if row_starts[row] > last_start:
                    other, rest = heads[base + place - 1], earlier_total
                last_start = row_starts[row]
                while other >= 0 and row_ends[other] >= last_start:
                    rest -= row_ways[other]
                    other = row_next[other]
                ways = rest
            row_ways[row] = ways
            if place < kept - 1 or row_ends[row] < start:
                total += ways
            row = row_next[row]
    return total


@kernel
def advance_sequences(
    slots: Int8s,
    keys: Int32s,
    starts: Int64s,
    ends: Int64s,
    positions: Int64s,
    consumes: Int8s,
    picks: Int8s,
    length: int,
    step: int,
    control: Int64s,
    heads: Int32s,
    least: Int64s,
    windows: Int64s,
    row_positions: Int64s,
    row_starts: Int64s,
    row_ends: Int64s,
    row_next: Int32s,
    row_used: Int8s,
    row_ways: Int64s,
    current: Int32s,
    bounds: Int64s,
    out_events: Int64s,
    out_starts: Int64s,
    out_positions: Int64s,
    counting: bool,
) -> int:
    """Take events until all are done, the output is full or rows run out; called again it goes on from there.

    `slots` are those of the events (-1: none), `step` 0 is one partition. With `counting` sets are only counted.
    """
    width = len(consumes)
    kept = width - 1
    room = len(out_events)
    event = control[EVENT]
    top, free, window = control[TOP], control[FREE], control[WINDOW]
    found, depth = control[FOUND], control[DEPTH]
    any_consumes = False
    for place in range(width):
        any_consumes = any_consumes or consumes[place] != 0
    status = DONE
    while event < len(slots):
        slot = slots[event]
        key = keys[event]
        if slot < 0 or key < 0:
            event += 1
            continue
        start = starts[event]
        base = key * kept
        if depth < 0:
            number = 0
            if step > 0:
                number = start // step
                if ends[event] >= number * step + length:
                    event += 1
                    continue
                if number != window:  # partitions do not overlap, so all rows belong to one that has closed
                    window, top, free = number, 0, NONE
            if windows[key] != number:
                windows[key] = number
                for place in range(kept):
                    heads[base + place] = NONE
                    least[base + place] = NEVER
            if slot < kept:
                if slot == 0 or least[base + slot - 1] < start:
                    row = free
                    if row >= 0:
                        free = row_next[row]
                    elif top < len(row_next):
                        row = top
                        top += 1
                    else:
                        status = GROW
                        break
                    row_positions[row] = positions[event]
                    row_starts[row] = start
                    row_ends[row] = ends[event]
                    row_used[row] = 0
                    row_next[row] = heads[base + slot]
                    heads[base + slot] = row
                    if ends[event] < least[base + slot]:
                        least[base + slot] = ends[event]
                event += 1
                continue
            if least[base + kept - 1] >= start:
                event += 1
                continue
            if picks[0] != EACH:
                if not counting and found == room:
                    status = FULL
                    break
                _choose(
                    start,
                    base,
                    kept,
                    consumes,
                    picks,
                    heads,
                    row_starts,
                    row_ends,
                    row_next,
                    row_used,
                    bounds,
                    current,
                )
                if not counting:
                    at = found * width
                    for place in range(kept):
                        out_positions[at + place] = row_positions[current[place]]
                    out_positions[at + kept] = positions[event]
                    out_events[found] = event
                    out_starts[found] = row_starts[current[0]]
                found += 1
                if any_consumes:
                    free = _free_consumed(base, kept, free, heads, least, row_starts, row_ends, row_next, row_used)
                event += 1
                continue
            if any_consumes:
                _mark_members(start, base, kept, consumes, heads, row_starts, row_ends, row_next, row_used)
            if counting:
                found += _count(start, base, kept, heads, row_starts, row_ends, row_next, row_ways)
                if any_consumes:
                    free = _free_consumed(base, kept, free, heads, least, row_starts, row_ends, row_next, row_used)
                event += 1
                continue
            depth = kept - 1
            row = heads[base + depth]
            while row_ends[row] >= start:
                row = row_next[row]
            current[depth] = row
        # Walk down from the last slot; every walk that reaches the first is a set.
        while True:
            row = current[depth]
            if row < 0:
                depth += 1
                if depth == kept:
                    break
                current[depth] = row_next[current[depth]]
            elif depth > 0:
                before = row_starts[row]
                depth -= 1
                row = heads[base + depth]
                while row_ends[row] >= before:
                    row = row_next[row]
                current[depth] = row
            else:
                if found == room:
                    status = FULL
                    break
                at = found * width
                for place in range(kept):
                    out_positions[at + place] = row_positions[current[place]]
                out_positions[at + kept] = positions[event]
                out_events[found] = event
                out_starts[found] = row_starts[row]
                found += 1
                current[0] = row_next[row]
        if status == FULL:
            break
        depth = NONE
        if any_consumes:
            free = _free_consumed(base, kept, free, heads, least, row_starts, row_ends, row_next, row_used)
        event += 1
    control[EVENT] = event
    control[TOP], control[FREE], control[WINDOW] = top, free, window
    control[FOUND], control[DEPTH] = found, depth
    return status
