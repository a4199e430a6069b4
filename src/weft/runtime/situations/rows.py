"""The arrays of one situation's state: participants, partitions, chains, timers; how they grow, and as pages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.kernels import participants as p
from weft.kernels.participants import Rows
from weft.kernels.partitions import KEYED, LAST_PART, NEXT_NUMBER
from weft.kernels.select import place_seen
from weft.runtime.events import Int64s
from weft.runtime.situations.tables import SituationTables

LEAST_ENTRIES = 1 << 10
LEAST_PARTS = 1 << 4
LEAST_SEEN = 1 << 6


class StateRows:
    """The state of a situation, with room for more."""

    def __init__(self, tables: SituationTables) -> None:
        self._tables = tables
        self._entry, self._part, count = tables.entry_size, tables.part_size, tables.count
        control = np.zeros(p.CONTROLS, np.int64)
        control[[p.DEPTH, p.FREE_ENTRY, p.FREE_PART, p.FREE_CHAIN, p.NEW]] = p.NONE
        control[p.LIMIT] = p.NEVER
        none = np.empty(0, np.int64)
        scratch = (np.zeros(count, np.int64) for _ in range(4))
        self.rows = Rows(control, none, none, none, none, none, none, none, none, none, *scratch)
        self._size_entries(LEAST_ENTRIES)
        self._size_parts(LEAST_PARTS)
        self.reserve_keys(1)
        self.rows = self.rows._replace(seen=np.zeros(3 * LEAST_SEEN, np.int64))

    @property
    def control(self) -> Int64s:
        """The control array."""
        return self.rows.control

    # -- room -----------------------------------------------------------------------------------

    def grow(self) -> None:
        """Make the room that the kernel asked for."""
        control = self.control
        entries, parts = len(self.rows.entries) // self._entry, len(self.rows.parts) // self._part
        needed = int(control[p.ENTRIES_USED] + control[p.NEED_ENTRIES])
        if needed > entries:
            self._size_entries(max(2 * entries, needed))
        needed = int(control[p.PARTS_USED] + control[p.NEED_PARTS])
        if needed > parts:
            self._size_parts(max(2 * parts, needed))

    def reserve_keys(self, keys: int) -> None:
        """Make room for that many keys."""
        have = len(self.rows.keys) // KEYED
        if keys > have:
            more = np.zeros((max(keys, 2 * have) - have, KEYED), np.int64)
            more[:, : LAST_PART + 1] = p.NONE
            more[:, NEXT_NUMBER] = p.NEVER
            self.rows = self.rows._replace(keys=np.concatenate([self.rows.keys, more.ravel()]))

    def grow_seen(self, oldest: int | None) -> None:
        """Make room for sets that were selected, and forget those with an event before a place."""
        table = self.rows.seen.reshape(-1, 3)
        used = table[table[:, 2] == self.control[p.STAMP]] if oldest is None else table[table[:, 2] > oldest]
        size = max(LEAST_SEEN, 1 << (4 * len(used)).bit_length())
        fresh = np.zeros((size, 3), np.int64)
        place_seen(used.ravel(), fresh.ravel())
        self.control[p.SEEN_COUNT] = len(used)
        self.rows = self.rows._replace(seen=fresh.ravel())

    def _size_entries(self, size: int) -> None:
        rows = self.rows
        chains = _sized(rows.chains, max(1, size * self._tables.most_indexes) * p.CHAIN)
        table = np.full(1 << max(4, (size * self._tables.most_indexes).bit_length()), p.NONE, np.int64)
        p.place_chains(chains, int(self.control[p.CHAIN_TOP]), table)
        self.rows = rows._replace(
            entries=_sized(rows.entries, size * self._entry), gone=_sized(rows.gone, size), chains=chains, table=table
        )

    def _size_parts(self, size: int) -> None:
        rows = self.rows
        self.rows = rows._replace(
            parts=_sized(rows.parts, size * self._part),
            timers=_sized(rows.timers, 2 * size),
            work=_sized(rows.work, 4 * size + 4),
        )

    # -- what there is --------------------------------------------------------------------------

    def open_parts(self) -> Int64s:
        """The open partitions that may still give sets, as rows of a table."""
        parts = self.rows.parts[: int(self.control[p.PART_TOP]) * self._part].reshape(-1, self._part)
        found: Int64s = parts[(parts[:, p.OPEN] != 0) & (parts[:, p.TAKEN] == 0)]
        return found

    def entries(self) -> Int64s:
        """All entries, used or not, as rows of a table that can be written to."""
        return self.rows.entries[: int(self.control[p.ENTRY_TOP]) * self._entry].reshape(-1, self._entry)

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """All state between batches."""
        rows, control = self.rows, self.control
        seen = rows.seen.reshape(-1, 3)
        return {
            "control": control,
            "entries": rows.entries[: int(control[p.ENTRY_TOP]) * self._entry],
            "parts": rows.parts[: int(control[p.PART_TOP]) * self._part],
            "chains": rows.chains[: int(control[p.CHAIN_TOP]) * p.CHAIN],
            "keys": rows.keys,
            "timers": rows.timers[: 2 * int(control[p.TIMERS])],
            "seen": seen[seen[:, 2] != 0].ravel(),
        }

    def load(self, arrays: Mapping[str, Int64s]) -> None:
        """Go on from arrays."""
        self.rows = self.rows._replace(
            control=arrays["control"],
            entries=arrays["entries"],
            parts=arrays["parts"],
            chains=arrays["chains"],
            keys=arrays["keys"],
            timers=arrays["timers"],
            seen=arrays["seen"],
        )
        self._size_entries(max(LEAST_ENTRIES, len(self.rows.entries) // self._entry))
        self._size_parts(max(LEAST_PARTS, len(self.rows.parts) // self._part))
        self.grow_seen(0)


def _sized(array: Int64s, size: int) -> Int64s:
    """The array with room for more."""
    found = np.zeros(size, np.int64)
    found[: len(array)] = array
    return found
