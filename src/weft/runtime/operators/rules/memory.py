"""The store of rules: events by type, lists of events by key, and marks of consumed events; old events expire."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algebra.predicates import Value
from weft.kernels.rules import memory as rule_memory
from weft.kernels.rules import tables as t
from weft.kernels.rules.arrays import new_room
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.events import Int64s
from weft.runtime.machine.values import Tagged, only_used, tag
from weft.runtime.operators.rules.layout import Layout
from weft.runtime.store.size import older_half

LEAST_EVENTS = 16  # least capacity of a type


class Memory:
    """The arrays of the store, and the control array of the kernel."""

    def __init__(self) -> None:
        self.control = np.zeros(t.CONTROLS, np.int64)
        self.room = new_room()
        self.control[t.MODE] = t.FETCH
        self.control[t.TIME] = -(1 << 61)
        self.texts = TextTable()
        self.width = 0
        self.types: Int64s = np.zeros(0, np.int64)
        self.columns = self.chains = self.chain_columns = np.zeros(0, np.int64)
        self.times, self.starts, self.origins, self.values = (np.zeros(0, np.int64) for _ in range(4))
        self.heads: Int64s = np.zeros(64 * t.HEAD, np.int64)
        self.entries: Int64s = np.zeros(256 * t.ENTRY, np.int64)
        self.positions: Int64s = np.zeros(256, np.int64)
        self.marks: Int64s = np.zeros(0, np.int64)
        self.mark_words = 0
        self.pending: Int64s = np.zeros(64, np.int64)
        self.queue: Int64s = np.zeros(0, np.int64)
        self.floors: dict[int, dict[int, int]] = {}  # for rules added later: by type, the first event that they read

    def tag(self, value: Value) -> Tagged:
        """Encode a constant as kind and word."""
        return tag(value, self.texts)

    @property
    def table(self) -> Int64s:
        """The table of types, a row for each."""
        return self.types.reshape(-1, t.KIND_OF_EVENT)

    def lay(self, layout: Layout, reaches: Sequence[int]) -> None:
        """Add new types, columns and chains; stored events keep their values."""
        old = self.table
        types = np.zeros((len(layout.types), t.KIND_OF_EVENT), np.int64)
        types[: len(old)] = old
        self.types = types.ravel()
        if len(old) < len(types) or (layout.width, layout.mark_words) != (self.width, self.mark_words):
            self._move(np.zeros(len(types), np.int64), layout.width, layout.mark_words)
        self.columns, self.chains, self.chain_columns = layout.lay(self.types)
        self.table[:, t.REACH] = reaches

    def store(self) -> t.Store:
        """Return all arrays in the form of the kernel."""
        pool, offsets = self.texts.buffers
        return t.Store(
            self.types,
            self.columns,
            self.chains,
            self.chain_columns,
            self.times,
            self.starts,
            self.origins,
            self.values,
            self.heads,
            self.entries,
            self.positions,
            self.marks,
            pool,
            offsets,
            self.width,
            self.mark_words,
        )

    # -- events -----------------------------------------------------------------------------------

    def add_positions(self, positions: Int64s) -> int:
        """Store the positions of a defined event, and return their offset."""
        at, count = int(self.control[t.POSITIONS]), len(positions)
        if at + count + 1 > len(self.positions):
            self.positions = np.concatenate([self.positions, np.zeros(len(self.positions) + count + 1, np.int64)])
        self.positions[at] = count
        self.positions[at + 1 : at + 1 + count] = positions
        self.control[t.POSITIONS] = at + 1 + count
        return at

    @property
    def event_count(self) -> int:
        """The number of stored events."""
        return int(self.table[:, t.HELD].sum())

    def oldest(self) -> int | None:
        """Return the first position of a stored event, or None."""
        found: list[int] = []
        for begin, count in self.table[:, [t.BASE, t.HELD]].tolist():
            origins = self.origins[begin : begin + count]
            given, defined = origins[origins >= 0], -1 - origins[origins < 0]
            found += (int(positions.min()) for positions in (given, self.positions[defined + 1]) if len(positions))
        return min(found, default=None)

    def drop_oldest(self, limit: int, types: Sequence[int]) -> dict[int, int]:
        """Evict the older half of the events of types that take more than half of `limit` bytes; return how many."""
        places = {type_: self.table[type_, [t.BASE, t.HELD]].tolist() for type_ in types}
        times = {type_: self.times[begin : begin + held] for type_, (begin, held) in places.items()}
        words = len(t.Store._fields[4:7]) + self.width + self.mark_words
        known = np.concatenate([np.empty(0, np.int64), *times.values()])
        evicted = known[older_half(known, words * self.times.itemsize, limit)]
        if not len(evicted):
            return {}
        floor = int(evicted.max()) + 1
        gone = np.zeros(len(self.table), np.int64)
        for type_, own in times.items():
            gone[type_] = np.searchsorted(own, floor)
        self._move(np.zeros(len(self.table), np.int64), self.width, self.mark_words, gone)
        self.rebuild_lists()  # lists may refer to expired events, but not to evicted ones
        return {type_: int(gone[type_]) for type_ in types}

    def rebuild_lists(self) -> None:
        """Rebuild all lists by key from the events."""
        self.control[[t.ENTRIES, t.LISTS]] = 0
        self.heads[:] = 0
        while not rule_memory.list_all(self.store(), self.control, self.room):
            self.heads = np.zeros(2 * len(self.heads), np.int64)
            self.entries = np.zeros(2 * len(self.entries), np.int64)
            self.control[[t.ENTRIES, t.LISTS]] = 0

    def renumber_texts(self) -> None:
        """Remove the texts that no event in reach has; afterwards constants must be tagged and lists rebuilt."""
        self._move(np.zeros(len(self.table), np.int64), self.width, self.mark_words)
        self.texts = only_used(self.texts, self.values)

    # -- space ----------------------------------------------------------------------------------

    def reserve(self, counts: Int64s) -> None:
        """Reserve space for `counts` more events of each type."""
        if (self.table[:, t.HELD] + counts > self.table[:, t.ROOM]).any():
            self._move(counts, self.width, self.mark_words)

    def grow(self, reason: int) -> None:
        """Enlarge the array that the kernel stopped for."""
        wanted, self.control[t.WANTED] = int(self.control[t.WANTED]), 0
        if reason == t.STORE_FULL:
            counts = np.zeros(len(self.table), np.int64)
            counts[wanted] = max(LEAST_EVENTS, int(self.table[wanted, t.HELD]))
            self._move(counts, self.width, self.mark_words)
        elif reason == t.LISTS_FULL:
            self._move_lists()
        elif reason == t.PENDING_FULL:
            self.pending = np.concatenate([self.pending, np.zeros(len(self.pending) + 2 * wanted, np.int64)])
        elif reason == t.QUEUE_FULL:
            self.queue = np.concatenate(
                [self.queue, np.zeros(len(self.queue) + 16 * (t.QUEUED + self.width), np.int64)]
            )
        elif reason == t.POSITIONS_FULL:
            self.positions = np.concatenate([self.positions, np.zeros(len(self.positions) + wanted, np.int64)])

    def _move(self, counts: Int64s, width: int, mark_words: int, gone: Int64s | None = None) -> None:
        """Copy all reachable events except the oldest `gone` to new arrays, with space for `counts` more."""
        table = self.table
        dead = np.zeros(len(table), np.int64)
        rule_memory.count_dead(self.types, self.times, int(self.control[t.TIME]), dead)
        if gone is not None:
            dead = np.maximum(dead, gone)
        live = table[:, t.HELD] - dead
        rooms = np.maximum(np.where(live + counts > 0, 2 * (live + counts), 0), LEAST_EVENTS)
        bases = np.cumsum(rooms) - rooms
        total = int(rooms.sum())
        old = self.store()
        self.times, self.starts, self.origins = (np.empty(total, np.int64) for _ in range(3))
        self.values = np.zeros(total * width, np.int64)
        self.marks = np.zeros(total * mark_words, np.int64)
        self.positions = np.empty(len(self.positions), np.int64)
        widths = np.array([self.width, width, self.mark_words, mark_words], np.int64)
        used = rule_memory.move_events(old, self.store(), widths, dead, bases, rooms)
        queued = t.QUEUED + self.width
        used = rule_memory.move_queued(self.queue, self.control, queued, old.positions, self.positions, used)
        self.control[t.POSITIONS] = used
        self.width, self.mark_words = width, mark_words

    def _move_lists(self) -> None:
        lists, total = rule_memory.count_listed(self.heads, self.entries, self.types)
        slots = 64
        while slots < 4 * (lists + 1):
            slots *= 2
        heads = np.zeros(slots * t.HEAD, np.int64)
        entries = np.empty((4 * (total + lists) + 1024) * t.ENTRY, np.int64)
        self.control[t.ENTRIES] = rule_memory.move_lists(self.heads, self.entries, heads, entries)
        self.control[t.LISTS] = lists
        self.heads, self.entries = heads, entries
