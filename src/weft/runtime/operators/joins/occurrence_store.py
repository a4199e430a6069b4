"""Row store of a graph: rows of occurrences, and the events they consist of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.kernels.events import stored
from weft.kernels.joins import chain, channels, joining, joint, occurrences
from weft.runtime.data.buffers import fixed, with_room
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.machine.code import Code
from weft.runtime.operators.event_store import EventStore
from weft.runtime.store.pages import Pages


class OccurrenceStore(EventStore):
    """Rows and events in flat arrays with monotone ids: a row's parts, and older events, have smaller ids."""

    def __init__(self, columns: Sequence[str], code: Code) -> None:
        super().__init__(columns, code)
        self.rows: Int64s = np.empty(64 * occurrences.ROW, np.int64)
        self.slots: Int64s = np.empty(64, np.int64)
        self.control = np.zeros(2, np.int64)

    @property
    def row_count(self) -> int:
        """The number of live rows."""
        return int(self.control[joining.ROWS])

    def add_slots(self, slots: int) -> None:
        """Add slots to the rows, which are empty in existing ones."""
        count, used = self.row_count, int(self.control[joining.SLOTS_USED])
        begins = self.rows[occurrences.SLOTS : count * occurrences.ROW : occurrences.ROW]
        owners = np.repeat(np.arange(count), np.diff(begins, append=used))
        held = self.slots[:used]
        self.slots = np.full(used + slots * count, -1, np.int64)
        self.slots[np.arange(used) + slots * owners] = held
        begins += slots * np.arange(count)
        self.control[joining.SLOTS_USED] = len(self.slots)

    def facts(self) -> joint.Facts:
        """Return the arrays that conditions read."""
        return joint.Facts(self.values, self.width, self.events, self.machine_notes, self.machine())

    def memory(self) -> tuple[joint.Facts, occurrences.Memory]:
        """Return the arrays that join kernels work on."""
        return self.facts(), occurrences.Memory(self.rows, self.slots, self.control, self.events)

    # -- rows -----------------------------------------------------------------------------------

    def times(self, rows: Int64s, field: int) -> Int64s:
        """Return one field of rows."""
        found: Int64s = self.rows[rows * occurrences.ROW + field]
        return found

    def before(self, rows: Int64s, time: int) -> Int64s:
        """Return the rows, which are sorted by end, that end before a time."""
        return rows[: joining.count_before(rows, time, self.rows)]

    def add_sources(self, events: Int64s, slots: int) -> Int64s:
        """Add a row for each of these events, with the event in all slots, and return the new rows."""
        first = self.row_count
        self._reserve(len(events), slots)
        joining.add_sources(events, slots, self.rows, self.slots, self.control, self.events)
        return np.arange(first, first + len(events))

    def add_matches(self, found: Int64s, spec: Int64s) -> Int64s:
        """Add a row for each sequence of events in `found`, and rows for its prefixes; return the former."""
        first, (count, size) = self.row_count, found.shape
        made = 2 * size - 1
        self._reserve(made * count, len(spec) // 3)
        chain.write_matches(found.ravel(), size - 1, spec, self.rows, self.slots, self.control, self.events)
        return np.arange(first + made - 1, first + made * count, made)

    def join(self, lefts: Int64s, rights: Int64s, kind: int, shift: int, spec: Int64s) -> Int64s:
        """Add a row for each pair of rows, where -1 means that a side is empty, and return the new rows."""
        first = self.row_count
        self._reserve(len(lefts), len(spec) // 3)
        joining.join_all(lefts, rights, kind, shift, spec, self.rows, self.slots, self.control, self.events)
        return np.arange(first, first + len(lefts))

    def branches(self, lefts: Int64s, rights: Int64s, shift: int, left_spec: Int64s, right_spec: Int64s) -> Int64s:
        """Merge two lists of rows by end, add a row for each, and return the new rows."""
        first, count = self.row_count, len(lefts) + len(rights)
        self._reserve(count, max(len(left_spec), len(right_spec)) // 3)
        specs = left_spec, right_spec
        joining.join_branches(lefts, rights, shift, *specs, self.rows, self.slots, self.control, self.events)
        return np.arange(first, first + count)

    def append_rows(self, rows: Int64s, numbers: Int64s, is_root: npt.NDArray[np.bool_], size: int) -> int:
        """Append rows of occurrences with `size` empty slots each, and return the first new id.

        `numbers` are the numbers of their events in this store.
        """
        first, used = self.row_count, int(self.control[joining.SLOTS_USED])
        self._reserve(len(is_root), size)
        given = fixed(rows), fixed(numbers), is_root, size
        self.control[joining.SLOTS_USED] = end = channels.import_rows(*given, self.rows, first, used)
        self.control[joining.ROWS] += len(is_root)
        self.slots[used:end] = -1
        return first

    def satisfied(self, code: Int64s, lefts: Int64s, rights: Int64s) -> npt.NDArray[np.bool_]:
        """Return for which pairs the conditions hold."""
        if not len(code):
            return np.ones(len(lefts), bool)
        found: npt.NDArray[np.bool_] = joining.satisfied(code, self.facts(), self.rows, self.slots, lefts, rights)
        return found

    def _reserve(self, rows: int, slots: int) -> None:
        self.rows = with_room(self.rows, self.row_count * occurrences.ROW, rows * occurrences.ROW)
        self.slots = with_room(self.slots, int(self.control[joining.SLOTS_USED]), rows * slots)

    # -- events ---------------------------------------------------------------------------------

    def find_or_add(self, batch: EventBatch) -> Int64s:
        """Return the numbers of events, found by position; events that are not stored are added."""
        known = self.events[: self.event_count * stored.EVENT : stored.EVENT]
        order = np.argsort(known, kind="stable")
        places = np.searchsorted(known[order], batch.positions)
        numbers = np.append(order, -1)[places]
        is_known = (places < len(known)) & (np.append(known[order], 0)[places] == batch.positions)
        new = np.flatnonzero(~is_known)
        numbers[new] = self.add(batch, new) + np.arange(len(new))
        found: Int64s = numbers
        return found

    def oldest(self, *, in_order: bool) -> int | None:
        """Return the first position of the stored events, or None; `in_order`: they were added by position."""
        known = self.events[: self.event_count * stored.EVENT : stored.EVENT]
        return None if not len(known) else int(known[0] if in_order else known.min())

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """See `EventStore.arrays`."""
        return {
            "rows": self.rows[: self.row_count * occurrences.ROW],
            "slots": self.slots[: self.control[joining.SLOTS_USED]],
            **super().arrays(),
        }

    def load(self, pages: Pages, under: str = "") -> None:
        """See `EventStore.load`."""
        super().load(pages, under)
        self.rows, self.slots = pages.numbers(f"{under}rows"), pages.numbers(f"{under}slots")
        self.control[[joining.ROWS, joining.SLOTS_USED]] = len(self.rows) // occurrences.ROW, len(self.slots)
