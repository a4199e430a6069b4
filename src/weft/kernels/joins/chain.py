"""Keyed chains: partial matches as linked entries, in a list for each key and step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.joins.joining import ROWS, SLOTS_USED
from weft.kernels.joins.occurrences import (
    END,
    FIRST,
    FIRST_END,
    FROM_RIGHT,
    KIND,
    LEFT,
    PAIR,
    RIGHT,
    ROW,
    SHIFT,
    SLOTS,
    SOURCE,
    START,
)
from weft.kernels.joins.occurrences import LAST_START as ROW_LAST_START
from weft.kernels.memory.prefetch import prefetch
from weft.kernels.signatures import Read

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Fields of an entry: the next of its list (0: none; places count from 1), its end, the time from which its age counts,
# the stamp that decided it (0: undecided), the end of the first excluded event after it, and its events (a free
# entry has none).
NEXT, ENDED, SINCE, MARK, SPOILT, EVENTS = range(6)
# Fields of a step: ticks within which its event must end, and after which a partial match expires (-1: unlimited).
WITHIN, WORTH = range(2)
STEP = 2
# Control words: entries ever used, the first free one, how many are free; matches written; the times of the last event
# and the mark of those with these times.
USED, FREE, SPARE, OUT, LAST_START, LAST_END, STAMP = range(7)
CONTROL = 7
# Properties of the events with one letter: their bits, and the first and the last of the later steps that they fit.
BITS, LOW, HIGH = range(3)
LETTER = 3
NEVER = np.int64(2**63 - 1)
NO_EVENT = -1
AHEAD = 8  # events by which their first entries are prefetched
FAR = 1 << 16  # with more lists, neither they nor their entries fit into the cache


@always_inline
def _entry(entries: Int64s, width: Any, used: Any, free: Any, spare: Any) -> Any:
    """Allocate an entry; return its place, and the new values of used, free and spare."""
    if free == 0:
        return used + 1, used + 1, free, spare
    return free, used, entries[(free - 1) * width + NEXT], spare - 1


@device_no_refcount
def _length(entries: Int64s, width: int, place: int) -> int:
    """Return the number of entries in a list."""
    count = 0
    while place != 0:
        count += 1
        place = entries[(place - 1) * width + NEXT]
    return count


@always_inline
def _is_alone(
    of_letters: Int64s, letters: Int32s, slots: Int32s, starts: Int64s, ends: Int64s, i: Any, takers: Any
) -> bool:
    """Whether no later event has the same times and key and fits one of the same steps."""
    k = i + 1
    while k < len(letters) and starts[k] == starts[i] and ends[k] == ends[i]:
        if of_letters[letters[k] * LETTER + BITS] & takers != 0 and slots[k] == slots[i]:
            break
        k += 1
    return bool(k < len(letters) and (starts[k] != starts[i] or ends[k] != ends[i]))


@always_inline
def _last_waiting_step(bits: Any, heads: Int64s, lists: Any, step: Any, low: Any) -> Any:
    """Return the last step up to `step` that an event fits and that has partial matches, or one below `low`."""
    while step >= low and (bits >> step & 1 == 0 or heads[lists + step - 1] == 0):
        step -= 1
    return step


@device_no_refcount
def _has_room(
    alone: bool, bits: Any, lists: Any, heads: Int64s, last: int, entries: Int64s, room: Any, room_out: Any
) -> bool:
    """Whether there is space for all entries and matches that an event can add."""
    width = EVENTS + last
    found = _length(entries, width, heads[lists + last - 1]) if bits >> last & 1 != 0 else 0
    made = 1
    for step in range(last):
        made += 0 if alone else _length(entries, width, heads[lists + step])
    return bool(made <= room and found <= room_out)


class KeyedEvents(NamedTuple):
    """Events as arrays, each with its letter and the slot of its key."""

    letters: Int32s
    slots: Int32s
    starts: Read[Int64s]
    ends: Read[Int64s]


class PartialMatches(NamedTuple):
    """Partial matches: the first entry of each key and step, all entries, and control words."""

    heads: Int64s
    entries: Int64s
    control: Int64s


@bare_kernel
def follow_keys(
    steps: Int64s,
    of_letters: Int64s,
    given: KeyedEvents,
    begin: int,
    first: int,
    waiting: PartialMatches,
    kept: Mask,
    out: Int64s,
    most_visited: int,
) -> int:
    """Process events from `begin` on; return the number of events, or where space ran out.

    After visiting more than `most_visited` entries, return the complement of where to continue. `kept` marks the events
    that are in an entry or a match; these are numbered from `first` on. The bits of an event: which steps it fits, for
    which steps it satisfies the condition, and whether it is excluded (in chains of two).
    """
    letters, slots, starts, ends = given
    heads, entries, control = waiting
    count, last = len(letters), len(steps) // STEP - 1
    width = EVENTS + last
    far = len(heads) > FAR
    takers, others = (1 << (last + 1)) - 2, np.int64(1 << (2 * last + 2) | 1)
    used, free, spare, found = control[USED], control[FREE], control[SPARE], control[OUT]
    last_start, last_end, stamp = control[LAST_START], control[LAST_END], control[STAMP]
    most_used, most_found = len(entries) // width, len(out) // (last + 1)
    answer = np.int64(count)
    this, looked = first, 0
    for i in range(begin):
        this += kept[i]
    for i in range(begin, count):
        if far and i + 2 * AHEAD < count and slots[i + 2 * AHEAD] >= 0:
            prefetch(heads, slots[i + 2 * AHEAD] * last)
        if far and i + AHEAD < count and slots[i + AHEAD] >= 0:
            for step in range(last):
                if of_letters[letters[i + AHEAD] * LETTER + BITS] >> (step + 1) & 1 != 0:
                    prefetch(entries, (heads[slots[i + AHEAD] * last + step] - 1) * width)
                    prefetch(entries, heads[slots[i + AHEAD] * last + step] * width - 1)  # it may be in two lines
        of_letter = letters[i] * LETTER
        bits, lists = of_letters[of_letter + BITS], np.int64(slots[i]) * last
        if lists < 0:
            continue
        low = of_letters[of_letter + LOW]
        step = _last_waiting_step(bits, heads, lists, of_letters[of_letter + HIGH], low)
        if step < low and bits & others == 0:
            continue  # no partial match continues or begins with it, or is excluded by it
        if looked > most_visited:
            answer = np.int64(~i)
            break
        start, end = starts[i], ends[i]
        if start != last_start or end != last_end:
            last_start, last_end = start, end
            stamp += 1
        # Events with equal times decide together: only the last of them removes the entries that they decide.
        alone = _is_alone(of_letters, letters, slots, starts, ends, i, bits & takers)
        # An event cannot complete more matches, or add more entries, than there are entries: only if those would not
        # fit, they are
        # counted.
        live = used - spare
        is_tight = found + live > most_found or used + (1 if alone else live + 1) > most_used
        if is_tight and not _has_room(alone, bits, lists, heads, last, entries, most_used - live, most_found - found):
            answer = np.int64(i)
            break
        while step >= low:
            if bits >> step & 1 == 0:
                step -= 1
                continue
            goes_on = bits >> (last + 1 + step) & 1 != 0
            head = lists + step - 1
            before, place = np.int64(0), heads[head]
            while place != 0:
                looked += 1
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
                            to = found * (last + 1)
                            for k in range(last):
                                out[to + k] = entries[at + EVENTS + k]
                            out[to + last] = this
                            found += 1
                        else:
                            is_moved = alone
                            target = place
                            if not alone:
                                target, used, free, spare = _entry(entries, width, used, free, spare)
                                for k in range(EVENTS, width):
                                    entries[(target - 1) * width + k] = entries[at + k]
                            new = (target - 1) * width
                            entries[new + EVENTS + step] = this
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
                        entries[at + NEXT], entries[at + EVENTS] = free, NO_EVENT
                        free = place
                        spare += 1
                else:
                    before = place
                place = following
            step -= 1
        if bits >> (2 * last + 2) & 1 != 0:
            place = heads[lists]  # latest first: those after an excluded one are excluded, too
            while place != 0 and entries[(place - 1) * width + SPOILT] == NEVER:
                looked += 1
                if entries[(place - 1) * width + ENDED] < start:
                    entries[(place - 1) * width + SPOILT] = end
                place = entries[(place - 1) * width + NEXT]
        if bits & 1 != 0:
            place, used, free, spare = _entry(entries, width, used, free, spare)
            at = (place - 1) * width
            entries[at + ENDED], entries[at + SINCE], entries[at + MARK] = end, start, 0
            entries[at + SPOILT], entries[at + EVENTS] = NEVER, this
            for k in range(1, last):
                entries[at + EVENTS + k] = NO_EVENT
            entries[at + NEXT] = heads[lists]
            heads[lists] = place
            kept[i] = True
        this += kept[i]
    control[USED], control[FREE], control[SPARE], control[OUT] = used, free, spare, found
    control[LAST_START], control[LAST_END], control[STAMP] = last_start, last_end, stamp
    return int(answer)


@bare_kernel
def number(events: Int64s, width: int, skipped: int, first: int, numbers: Int64s) -> None:
    """Replace numbers of events from `first` on, in rows that begin with `skipped` other words."""
    for row in range(0, len(events), width):
        for k in range(row + skipped, row + width):
            if events[k] >= first:
                events[k] = numbers[events[k] - first]


@always_inline
def _write_match(
    found: Int64s, match: Any, last: int, spec: Int64s, rows: Int64s, slots: Int64s, row_counts: Int64s, events: Int64s
) -> None:
    """Append the rows of a match: a source row for each event, followed by its join with the events before."""
    row, slot = row_counts[ROWS], row_counts[SLOTS_USED]
    first = found[match] * EVENT
    position = events[first + POSITION]
    for step in range(last + 1):
        event = found[match + step]
        start, end = events[event * EVENT + EVENT_START], events[event * EVENT + EVENT_END]
        at = row * ROW
        rows[at + START], rows[at + END], rows[at + FIRST_END], rows[at + ROW_LAST_START] = start, end, end, start
        rows[at + LEFT], rows[at + RIGHT], rows[at + KIND] = -1, event, SOURCE
        rows[at + SHIFT], rows[at + SLOTS], rows[at + FIRST] = 0, slot, events[event * EVENT + POSITION]
        row += 1
        position = min(position, events[event * EVENT + POSITION])
        if step > 0:
            at = row * ROW
            rows[at + START], rows[at + END] = events[first + EVENT_START], end
            rows[at + FIRST_END], rows[at + ROW_LAST_START] = events[first + EVENT_END], start
            rows[at + LEFT], rows[at + RIGHT], rows[at + KIND] = row - 2, row - 1, PAIR
            rows[at + SHIFT], rows[at + SLOTS], rows[at + FIRST] = step, slot, position
            row += 1
    for k in range(len(spec) // 3):
        slots[slot + k] = found[match + (last if spec[3 * k] == FROM_RIGHT else spec[3 * k + 1])]
    row_counts[ROWS] = row
    row_counts[SLOTS_USED] += len(spec) // 3


@bare_kernel
def write_matches(
    found: Int64s, last: int, spec: Int64s, rows: Int64s, slots: Int64s, row_counts: Int64s, events: Int64s
) -> None:
    """Append rows for matches; the last row of each is the match itself. There must be space for all.

    Lists begin with the latest or the earliest entry; matches that end with one event are written by their beginning.
    """
    size = last + 1
    begin, count = 0, len(found) // size
    while begin < count:
        after = begin + 1
        while after < count and found[after * size + last] == found[begin * size + last]:
            after += 1
        is_turned = found[begin * size] > found[(after - 1) * size]
        for k in range(begin, after):
            match = (begin + after - 1 - k if is_turned else k) * size
            _write_match(found, match, last, spec, rows, slots, row_counts, events)
        begin = after


@bare_kernel
def mark(steps: Int64s, clock: int, floor: int, entries: Int64s, control: Int64s, live: Mask) -> int:
    """Mark the events of the live entries, clear those of the rest, and return how many entries have events.

    Entries that started before the `floor` are dropped.
    """
    last = len(steps) // STEP - 1
    width = EVENTS + last
    count = 0
    for at in range(0, control[USED] * width, width):
        if entries[at + EVENTS] == NO_EVENT:
            continue
        step = 1
        while step < last and entries[at + EVENTS + step] != NO_EVENT:
            step += 1
        worth, decided = steps[STEP * step + WORTH], entries[at + MARK]
        is_late = worth >= 0 and clock - entries[at + SINCE] > worth
        if (decided != 0 and decided != control[STAMP]) or is_late or entries[at + SINCE] < floor:
            for k in range(step):
                entries[at + EVENTS + k] = NO_EVENT
            continue
        for k in range(step):
            live[entries[at + EVENTS + k]] = True
        count += 1
    return count


@bare_kernel
def repack(heads: Int64s, steps: int, entries: Int64s, control: Int64s, fresh: Int64s) -> None:
    """Copy the entries that have events to a new array, list by list; the lists stay the same."""
    width = EVENTS + steps
    used = np.int64(0)
    for head in range(len(heads)):
        if head + AHEAD < len(heads):
            prefetch(entries, (heads[head + AHEAD] - 1) * width)
        place, heads[head] = heads[head], 0
        before = np.int64(0)
        while place != 0:
            at = (place - 1) * width
            place = entries[at + NEXT]
            if entries[at + EVENTS] == NO_EVENT:
                continue
            to = used * width
            used += 1
            for field in range(width):
                fresh[to + field] = entries[at + field]
            fresh[to + NEXT] = 0
            if before == 0:
                heads[head] = used
            else:
                fresh[(before - 1) * width + NEXT] = used
            before = used
    control[USED], control[FREE], control[SPARE] = used, 0, 0
