"""The search for matching sets in a partition: slot by slot, each clause tested as soon as its variables are bound.

At a slot under `first` or `last` the search stops after the first event that leads to a set: the walk is in the order
in which candidates stand, so nothing later can come before. What is found is written out; when that is full the
search stops where it is and goes on there when it is called again.
"""

from __future__ import annotations

import numpy as np

from weft.kernels import joint
from weft.kernels.jit import inlined, kernel
from weft.kernels.participants import (
    ARRIVED,
    CHAIN,
    CONSUMES,
    DEPTH,
    END,
    EVENT,
    EVENT_END,
    EVENT_START,
    EVERY,
    FILLED,
    FIRST,
    FOUND,
    GONE_COUNT,
    HAPPENING,
    HEAD,
    KEY,
    KEYS,
    LAST,
    LIMIT,
    LINK,
    NEVER,
    NEW,
    NEW_CLASS,
    NEWEST,
    NONE,
    NUMBER,
    OLDEST,
    ORIGIN,
    PARTICIPANT,
    PARTITION,
    PLACE,
    REPEATED,
    SEEN_COUNT,
    SIDE,
    SLOT,
    STAMP,
    START,
    SWEPT,
    TAIL,
    TAKEN,
    WORK_AT,
    WORK_COUNT,
    Facts,
    Int64s,
    Rows,
    borrow_facts,
    borrow_rows,
    clear_partition,
    clear_slot,
    consume,
    find_chain,
    hash_value,
    mark_consumed,
)
from weft.kernels.partitions import (
    ABSENCE,
    ANY,
    CLOSE,
    COUNTS_EMPTY,
    DEFERRED,
    FINISH,
    FIRST_PART,
    KEY_ORIGIN,
    KEYED,
    KIND,
    LENGTH,
    NEXT_NUMBER,
    OVERLAPS,
    SEQUENCE,
    SINGLE,
    STEP,
    Batch,
    Layout,
    arrive,
    borrow_batch,
    borrow_layout,
    forget,
    room_for,
)

DONE, FULL, GROW, CROWDED = range(4)  # CROWDED: the table of sets that were selected has no room
# Fields of a step: its slot, the index that is looked up (-1: none) and whose value there, the bound slots before and
# after it in a sequence (-1: none), whether other slots may hold the same event, and its tests.
SLOT_OF, INDEX_OF, OTHER, OTHER_COLUMN, AFTER, BEFORE, SHARES, QUICK, QUICK_END, CODE, CODE_END, LINK_OF = range(12)
STEPPED = 12
QUICKLY = 5  # of a quick test: operator, slot and column, slot and column
ABSENT = 4  # numbers of an absence: key, start, end, origin


# ---------------------------------------------------------------- sets


@inlined
def _is_new(rows: Rows, facts: Facts, deferred: bool) -> bool:
    """Whether the set in `bound` was not selected before, by the event at hand or at all; it is remembered."""
    first, second = np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344)
    least = np.int64(NEVER)
    for slot in range(len(facts.slots) // PARTICIPANT):
        place = np.int64(-1)
        if rows.bound[slot] >= 0:
            place = facts.events[rows.bound[slot] * HAPPENING + PLACE]
            least = min(least, place)
        first = (first ^ np.uint64(place)) * np.uint64(0x9E3779B97F4A7C15)
        first ^= first >> np.uint64(29)
        second = (second ^ np.uint64(place)) * np.uint64(0xBF58476D1CE4E5B9)
        second ^= second >> np.uint64(32)
    seen = rows.seen
    one, other = np.int64(first), np.int64(second)
    at = np.int64(first >> np.uint64(1)) % (len(seen) // 3)
    mark = least + 1 if deferred else rows.control[STAMP]
    while seen[3 * at + 2] != 0 and (deferred or seen[3 * at + 2] == mark):
        if seen[3 * at] == one and seen[3 * at + 1] == other:
            return False
        at = (at + 1) % (len(seen) // 3)
    seen[3 * at], seen[3 * at + 1], seen[3 * at + 2] = one, other, mark
    rows.control[SEEN_COUNT] += 1
    return True


@kernel
def place_seen(sets: Int64s, table: Int64s) -> None:
    """Put sets that were selected into an empty table."""
    for k in range(0, len(sets), 3):
        at = np.int64(np.uint64(sets[k]) >> np.uint64(1)) % (len(table) // 3)
        while table[3 * at + 2] != 0:
            at = (at + 1) % (len(table) // 3)
        table[3 * at], table[3 * at + 1], table[3 * at + 2] = sets[k], sets[k + 1], sets[k + 2]


@inlined
def _emit(rows: Rows, facts: Facts, layout: Layout, out: Int64s, counting: bool) -> int:
    """Write out the set in `bound`; DONE, or what must be done before that can be."""
    control = rows.control
    count = len(facts.slots) // PARTICIPANT
    if layout.shape[OVERLAPS] != 0:
        if 2 * control[SEEN_COUNT] >= len(rows.seen) // 3:
            return CROWDED
        if not counting and (control[FOUND] + 1) * count > len(out):
            return FULL
        if not _is_new(rows, facts, layout.shape[DEFERRED] != 0):
            return DONE
    elif not counting and (control[FOUND] + 1) * count > len(out):
        return FULL
    if not counting:
        for slot in range(count):
            out[control[FOUND] * count + slot] = rows.bound[slot]
    control[FOUND] += 1
    return DONE


# ---------------------------------------------------------------- all slots


@inlined
def _fits(rows: Rows, facts: Facts, layout: Layout, machine: joint.Facts, frame: Int64s, step: int) -> bool:
    """Whether the tests of a step hold for what is bound."""
    steps, quick, values, bound = layout.steps, layout.quick, facts.values, rows.bound
    for at in range(steps[step + QUICK], steps[step + QUICK_END], QUICKLY):
        one = bound[quick[at + 1]] * facts.width + 2 * quick[at + 2]
        other = bound[quick[at + 3]] * facts.width + 2 * quick[at + 4]
        if not joint.compare_values(
            quick[at], values[one], values[one + 1], values[other], values[other + 1], machine.pool, machine.offsets
        ):
            return False
    begin, end = steps[step + CODE], steps[step + CODE_END]
    return begin == end or joint.holds_from(layout.code[begin:end], 0, machine, frame, bound, 0, 0)


@inlined
def _next_entry(rows: Rows, facts: Facts, layout: Layout, step: int, entry: int) -> int:
    """From an entry on, in the order of the slot's policy: the one that may be bound next, NONE when there is none."""
    steps, entries, events, bound = layout.steps, rows.entries, facts.events, rows.bound
    slot = steps[step + SLOT_OF]
    link = steps[step + LINK_OF]
    backward = facts.slots[slot * PARTICIPANT + REPEATED] == LAST
    low, high = -NEVER, NEVER
    if steps[step + AFTER] >= 0:
        low = events[bound[steps[step + AFTER]] * HAPPENING + EVENT_END]
    if steps[step + BEFORE] >= 0:
        high = events[bound[steps[step + BEFORE]] * HAPPENING + EVENT_START]
    while entry >= 0:
        event = entries[entry * facts.entry + EVENT]
        start, end = events[event * HAPPENING + EVENT_START], events[event * HAPPENING + EVENT_END]
        # Entries stand by end.
        if (end <= low) if backward else (end >= high):
            return NONE
        free = start > low and end < high
        if steps[step + SHARES] != 0:
            for other in range(len(facts.slots) // PARTICIPANT):
                free = free and (other == slot or bound[other] != event)
        if free:
            break
        entry = entries[entry * facts.entry + link + (1 if backward else 0)]
    return entry


@inlined
def _first_entry(rows: Rows, facts: Facts, layout: Layout, part: int, step: int, depth: int, last_own: int) -> int:
    """The first entry that a step may bind."""
    steps, entries = layout.steps, rows.entries
    slot = steps[step + SLOT_OF]
    side = part * facts.part + PARTITION + slot * SIDE
    if slot == last_own and rows.holds_new[depth] == 0:
        entry = rows.parts[side + NEWEST]
        return entry if entry >= 0 and entries[entry * facts.entry + EVENT] == rows.control[NEW] else NONE
    backward = facts.slots[slot * PARTICIPANT + REPEATED] == LAST
    index = steps[step + INDEX_OF]
    if index < 0:
        entry = rows.parts[side + NEWEST] if backward else rows.parts[side + OLDEST]
    else:
        at = rows.bound[steps[step + OTHER]] * facts.width + 2 * steps[step + OTHER_COLUMN]
        if np.isnan(facts.values[at]):
            return NONE
        owner = part * len(facts.columns) + index
        chain = find_chain(rows, hash_value(facts.values[at], facts.values[at + 1], owner), owner)
        if chain < 0:
            return NONE
        entry = rows.chains[chain * CHAIN + (TAIL if backward else HEAD)]
    return _next_entry(rows, facts, layout, step, entry)


@inlined
def _after(rows: Rows, facts: Facts, layout: Layout, step: int, depth: int, last_own: int) -> int:
    """The entry that a step binds after the one it has."""
    slot = layout.steps[step + SLOT_OF]
    if slot == last_own and rows.holds_new[depth] == 0:
        return NONE
    link = layout.steps[step + LINK_OF]
    if facts.slots[slot * PARTICIPANT + REPEATED] == LAST:
        link += 1
    return _next_entry(rows, facts, layout, step, rows.entries[rows.current[depth] * facts.entry + link])


@inlined
def _found(rows: Rows, facts: Facts, layout: Layout, base: int, out: Int64s, counting: bool) -> int:
    """A set is complete: write it out and note what it consumes."""
    status = _emit(rows, facts, layout, out, counting)
    if status == DONE:
        for depth in range(len(facts.slots) // PARTICIPANT):
            slot = layout.steps[base + depth * STEPPED + SLOT_OF]
            if facts.slots[slot * PARTICIPANT + CONSUMES] != 0:
                mark_consumed(rows, facts, rows.current[depth])
    return status


@inlined
def _search(
    rows: Rows,
    facts: Facts,
    layout: Layout,
    machine: joint.Facts,
    frame: Int64s,
    part: int,
    way: int,
    last_own: int,
    out: Int64s,
    counting: bool,
) -> int:
    """Find the sets of a partition, in one of the ways to go through the slots; `last_own` as in `_select`."""
    steps, current, some, bound = layout.steps, rows.current, rows.some, rows.bound
    count = len(facts.slots) // PARTICIPANT
    base = way * count * STEPPED
    depth = rows.control[DEPTH]
    if depth < 0:
        depth = 0
        some[0] = rows.holds_new[0] = 0
        bound[:] = NONE
        current[0] = _first_entry(rows, facts, layout, part, base, 0, last_own)
    while depth >= 0:
        step = base + depth * STEPPED
        slot = steps[step + SLOT_OF]
        policy = facts.slots[slot * PARTICIPANT + REPEATED]
        enough = some[depth] != 0 and (layout.shape[SINGLE] != 0 or policy in (FIRST, LAST))
        entry = current[depth]
        if entry < 0 or enough:
            bound[slot] = NONE
            depth -= 1
            if depth >= 0:
                some[depth] |= some[depth + 1]
                bound[steps[base + depth * STEPPED + SLOT_OF]] = NONE
                current[depth] = _after(rows, facts, layout, base + depth * STEPPED, depth, last_own)
            continue
        bound[slot] = rows.entries[entry * facts.entry + EVENT]
        if _fits(rows, facts, layout, machine, frame, step):
            if depth + 1 < count:
                depth += 1
                some[depth] = 0
                is_new = 1 if bound[slot] == rows.control[NEW] else 0
                rows.holds_new[depth] = rows.holds_new[depth - 1] | is_new
                current[depth] = _first_entry(rows, facts, layout, part, base + depth * STEPPED, depth, last_own)
                continue
            status = _found(rows, facts, layout, base, out, counting)
            if status != DONE:
                rows.control[DEPTH] = depth
                return status
            some[depth] = 1
        bound[slot] = NONE
        current[depth] = _after(rows, facts, layout, step, depth, last_own)
    rows.control[DEPTH] = NONE
    return DONE


# ---------------------------------------------------------------- one slot of all


@inlined
def _extreme(rows: Rows, facts: Facts, part: int, policy: int) -> int:
    """The earliest entry of all slots under FIRST, or the latest of those under LAST; EVERY: the earliest of others."""
    best, best_place = np.int64(NONE), np.int64(NEVER)
    for slot in range(len(facts.slots) // PARTICIPANT):
        repeated = facts.slots[slot * PARTICIPANT + REPEATED]
        if repeated == policy or (policy == EVERY and repeated not in (FIRST, LAST)):
            side = part * facts.part + PARTITION + slot * SIDE
            entry = rows.parts[side + (NEWEST if policy == LAST else OLDEST)]
            if entry >= 0:
                place = facts.events[rows.entries[entry * facts.entry + EVENT] * HAPPENING + PLACE]
                if best < 0 or (place >= best_place if policy == LAST else place < best_place):
                    best, best_place = entry, place
    return best


@inlined
def _first_of(rows: Rows, facts: Facts, one: int, other: int) -> int:
    """Which of two entries, each of which may be NONE, is earlier; of one event, that in the smaller slot."""
    if one < 0 or other < 0:
        return max(one, other)
    a = facts.events[rows.entries[one * facts.entry + EVENT] * HAPPENING + PLACE]
    b = facts.events[rows.entries[other * facts.entry + EVENT] * HAPPENING + PLACE]
    if a == b:
        return one if rows.entries[one * facts.entry + SLOT] < rows.entries[other * facts.entry + SLOT] else other
    return one if a < b else other


@inlined
def _alternatives(rows: Rows, facts: Facts, layout: Layout, part: int, out: Int64s, counting: bool) -> int:
    """The sets of one event each: the earliest under FIRST, the latest under LAST, and all others."""
    control, entries, bound = rows.control, rows.entries, rows.bound
    earliest, latest = _extreme(rows, facts, part, FIRST), _extreme(rows, facts, part, LAST)
    only = np.int64(NONE)
    if layout.shape[SINGLE] != 0:
        only = _first_of(rows, facts, _first_of(rows, facts, earliest, latest), _extreme(rows, facts, part, EVERY))
    if control[DEPTH] < 0:
        control[DEPTH] = rows.some[0] = 0
        rows.current[0] = rows.parts[part * facts.part + PARTITION + OLDEST]
    while control[DEPTH] < len(facts.slots) // PARTICIPANT:
        slot, entry = control[DEPTH], rows.current[0]
        if entry < 0:
            control[DEPTH] += 1
            if control[DEPTH] < len(facts.slots) // PARTICIPANT:
                rows.current[0] = rows.parts[part * facts.part + PARTITION + control[DEPTH] * SIDE + OLDEST]
            continue
        policy = facts.slots[slot * PARTICIPANT + REPEATED]
        chosen = entry == (earliest if policy == FIRST else latest if policy == LAST else entry)
        if chosen and (layout.shape[SINGLE] == 0 or entry == only):
            bound[:] = NONE
            bound[slot] = entries[entry * facts.entry + EVENT]
            status = _emit(rows, facts, layout, out, counting)
            if status != DONE:
                return status
            rows.some[0] = 1
            if facts.slots[slot * PARTICIPANT + CONSUMES] != 0:
                mark_consumed(rows, facts, entry)
        rows.current[0] = entries[entry * facts.entry + LINK]
    control[DEPTH] = NONE
    return DONE


# ---------------------------------------------------------------- work


@inlined
def _select(
    rows: Rows,
    facts: Facts,
    layout: Layout,
    machine: joint.Facts,
    frame: Int64s,
    part: int,
    immediate: bool,
    out: Int64s,
    counting: bool,
) -> int:
    """One selection in a partition; `some[0]` tells whether there was a set."""
    if layout.shape[KIND] == ANY:
        return _alternatives(rows, facts, layout, part, out, counting)
    count = len(facts.slots) // PARTICIPANT
    if rows.control[DEPTH] < 0:
        rows.some[0] = 0
        if rows.parts[part * facts.part + FILLED] < count:
            return DONE
    way, last_own, own = 0, NONE, 0
    if immediate:
        # The new event must be a member. Without a slot before it must be bound in the last of its own.
        kind = rows.control[NEW_CLASS]
        for k in range(layout.class_at[kind], layout.class_at[kind + 1]):
            if layout.class_slots[k] & 1 != 0:
                last_own = layout.class_slots[k] // 2
                own += 1
        if layout.shape[KIND] == SEQUENCE:
            if last_own != count - 1:
                return DONE  # nothing that has arrived is after the new event
            own = 1
        if own == 1:
            way = 1 + last_own
    return _search(rows, facts, layout, machine, frame, part, way, last_own, out, counting)


@inlined
def _selected(rows: Rows, facts: Facts, layout: Layout, part: int) -> bool:
    """After a selection: consume; say whether another may follow at once."""
    more = rows.control[GONE_COUNT] > 0
    consume(rows, facts)
    if rows.some[0] != 0 and layout.shape[SINGLE] != 0:
        rows.parts[part * facts.part + TAKEN] = 1
        clear_partition(rows, facts, part)
        return False
    return more


@inlined
def _work(
    rows: Rows,
    facts: Facts,
    layout: Layout,
    machine: joint.Facts,
    frame: Int64s,
    out: Int64s,
    counting: bool,
) -> int:
    """Do what the event at hand asked for."""
    control, parts, shape = rows.control, rows.parts, layout.shape
    while control[WORK_AT] < control[WORK_COUNT]:
        action, part = rows.work[2 * control[WORK_AT]], rows.work[2 * control[WORK_AT] + 1]
        at = part * facts.part
        again = shape[KIND] != ABSENCE and (action != CLOSE or shape[DEFERRED] != 0) and parts[at + TAKEN] == 0
        while again:
            status = _select(rows, facts, layout, machine, frame, part, action != CLOSE, out, counting)
            if status != DONE:
                return status
            again = _selected(rows, facts, layout, part) and action == CLOSE
        if action == CLOSE:
            if shape[KIND] == ABSENCE and parts[at + TAKEN] == 0:
                if not _write_absence(
                    rows, out, counting, parts[at + KEY], parts[at + START], parts[at + END], parts[at + ORIGIN]
                ):
                    return FULL
            clear_partition(rows, facts, part)
            forget(rows, facts, part)
        elif shape[KIND] == ANY:
            clear_partition(rows, facts, part)
        elif shape[KIND] == SEQUENCE:
            # What completes a sequence at once never does so again.
            clear_slot(rows, facts, part, len(facts.slots) // PARTICIPANT - 1)
        control[WORK_AT] += 1
    return DONE


@inlined
def _write_absence(rows: Rows, out: Int64s, counting: bool, key: int, start: int, end: int, origin: int) -> bool:
    """Write out a partition without a candidate, if there is room."""
    at = ABSENT * rows.control[FOUND]
    if not counting:
        if at + ABSENT > len(out):
            return False
        out[at], out[at + 1], out[at + 2], out[at + 3] = key, start, end, origin
    rows.control[FOUND] += 1
    return True


@inlined
def _sweep_windows(rows: Rows, facts: Facts, layout: Layout, last: int, out: Int64s, counting: bool) -> int:
    """Close the windows up to a number, of all keys, those without events too."""
    keys, parts = rows.keys, rows.parts
    length, step = layout.shape[LENGTH], layout.shape[STEP]
    while rows.control[SWEPT] < rows.control[KEYS]:
        key = rows.control[SWEPT]
        at = key * KEYED
        while keys[at + NEXT_NUMBER] <= last:
            number = keys[at + NEXT_NUMBER]
            part = keys[at + FIRST_PART]
            known = part >= 0 and parts[part * facts.part + NUMBER] == number
            if not known or parts[part * facts.part + TAKEN] == 0:
                start = number * step
                if not _write_absence(rows, out, counting, key, start, start + length, keys[at + KEY_ORIGIN]):
                    return FULL
            if known:
                forget(rows, facts, part)
            keys[at + NEXT_NUMBER] = number + 1
        rows.control[SWEPT] += 1
    rows.control[SWEPT] = 0
    return DONE


@kernel
def advance_situation(
    layout: Layout,
    batch: Batch,
    rows: Rows,
    facts: Facts,
    machine: joint.Facts,
    frame: Int64s,
    out: Int64s,
    counting: bool,
) -> int:
    """Take events until all are done or the answer says what is missing; called again it goes on from there.

    `frame` is a row as `weft.kernels.joint` reads it, with `bound` as its slots. With `counting` nothing is written.
    """
    lent_layout, lent_batch, lent_rows, lent_facts, lent_machine = layout, batch, rows, facts, machine
    layout, batch, rows = borrow_layout(lent_layout), borrow_batch(lent_batch), borrow_rows(lent_rows)
    facts, machine = borrow_facts(lent_facts), joint.borrow(lent_machine)
    control, shape = rows.control, layout.shape
    while True:
        status = _work(rows, facts, layout, machine, frame, out, counting)
        if status != DONE:
            return status
        at = control[ARRIVED]
        if at == len(batch.classes):
            return DONE
        if shape[COUNTS_EMPTY] != 0:
            finish = batch.kinds[at] & FINISH != 0
            last = (batch.ends[at] - (0 if finish else shape[LENGTH])) // shape[STEP]
            if control[SWEPT] > 0 or last != control[LIMIT] or finish:
                status = _sweep_windows(rows, facts, layout, last, out, counting)
                if status != DONE:
                    return status
                control[LIMIT] = last
        if not room_for(rows, facts, layout, batch, at):
            return GROW
        if shape[OVERLAPS] != 0 and shape[DEFERRED] == 0:
            # At another event no set can be the same.
            control[STAMP] += 1
            control[SEEN_COUNT] = 0
        arrive(rows, facts, layout, batch, at)
