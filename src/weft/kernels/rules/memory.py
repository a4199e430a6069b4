"""Release and growth of the store: events, lists of events, marks of consumed events."""

from __future__ import annotations

from weft.kernels.jit import bare_kernel
from weft.kernels.machine.tagged import VALUE
from weft.kernels.memory.room import lend
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.lists import place_in_list
from weft.kernels.rules.scan import first_from


@bare_kernel
def count_dead(types: t.Int64s, times: t.Int64s, now: int, dead: t.Int64s) -> int:
    """Count for each type the events that are out of reach, into `dead`."""
    for type_ in range(len(dead)):
        of = type_ * t.KIND_OF_EVENT
        begin = types[of + t.BASE]
        limit = now - types[of + t.REACH]
        dead[type_] = first_from(times, 1, begin, begin + types[of + t.HELD], limit) - begin
        if types[of + t.LATEST] != 0:
            earlier = first_from(times, 1, begin, begin + types[of + t.HELD], now) - begin
            dead[type_] = max(dead[type_], earlier - 1)
    return 0


@bare_kernel
def move_events(
    old: t.Store,
    new: t.Store,
    widths: t.Int64s,
    dead: t.Int64s,
    bases: t.Int64s,
    rooms: t.Int64s,
) -> int:
    """Copy the events in reach, type by type, with positions of defined ones; return the length of these.

    `widths` are those of values and marks, before and after. Between batches there are no tentative marks, and events
    are
    not moved during the execution of a rule.
    """
    width, new_width, marks, new_marks = widths[0], widths[1], widths[2] // 2, widths[3] // 2
    used = 0
    for type_ in range(len(dead)):
        of = type_ * t.KIND_OF_EVENT
        source = old.types[of + t.BASE] + dead[type_]
        count = old.types[of + t.HELD] - dead[type_]
        columns = VALUE * (old.types[of + t.COLUMNS_END] - old.types[of + t.COLUMNS_AT])
        target = bases[type_]
        for k in range(count):
            new.times[target + k] = old.times[source + k]
            new.starts[target + k] = old.starts[source + k]
            origin = old.origins[source + k]
            if origin < 0:
                at = -1 - origin
                origin = -1 - used
                for p in range(old.positions[at] + 1):
                    new.positions[used + p] = old.positions[at + p]
                used += old.positions[at] + 1
            new.origins[target + k] = origin
            for p in range(columns):
                new.values[(target + k) * new_width + p] = old.values[(source + k) * width + p]
            for p in range(columns, new_width):
                new.values[(target + k) * new_width + p] = 0
            for p in range(new_marks):
                new.marks[(target + k) * 2 * new_marks + p] = 0
                new.marks[(target + k) * 2 * new_marks + new_marks + p] = 0
            for p in range(marks):
                new.marks[(target + k) * 2 * new_marks + p] = old.marks[(source + k) * 2 * marks + p]
        old.types[of + t.GONE] += dead[type_]
        old.types[of + t.HELD] = count
        old.types[of + t.BASE], old.types[of + t.ROOM] = target, rooms[type_]
    return used


@bare_kernel
def move_queued(queue: t.Int64s, control: t.Int64s, queued: int, old: t.Int64s, new: t.Int64s, used: int) -> int:
    """Copy the positions of queued defined events, and return the new length."""
    for item in range(control[t.QUEUE_AT], control[t.QUEUE_END]):
        at = queue[item * queued + t.Q_POSITIONS]
        queue[item * queued + t.Q_POSITIONS] = used
        for p in range(old[at] + 1):
            new[used + p] = old[at + p]
        used += old[at] + 1
    return used


@bare_kernel
def count_listed(heads: t.Int64s, entries: t.Int64s, types: t.Int64s) -> tuple[int, int]:
    """Count the lists with events in reach, and these events; other events are removed from the lists."""
    lists = total = 0
    for slot in range(len(heads) // t.HEAD):
        at = slot * t.HEAD
        if heads[at + t.WORD] == 0:
            continue
        gone = types[heads[at + t.OF_TYPE] * t.KIND_OF_EVENT + t.GONE]
        begin, length = heads[at + t.BEGIN], heads[at + t.LENGTH]
        dead = 0
        while dead < length and entries[(begin + dead) * t.ENTRY + 1] < gone:
            dead += 1
        heads[at + t.BEGIN], heads[at + t.LENGTH] = begin + dead, length - dead
        heads[at + t.CAPACITY] -= dead
        if dead < length:
            lists += 1
            total += length - dead
    return lists, total


@bare_kernel
def move_lists(heads: t.Int64s, entries: t.Int64s, new_heads: t.Int64s, new_entries: t.Int64s) -> int:
    """Copy the non-empty lists with space for half as many more events; return the number of entries."""
    mask = len(new_heads) // t.HEAD - 1
    used = 0
    for slot in range(len(heads) // t.HEAD):
        at = slot * t.HEAD
        length = heads[at + t.LENGTH]
        if heads[at + t.WORD] == 0 or length == 0:
            continue
        place = (heads[at + t.WORD] >> 1) & mask
        while new_heads[place * t.HEAD + t.WORD] != 0:
            place = (place + 1) & mask
        for field in range(t.HEAD):
            new_heads[place * t.HEAD + field] = heads[at + field]
        for k in range(length * t.ENTRY):
            new_entries[used * t.ENTRY + k] = entries[heads[at + t.BEGIN] * t.ENTRY + k]
        new_heads[place * t.HEAD + t.BEGIN] = used
        new_heads[place * t.HEAD + t.CAPACITY] = length + length // 2 + 1
        used += length + length // 2 + 1
    return used


@bare_kernel
def list_all(store: t.Store, control: t.Int64s, room: t.Int64s) -> bool:
    """Add all events to their lists, which are empty; return False if there is no space."""
    lend(room, r.STORE, store)
    lend(room, r.CONTROL, (control,))
    for type_ in range(len(store.types) // t.KIND_OF_EVENT):
        of = type_ * t.KIND_OF_EVENT
        for chain in range(store.types[of + t.CHAINS_AT], store.types[of + t.CHAINS_END]):
            for k in range(store.types[of + t.HELD]):
                event, number = store.types[of + t.BASE] + k, store.types[of + t.GONE] + k
                if not place_in_list(room, chain, event, number, type_):
                    return False
    return True
