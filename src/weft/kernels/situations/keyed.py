"""Sequences of events with equal keys, slot by slot, whose matching sets may consume their members.

For each key and slot there is a chain of rows, newest first. A row is stored only while some row of the slot before it
ends before it starts, so every walk from the last slot down to the first gives a matching set: enumeration takes time
linear in its output. The event that completes a sequence is always the newest, so the last slot stores no rows; the
current event has the last row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.situations.keyed_sets import Int8s, Int32s, Int64s, Rows, Sets, write, write_all

# Places of the control array.
EVENT, TOP, FREE, WINDOW, FOUND, DEPTH, PLAIN = range(7)
CONTROLS = 7
DONE, FULL, GROW = range(3)
NONE = -1
NEVER = np.iinfo(np.int64).max
MANY = 1 << 31  # sets; the product with the number of rows must fit into a word
# Which events of a slot are selected; all slots select each, or none does.
EACH, EARLIEST, LATEST = range(3)


class Events(NamedTuple):
    """Arriving events: their slots (-1: none), keys, and numbers."""

    slots: Int8s
    keys: Int32s
    starts: Int64s
    ends: Int64s
    positions: Int64s


class Query(NamedTuple):
    """Which slots consume, which events they select; partitions of `length`, one partition if `step` is 0."""

    consumes: Int8s
    picks: Int8s
    length: int
    step: int


class Chains(NamedTuple):
    """The newest row and the least end by key and slot; the partition of these by key."""

    heads: Int32s
    least: Int64s
    windows: Int64s


class Search(NamedTuple):
    """The rows of the current set, and the times before which they end."""

    current: Int32s
    bounds: Int64s


@device_no_refcount
def _free_consumed(base: int, kept: int, control: Int64s, chains: Chains, rows: Rows) -> None:
    """Free the consumed rows of a key, and those without a predecessor."""
    earliest = NEVER
    for place in range(kept):
        row = chains.heads[base + place]
        last = NONE
        kept_least = NEVER
        while row >= 0:
            after = rows.next[row]
            if rows.used[row] != 0 or (place > 0 and rows.starts[row] <= earliest):
                if last < 0:
                    chains.heads[base + place] = after
                else:
                    rows.next[last] = after
                rows.next[row] = control[FREE]
                control[FREE] = row
            else:
                last = row
                if rows.ends[row] < kept_least:
                    kept_least = rows.ends[row]
            row = after
        chains.least[base + place] = kept_least
        earliest = kept_least


@bare_kernel
def find_rows(kept: int, step: int, control: Int64s, chains: Chains, rows: Rows, found: Int64s) -> int:
    """Write the rows of the open partition, for which there must be space, and return how many there are."""
    count = 0
    window = control[WINDOW] if step > 0 else np.int64(0)
    for key in range(len(chains.windows)):
        if chains.windows[key] != window:
            continue
        for place in range(key * kept, (key + 1) * kept):
            row = chains.heads[place]
            while row >= 0:
                found[count] = row
                count += 1
                row = rows.next[row]
    return count


@bare_kernel
def free_used(kept: int, step: int, control: Int64s, chains: Chains, rows: Rows) -> None:
    """Free the rows of the open partition that are marked as used, and those that have nothing before them then."""
    window = control[WINDOW] if step > 0 else np.int64(0)
    for key in range(len(chains.windows)):
        if chains.windows[key] == window:
            _free_consumed(key * kept, kept, control, chains, rows)


@device_no_refcount
def _mark_members(start: int, base: int, kept: int, consumes: Int8s, chains: Chains, rows: Rows) -> None:
    """Mark the rows that the sets of an event at `start` consume."""
    before = start
    for place in range(kept - 1, -1, -1):
        latest = -NEVER
        row = chains.heads[base + place]
        while row >= 0:
            if rows.ends[row] < before:
                rows.used[row] |= consumes[place]
                if rows.starts[row] > latest:
                    latest = rows.starts[row]
            row = rows.next[row]
        before = latest


@device_no_refcount
def _choose(start: int, base: int, kept: int, query: Query, chains: Chains, rows: Rows, search: Search) -> None:
    """Select the only set of an event at `start` if slots select earliest or latest events, and mark its members."""
    bounds = search.bounds
    before = start
    for place in range(kept - 1, -1, -1):
        bounds[place] = before
        latest = -NEVER
        row = chains.heads[base + place]
        while row >= 0:
            if rows.ends[row] < before and rows.starts[row] > latest:
                latest = rows.starts[row]
            row = rows.next[row]
        before = latest
    after = -NEVER
    for place in range(kept):
        # Any row that ends before the bound of its slot leads to the last slot.
        chosen = NONE
        row = chains.heads[base + place]
        while row >= 0:
            if rows.ends[row] < bounds[place] and rows.starts[row] > after:
                chosen = row
                if query.picks[place] == LATEST:
                    break
            row = rows.next[row]
        search.current[place] = chosen
        rows.used[chosen] |= query.consumes[place]
        after = rows.ends[chosen]


@device_no_refcount
def _count(own: int, base: int, kept: int, chains: Chains, rows: Rows) -> tuple[int, int]:
    """Count the sets that row `own` completes without building them; return also up to which slot they can be copied.

    Store where each row leads down to.
    """
    first, total, plain = NONE, 0, kept
    for place in range(kept + 1):
        below, first = first, own if place == kept else chains.heads[base + place]
        earlier_total, total = total, 0
        # Rows come by descending end: of the slot before, those too late for a row are at the front.
        other, rest, last_start = below, earlier_total, NEVER
        row = first
        while row >= 0:
            ways, start = 1, rows.starts[row]
            if place > 0:
                if start > last_start:
                    other, rest = below, earlier_total
                    plain = min(plain, place)
                last_start = start
                while rows.ends[other] >= start:
                    rest -= rows.ways[other]
                    other = rows.next[other]
                ways = rest
                rows.down[row] = other
            rows.ways[row] = ways
            total += ways
            row = rows.next[row]
        if total > MANY:
            plain = min(plain, place)
    return total, plain


@always_inline
def _enter(event: int, base: int, kept: int, events: Events, query: Query, control: Int64s, chains: Chains) -> bool:
    """Begin the partition of an event if it is new; return whether the event is in one and has a predecessor."""
    start, key, number = events.starts[event], events.keys[event], 0
    if query.step > 0:
        number = start // query.step
        if events.ends[event] >= number * query.step + query.length:
            return False
        if number != control[WINDOW]:  # partitions do not overlap, so all rows belong to one that has closed
            control[WINDOW], control[TOP], control[FREE] = number, 0, NONE
    if chains.windows[key] != number:
        chains.windows[key] = number
        for place in range(kept):
            chains.heads[base + place] = NONE
            chains.least[base + place] = NEVER
    slot = events.slots[event]
    fits: bool = slot == 0 or chains.least[base + slot - 1] < start
    return fits


@always_inline
def _fill(row: int, event: int, events: Events, rows: Rows) -> None:
    """Write the row of an event."""
    rows.positions[row] = events.positions[event]
    rows.starts[row] = events.starts[event]
    rows.ends[row] = events.ends[event]
    rows.used[row] = 0
    rows.next[row] = NONE


@always_inline
def _keep(event: int, base: int, events: Events, control: Int64s, chains: Chains, rows: Rows) -> bool:
    """Add an event as the newest row of its slot, and return False if there is no space."""
    row = control[FREE]
    if row >= 0:
        control[FREE] = rows.next[row]
    elif control[TOP] < len(rows.next) - 1:
        row = control[TOP]
        control[TOP] += 1
    else:
        return False
    place = base + events.slots[event]
    _fill(row, event, events, rows)
    rows.next[row] = chains.heads[place]
    chains.heads[place] = row
    chains.least[place] = min(chains.least[place], events.ends[event])
    return True


@device_no_refcount
def _walk(kept: int, control: Int64s, rows: Rows, current: Int32s, sets: Sets) -> bool:
    """Write the sets of the current row, as many at once as possible; return False if there is no space."""
    room, depth = len(sets.starts), control[DEPTH]
    while depth <= kept:
        row = current[depth]
        if depth > control[PLAIN] or rows.ways[row] > room:
            depth -= 1
            current[depth] = rows.down[row]
            continue
        if control[FOUND] + rows.ways[row] > room:
            control[DEPTH] = depth
            return False
        write_all(control[FOUND], depth, kept, rows, current, sets)
        control[FOUND] += rows.ways[row]
        while depth <= kept and rows.next[current[depth]] < 0:
            depth += 1
        if depth <= kept:
            current[depth] = rows.next[current[depth]]
    control[DEPTH] = NONE
    return True


@device_no_refcount
def _complete(
    event: int,
    base: int,
    events: Events,
    query: Query,
    control: Int64s,
    chains: Chains,
    rows: Rows,
    search: Search,
    sets: Sets,
    counting: bool,
) -> bool:
    """Write, or count, the sets that an event completes; return False if there is no space."""
    kept = len(query.consumes) - 1
    own, start, each = len(rows.next) - 1, events.starts[event], query.picks[0] == EACH
    if control[DEPTH] < 0:
        if not each and not counting and control[FOUND] == len(sets.starts):
            return False
        _fill(own, event, events, rows)
        search.current[kept] = own
        if each:
            _mark_members(start, base, kept, query.consumes, chains, rows)
            total, control[PLAIN] = _count(own, base, kept, chains, rows)
            control[DEPTH] = kept
        else:
            total = 1
            _choose(start, base, kept, query, chains, rows, search)
            if not counting:
                write(control[FOUND], kept, rows, search.current, sets)
        if counting or not each:
            control[FOUND] += total
            control[DEPTH] = NONE
            return True
    return _walk(kept, control, rows, search.current, sets)


@bare_kernel
def advance_sequences(
    events: Events,
    query: Query,
    control: Int64s,
    chains: Chains,
    rows: Rows,
    search: Search,
    sets: Sets,
    counting: bool,
) -> int:
    """Process events until all are done, the output is full or rows run out; call it again to resume.

    With `counting` sets are only counted.
    """
    kept = len(query.consumes) - 1
    consumes = False
    for place in range(kept + 1):
        consumes |= query.consumes[place] > 0
    while control[EVENT] < len(events.slots):
        event = control[EVENT]
        slot, base = events.slots[event], events.keys[event] * kept
        known = slot >= 0 and events.keys[event] >= 0
        if control[DEPTH] >= 0 or (known and _enter(event, base, kept, events, query, control, chains)):
            if slot < kept:
                if not _keep(event, base, events, control, chains, rows):
                    return GROW
            else:
                if not _complete(event, base, events, query, control, chains, rows, search, sets, counting):
                    return FULL
                if consumes:
                    _free_consumed(base, kept, control, chains, rows)
        control[EVENT] += 1
    return DONE
