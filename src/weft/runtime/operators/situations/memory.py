"""Memory block of one situation: an array that begins with its tables and grows with its state."""

from __future__ import annotations

import numpy as np

from weft.algebra.contexts import TOLD_SINGLY
from weft.kernels.situations import participants as p
from weft.kernels.situations import partitions
from weft.kernels.situations.found_sets import place_seen
from weft.kernels.situations.partitions import KEYED, NEXT_NUMBER
from weft.runtime.data.events import Int64s
from weft.runtime.operators.situations.tables import SituationTables

LEAST = 1 << 12  # numbers
LEAST_TABLE = 1 << 6
LEAST_SEEN = 1 << 6


class Memory:
    """All numbers that the kernel stores for a situation (see `weft.kernels.situations.participants`)."""

    def __init__(self, tables: SituationTables, width: int) -> None:
        self.m: Int64s = np.zeros(LEAST, np.int64)
        self.m[p.TOP], self.m[p.DEPTH], self.m[p.NEW], self.m[p.LIMIT] = p.HEADER, -1, -1, p.NEVER
        self.m[p.LAST_NUMBER] = p.NEVER
        for place, number in {**tables.numbers, p.WIDTH: width}.items():
            self.m[place] = number
        self.place_blocks(tables.blocks)
        self.m[p.TABLE], self.m[p.TABLE_SIZE] = self._block(LEAST_TABLE), LEAST_TABLE
        self.m[p.KEYS] = self._block(0)
        if tables.forget is not None:
            self.m[p.KNOWN] = self._block(1)
            self.m[int(self.m[p.KNOWN])] = tables.forget
        if tables.numbers[p.COUNTS_EMPTY]:
            self._place_runs()
        self.reserve_keys(1)
        if tables.numbers[p.OVERLAPS]:
            self.grow_seen(0)

    def place_blocks(self, blocks: dict[int, list[int]]) -> None:
        """Write tables into the memory, in place if they fit; the header has their addresses."""
        for place, numbers in blocks.items():
            if not self.m[place] or len(numbers) > self._size(place):
                self.m[place] = self._block(len(numbers) if not self.m[place] else 2 * len(numbers))
            block = int(self.m[place])
            self.m[block : block + len(numbers)] = numbers

    # -- space ----------------------------------------------------------------------------------

    def grow(self) -> None:
        """Enlarge the memory as the kernel requested."""
        self._room(int(self.m[p.NEEDED]))
        size, wanted = int(self.m[p.TABLE_SIZE]), int(self.m[p.CHAINS] + self.m[p.NEEDED_CHAINS])
        if wanted > size:
            larger = 1 << (2 * wanted).bit_length()
            block = self._block(larger)
            p.rehash(self.m, block, larger)

    def reserve_keys(self, keys: int) -> None:
        """Reserve space for `keys` keys."""
        have = self._size(p.KEYS)
        if keys * KEYED > have:
            room = max(keys * KEYED, 2 * have)
            old, block = int(self.m[p.KEYS]), self._block(room)
            self.m[block : block + have] = self.m[old : old + have]
            self.m[block + have + NEXT_NUMBER : block + room : KEYED] = p.NEVER
            self.m[p.KEYS] = block
            for place in self._by_key():
                kept, block = self._numbers(place), self._block(1 + room // KEYED)
                self.m[block : block + len(kept)] = kept
                self.m[place] = block

    def keys(self) -> Int64s:
        """Return the keys as rows of a table."""
        begin = int(self.m[p.KEYS])
        return self.m[begin : begin + self._size(p.KEYS)].reshape(-1, KEYED)

    def _by_key(self) -> list[int]:
        """Return the header fields of the blocks with one number per key, after a number for all."""
        return {partitions.FORGETS: [p.KNOWN, p.RUNS], 1: [p.RUNS]}.get(int(self.m[p.COUNTS_EMPTY]), [])

    def _numbers(self, place: int) -> Int64s:
        begin = int(self.m[place])
        return self.m[begin : begin + self._size(place)].copy()

    def _place_runs(self) -> None:
        """Allocate where runs of windows without candidates begin; current runs begin with the next window."""
        self.place_blocks({p.RUNS: [TOLD_SINGLY, *self.keys()[:, NEXT_NUMBER].tolist()]})

    def known_until(self) -> Int64s:
        """Return for each key the time up to which windows without events may begin and count."""
        return self._numbers(p.KNOWN)[1:]

    def has_unreported(self) -> bool:
        """Whether closed windows of a long run of empty windows are not emitted yet."""
        if not self.m[p.COUNTS_EMPTY]:
            return False
        closed: Int64s = self.m[p.LIMIT : p.LIMIT + 1]
        if self.m[p.COUNTS_EMPTY] == partitions.FORGETS:
            closed = np.minimum(closed, self.known_until() // self.m[p.STEP])
        return bool((self.keys()[:, NEXT_NUMBER] <= closed).any())

    def grow_seen(self, oldest: int) -> None:
        """Enlarge the table of selected sets, and remove sets with an event before a place."""
        begin = int(self.m[p.SEEN])
        table = self.m[begin : begin + 3 * int(self.m[p.SEEN_SIZE])].reshape(-1, 3)
        deferred = self.m[p.DEFERRED] != 0
        used = table[(table[:, 2] > oldest) if deferred else (table[:, 2] == self.m[p.STAMP]) & (table[:, 2] != 0)]
        size = max(LEAST_SEEN, 1 << (4 * len(used)).bit_length())
        fresh = np.zeros(3 * size, np.int64)
        place_seen(np.ascontiguousarray(used).ravel(), fresh)
        if not begin or 3 * size > self._size(p.SEEN):
            self.m[p.SEEN] = self._block(3 * size)
        begin = int(self.m[p.SEEN])
        self.m[begin : begin + 3 * size] = fresh
        self.m[p.SEEN_SIZE], self.m[p.SEEN_COUNT] = size, len(used)

    def _room(self, needed: int) -> None:
        top = int(self.m[p.TOP])
        if top + needed > len(self.m):
            larger = np.zeros(max(2 * len(self.m), top + needed), np.int64)
            larger[:top] = self.m[:top]
            self.m = larger

    def _block(self, size: int) -> int:
        """Allocate a block of zeros, preceded by its size, and return its address."""
        self._room(1 + size)
        begin = int(self.m[p.TOP]) + 1
        self.m[p.TOP] += 1 + size
        self.m[begin - 1] = size
        self.m[begin : begin + size] = 0
        return begin

    def _size(self, place: int) -> int:
        """Return the size of the block whose address is in a header field."""
        return int(self.m[int(self.m[place]) - 1])

    # -- stored events --------------------------------------------------------------------------

    def oldest(self) -> tuple[int, int]:
        """Return the least end and place of an event in an open partition."""
        end, place = partitions.oldest(self.m)
        return int(end), int(place)

    def entries(self) -> Int64s:
        """Return where the entries of events in partitions are, one for each partition and slot."""
        found = np.empty(int(self.m[p.TOP]) // int(self.m[p.ENTRY_SIZE]), np.int64)
        return found[: partitions.find_entries(self.m, found)]

    # -- state ----------------------------------------------------------------------------------

    def used(self) -> Int64s:
        """Return the part of the array in use."""
        return self.m[: int(self.m[p.TOP])]

    def load(self, kept: Int64s) -> None:
        """Restore the saved state."""
        self.m = kept
        if self._by_key() and not self.m[p.RUNS]:  # saved by a version without runs of these windows
            self._place_runs()
