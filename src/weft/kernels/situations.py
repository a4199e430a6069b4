"""Sequences of events with equal keys, one slot after the other, whose matching sets may consume their members.

Per key and slot there is a chain of rows, newest first. A row is kept only while some row of the slot before it ends
before it starts, so every walk from the last slot down to the first gives a matching set: enumeration takes time
linear in what it gives. The event that completes a sequence is always the newest, so the last slot keeps no rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare, kernel

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


class Events(NamedTuple):
    """Arriving events: their slots (-1: none) and keys, and numbers that stand for them."""

    slots: Int8s
    keys: Int32s
    starts: Int64s
    ends: Int64s
    positions: Int64s


class Query(NamedTuple):
    """Which slots consume, which events they take; partitions of `length`, a `step` of 0 is one partition."""

    consumes: Int8s
    picks: Int8s
    length: int
    step: int


class Chains(NamedTuple):
    """By key and slot the newest row and the least end; by key the partition that these belong to."""

    heads: Int32s
    least: Int64s
    windows: Int64s


class Rows(NamedTuple):
    """Events that may become members, as columns; `next` is the row before it in its chain, or the next free one."""

    positions: Int64s
    starts: Int64s
    ends: Int64s
    next: Int32s
    used: Int8s
    ways: Int64s  # while counting: in how many ways the slots up to this row's can be filled


class Search(NamedTuple):
    """The rows of the set at hand, and what they end before."""

    current: Int32s
    bounds: Int64s


class Sets(NamedTuple):
    """Where sets are written: the event that completes each, its start, its members."""

    events: Int64s
    starts: Int64s
    positions: Int64s


@bare
def _free_consumed(base: int, kept: int, control: Int64s, chains: Chains, rows: Rows) -> None:
    """Free the rows of a key that were consumed, and those that have nothing before them any more."""
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


@bare
def _mark_members(start: int, base: int, kept: int, consumes: Int8s, chains: Chains, rows: Rows) -> None:
    """Mark as used what the sets that an event at `start` completes will consume."""
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


@bare
def _choose(start: int, base: int, kept: int, query: Query, chains: Chains, rows: Rows, search: Search) -> None:
    """The one set of an event at `start` when each slot takes its earliest or its latest: in `current`, marked."""
    current, bounds = search.current, search.bounds
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
        # Whatever ends before the bound of its slot leads to the last one.
        chosen = NONE
        row = chains.heads[base + place]
        while row >= 0:
            if rows.ends[row] < bounds[place] and rows.starts[row] > after:
                chosen = row
                if query.picks[place] == LATEST:
                    break
            row = rows.next[row]
        current[place] = chosen
        rows.used[chosen] |= query.consumes[place]
        after = rows.ends[chosen]


@bare
def _count(start: int, base: int, kept: int, chains: Chains, rows: Rows) -> int:
    """The number of sets that an event at `start` completes, without making them."""
    heads, total = chains.heads, 0
    for place in range(kept):
        earlier_total, total = total, 0
        # Rows come by descending end: of the slot before, those too late for a row are at the front.
        other = NONE if place == 0 else heads[base + place - 1]
        rest, last_start = earlier_total, NEVER
        row = heads[base + place]
        while row >= 0:
            ways = 1
            if place > 0:
                if rows.starts[row] > last_start:
                    other, rest = heads[base + place - 1], earlier_total
                last_start = rows.starts[row]
                while other >= 0 and rows.ends[other] >= last_start:
                    rest -= rows.ways[other]
                    other = rows.next[other]
                ways = rest
            rows.ways[row] = ways
            if place < kept - 1 or rows.ends[row] < start:
                total += ways
            row = rows.next[row]
    return total


@bare
def _enter(event: int, base: int, kept: int, events: Events, query: Query, control: Int64s, chains: Chains) -> bool:
    """Begin the partition of an event if it is new; whether the event is in one and comes after what it needs."""
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


@bare
def _keep(event: int, base: int, events: Events, control: Int64s, chains: Chains, rows: Rows) -> bool:
    """Make an event the newest row of its slot, if there is room."""
    row = control[FREE]
    if row >= 0:
        control[FREE] = rows.next[row]
    elif control[TOP] < len(rows.next):
        row = control[TOP]
        control[TOP] += 1
    else:
        return False
    place = base + events.slots[event]
    rows.positions[row] = events.positions[event]
    rows.starts[row] = events.starts[event]
    rows.ends[row] = events.ends[event]
    rows.used[row] = 0
    rows.next[row] = chains.heads[place]
    chains.heads[place] = row
    chains.least[place] = min(chains.least[place], events.ends[event])
    return True


@bare
def _write(event: int, kept: int, events: Events, control: Int64s, rows: Rows, search: Search, sets: Sets) -> bool:
    """Write out the set at hand, if there is room."""
    found, current = control[FOUND], search.current
    if found == len(sets.events):
        return False
    at = found * (kept + 1)
    for place in range(kept):
        sets.positions[at + place] = rows.positions[current[place]]
    sets.positions[at + kept] = events.positions[event]
    sets.events[found] = event
    sets.starts[found] = rows.starts[current[0]]
    control[FOUND] += 1
    return True


@bare
def _walk(
    event: int,
    base: int,
    kept: int,
    events: Events,
    control: Int64s,
    chains: Chains,
    rows: Rows,
    search: Search,
    sets: Sets,
) -> bool:
    """Walk down from the last slot, where every walk that reaches the first is a set; False: there is no more room."""
    current, ends, after = search.current, rows.ends, rows.next
    depth, before = control[DEPTH], events.starts[event]
    entering = depth < 0
    if entering:
        depth = kept - 1
    while depth < kept:
        if entering:
            row = chains.heads[base + depth]
            while ends[row] >= before:
                row = after[row]
            current[depth] = row
            entering = False
        row = current[depth]
        if row < 0:
            depth += 1
            if depth < kept:
                current[depth] = after[current[depth]]
        elif depth > 0:
            before = rows.starts[row]
            depth -= 1
            entering = True
        else:
            if not _write(event, kept, events, control, rows, search, sets):
                control[DEPTH] = depth
                return False
            current[0] = after[row]
    control[DEPTH] = NONE
    return True


@kernel
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
    """Take events until all are done, the output is full or rows run out; called again it goes on from there.

    With `counting` sets are only counted.
    """
    kept = len(query.consumes) - 1
    consumes, each = query.consumes.any(), query.picks[0] == EACH
    while control[EVENT] < len(events.slots):
        event = control[EVENT]
        slot, base, start = events.slots[event], events.keys[event] * kept, events.starts[event]
        if control[DEPTH] < 0:
            known = slot >= 0 and events.keys[event] >= 0
            if not (known and _enter(event, base, kept, events, query, control, chains)):
                control[EVENT] += 1
                continue
            if slot < kept:
                if not _keep(event, base, events, control, chains, rows):
                    return GROW
                control[EVENT] += 1
                continue
            if not each:
                if not counting and control[FOUND] == len(sets.events):
                    return FULL
                _choose(start, base, kept, query, chains, rows, search)
            elif consumes:
                _mark_members(start, base, kept, query.consumes, chains, rows)
        if counting:
            control[FOUND] += _count(start, base, kept, chains, rows) if each else 1
        elif not each:
            _write(event, kept, events, control, rows, search, sets)
        elif not _walk(event, base, kept, events, control, chains, rows, search, sets):
            return FULL
        if consumes:
            _free_consumed(base, kept, control, chains, rows)
        control[EVENT] += 1
    return DONE
