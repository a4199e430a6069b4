"""Chains by key: what waits for the next event of its key, as linked entries for each key and step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare, bare_kernel, spliced
from weft.kernels.memory.prefetch import prefetch
from weft.kernels.signatures import Read

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Fields of an entry: the next of its list (0: none; places count from 1), when it ended, since when its limits count,
# who decided it (0: nobody), when the first unwanted event after it ended, and its events.
NEXT, ENDED, SINCE, MARK, SPOILT, EVENTS = range(6)
# Fields of a step: for how long an event may come, and for how long it is worth waiting for (-1: any).
WITHIN, WORTH = range(2)
STEP = 2
# Control words: entries ever used, the first free one, how many are free; matches written; the times of the last event
# and the mark of those with these times.
USED, FREE, SPARE, OUT, LAST_START, LAST_END, STAMP = range(7)
CONTROL = 7
NEVER = np.int64(2**63 - 1)
AHEAD = 8  # events whose first entries are fetched before it is their turn; their lists are known by then


@spliced
def _entry(entries: Int64s, control: Int64s, width: Any) -> Any:
    """The place of an entry to be written; there must be one."""
    place = control[FREE]
    if place != 0:
        control[FREE] = entries[(place - 1) * width + NEXT]
        control[SPARE] -= 1
    else:
        control[USED] += 1
        place = control[USED]
    return place


@bare
def _length(entries: Int64s, width: int, place: int) -> int:
    """How many entries a list has."""
    count = 0
    while place != 0:
        count += 1
        place = entries[(place - 1) * width + NEXT]
    return count


@bare
def _has_room(alone: bool, slot: Any, heads: Int64s, last: int, entries: Int64s, control: Int64s, out: Int64s) -> bool:
    """Whether there is room for all that an event can make."""
    width = EVENTS + last
    found = _length(entries, width, heads[slot * last + last - 1])
    made = 1
    for step in range(last):
        made += 0 if alone else _length(entries, width, heads[slot * last + step])
    is_free = (control[USED] - control[SPARE] + made) * width <= len(entries)
    return bool(is_free and (control[OUT] + found) * (last + 1) <= len(out))


@bare_kernel
def follow_keys(
    steps: Int64s,
    bits_of: Int64s,
    letters: Int32s,
    slots: Int32s,
    starts: Read[Int64s],
    ends: Read[Int64s],
    begin: int,
    first: int,
    heads: Int64s,
    entries: Int64s,
    control: Int64s,
    kept: Mask,
    out: Int64s,
) -> int:
    """Take events from `begin` on; where room for entries or matches ran out, or how many events there are.

    Events have numbers from `first` on. `kept` marks those that an entry or a match has. The bits of an event: which
    steps take it, for which steps it has what is needed, and whether it is unwanted (in chains of two).
    """
    count, last = len(letters), len(steps) // STEP - 1
    width = EVENTS + last
    for i in range(begin, count):
        if i + 2 * AHEAD < count and slots[i + 2 * AHEAD] >= 0:
            prefetch(heads, slots[i + 2 * AHEAD] * last)
        if i + AHEAD < count and slots[i + AHEAD] >= 0:
            for step in range(last):
                if bits_of[letters[i + AHEAD]] >> (step + 1) & 1 != 0:
                    prefetch(entries, (heads[slots[i + AHEAD] * last + step] - 1) * width)
        bits, slot = bits_of[letters[i]], np.int64(slots[i])
        if bits == 0 or slot < 0:
            continue
        start, end = starts[i], ends[i]
        if start != control[LAST_START] or end != control[LAST_END]:
            control[LAST_START], control[LAST_END] = start, end
            control[STAMP] += 1
        stamp = control[STAMP]
        # Events with equal times decide together: the last of them is alone in taking what it decides.
        alone = i + 1 < count and (starts[i + 1] != start or ends[i + 1] != end)
        # No event ends more matches than there are entries: only where those would not fit, they are counted.
        most = control[USED] - control[SPARE] if bits >> last & 1 != 0 else np.int64(0)
        is_tight = (control[OUT] + most) * (last + 1) > len(out) or (control[USED] + 1) * width > len(entries)
        if (is_tight or not alone) and not _has_room(alone, slot, heads, last, entries, control, out):
            return i
        for back in range(last):
            step = last - back
            if bits >> step & 1 == 0:
                continue
            goes_on = bits >> (last + 1 + step) & 1 != 0
            head = slot * last + step - 1
            before, place = np.int64(0), heads[head]
            while place != 0:
                at = (place - 1) * width
                following, since = entries[at + NEXT], entries[at + SINCE]
                is_gone = (entries[at + MARK] != 0 and entries[at + MARK] != stamp) or (
                    steps[STEP * step + WORTH] >= 0 and end - since > steps[STEP * step + WORTH]
                )
                is_moved = False
                if not is_gone and entries[at + ENDED] < start:
                    is_gone = alone
                    entries[at + MARK] = stamp
                    in_time = steps[STEP * step + WITHIN] < 0 or end - since <= steps[STEP * step + WITHIN]
                    if goes_on and in_time and entries[at + SPOILT] >= start:
                        kept[i] = True
                        if step == last:
                            to = control[OUT] * (last + 1)
                            for k in range(last):
                                out[to + k] = entries[at + EVENTS + k]
                            out[to + last] = first + i
                            control[OUT] += 1
                        else:
                            is_moved = alone
                            target = place if alone else _entry(entries, control, width)
                            new = (target - 1) * width
                            for k in range(last):
                                entries[new + EVENTS + k] = entries[at + EVENTS + k]
                            entries[new + EVENTS + step] = first + i
                            entries[new + ENDED], entries[new + SINCE], entries[new + MARK] = end, since, 0
                            entries[new + SPOILT] = NEVER
                            entries[new + NEXT] = heads[head + 1]
                            heads[head + 1] = target
                if is_gone:
                    if before == 0:
                        heads[head] = following
                    else:
                        entries[(before - 1) * width + NEXT] = following
                    if not is_moved:
                        entries[at + NEXT] = control[FREE]
                        control[FREE] = place
                        control[SPARE] += 1
                else:
                    before = place
                place = following
        if bits >> (2 * last + 2) & 1 != 0:
            place = heads[slot * last]  # the latest first: those after one that is spoilt are spoilt too
            while place != 0 and entries[(place - 1) * width + SPOILT] == NEVER:
                if entries[(place - 1) * width + ENDED] < start:
                    entries[(place - 1) * width + SPOILT] = end
                place = entries[(place - 1) * width + NEXT]
        if bits & 1 != 0:
            place = _entry(entries, control, width)
            at = (place - 1) * width
            entries[at + ENDED], entries[at + SINCE], entries[at + MARK] = end, start, 0
            entries[at + SPOILT], entries[at + EVENTS] = NEVER, first + i
            for k in range(1, last):
                entries[at + EVENTS + k] = -1
            entries[at + NEXT] = heads[slot * last]
            heads[slot * last] = place
            kept[i] = True
    return count


@bare_kernel
def number(events: Int64s, width: int, skipped: int, first: int, numbers: Int64s) -> None:
    """Give events that were numbered from `first` on the numbers they have now, in rows that begin with other words."""
    for row in range(0, len(events), width):
        for k in range(row + skipped, row + width):
            if events[k] >= first:
                events[k] = numbers[events[k] - first]


@bare_kernel
def repack(
    steps: Int64s,
    clock: int,
    heads: Int64s,
    entries: Int64s,
    control: Int64s,
    fresh: Int64s,
    live: Mask,
) -> None:
    """Write the entries that can still matter one after the other, list by list, and mark their events."""
    last = len(steps) // STEP - 1
    width = EVENTS + last
    used = np.int64(0)
    for head in range(len(heads)):
        if head + AHEAD < len(heads):
            prefetch(entries, (heads[head + AHEAD] - 1) * width)
        worth = steps[STEP * (head % last + 1) + WORTH]
        place, heads[head] = heads[head], 0
        before = np.int64(0)
        while place != 0:
            at = (place - 1) * width
            place = entries[at + NEXT]
            mark = entries[at + MARK]
            if (mark != 0 and mark != control[STAMP]) or (worth >= 0 and clock - entries[at + SINCE] > worth):
                continue
            to = used * width
            used += 1
            for field in range(width):
                fresh[to + field] = entries[at + field]
            for k in range(head % last + 1):
                live[fresh[to + EVENTS + k]] = True
            fresh[to + NEXT] = 0
            if before == 0:
                heads[head] = used
            else:
                fresh[(before - 1) * width + NEXT] = used
            before = used
    control[USED], control[FREE], control[SPARE] = used, 0, 0
