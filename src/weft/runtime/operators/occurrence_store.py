"""Row store of a graph: rows of occurrences, the events they consist of, and the values that conditions read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import Expression
from weft.kernels.joins import chain, channels, choosing, joining, joint, occurrences
from weft.kernels.machine import tagged
from weft.kernels.machine.machine import NOTES, Machine
from weft.kernels.memory.room import NOTE
from weft.runtime.classify.functions import text_test
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.machine.code import Code
from weft.runtime.machine.values import only_used, tag, tag_events

_MANY_TEXTS = 1 << 12  # with fewer, a search for unused ones does not pay


class Columns:
    """Attributes that are stored of events, by number."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)
        self.values: dict[str, Expression] = {}  # by name, of computed attributes

    def number(self, name: str) -> int:
        """Return the number of an attribute; a new one is appended."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def number_of_value(self, value: Expression) -> int:
        """Return the number of a value that is computed from an event's attributes when the event is added."""
        name = f"\0{value!r}"
        self.values[name] = value
        return self.number(name)


class OccurrenceStore:
    """Rows and events in flat arrays with monotone ids: a row's parts, and older events, have smaller ids."""

    def __init__(self, columns: Sequence[str], code: Code) -> None:
        self.columns = tuple(columns)
        self.rows: Int64s = np.empty(64 * occurrences.ROW, np.int64)
        self.slots: Int64s = np.empty(64, np.int64)
        self.control = np.zeros(2, np.int64)
        self.event_count = 0
        self.events: Int64s = np.empty(64 * occurrences.EVENT, np.int64)
        self.values: Int64s = np.empty(64 * self.width, np.int64)
        self.texts = TextTable()
        self._texts_bound = 0
        self._machine_notes = np.zeros((NOTES + 1) * NOTE, np.int64)
        self._code: Int64s = np.empty(0, np.int64)
        self.read(code)

    def read(self, code: Code) -> None:
        """Allocate the scratch arrays of the conditions; call it again when conditions were added."""
        self._source = code
        self._patterns = [text_test(pattern) for pattern in code.patterns]
        self._found_by_regex = np.empty(
            (0, len(self._patterns)), bool
        )  # by text and regular expression, as far as tested
        self._stack = code.stack()
        self._chosen = np.zeros(code.slots, np.int64)
        self._results = np.zeros(2 * code.results, np.int64)
        self._lists = np.zeros(3 * code.slots + 16, np.int64)
        self.intern()

    @property
    def width(self) -> int:
        """The number of words that the values of one event take."""
        return 2 * len(self.columns)

    @property
    def row_count(self) -> int:
        """The number of live rows."""
        return int(self.control[joining.ROWS])

    def intern(self) -> None:
        """Build the code of the conditions; call it again when texts have new ids."""
        self._code = self._source.array(lambda value: tag(value, self.texts))

    def restore_texts(self, texts: Sequence[str]) -> None:
        """Restore the texts of a snapshot."""
        self.texts = TextTable(list(texts))
        self._found_by_regex = self._found_by_regex[:0]
        self.intern()

    def drop_texts(self) -> bool:
        """Release unused texts when there are many, and return whether text ids changed."""
        if len(self.texts) < max(_MANY_TEXTS, self._texts_bound):
            return False
        self.texts = only_used(self.texts, self.values[: self.event_count * self.width])
        self._texts_bound = 2 * len(self.texts)
        self._found_by_regex = self._found_by_regex[:0]
        self.intern()
        return True

    def widen(self, columns: Sequence[str], slots: int) -> None:
        """Add columns of events and slots of rows; both are empty in existing ones."""
        values = self.values[: self.event_count * self.width].reshape(self.event_count, self.width)
        self.columns = tuple(columns)
        wider = np.full((self.event_count, self.width), tagged.MISSING, np.int64)
        wider[:, : values.shape[1]] = values
        self.values = with_room(wider.ravel(), wider.size, 64 * self.width)
        if slots:
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
        machine = Machine(
            self._code,
            self._stack,
            self.values,
            self.width,
            self._chosen,
            1,
            self._results,
            self._lists,
            *self.texts.buffers,
            self._regex_results(),
            len(self._patterns),
        )
        return joint.Facts(self.values, self.width, self.events, self._machine_notes, machine)

    def memory(self) -> tuple[joint.Facts, occurrences.Memory]:
        """Return the arrays that join kernels work on."""
        return self.facts(), occurrences.Memory(self.rows, self.slots, self.control, self.events)

    def _regex_results(self) -> npt.NDArray[np.bool_]:
        """Return for each text and each regular expression whether it matches; each is tested once."""
        if self._patterns and len(self._found_by_regex) < len(self.texts):
            new = self.texts.texts(len(self._found_by_regex))
            found = np.array([[test(text) for test in self._patterns] for text in new], bool)
            self._found_by_regex = np.concatenate([self._found_by_regex, found])
        return self._found_by_regex.reshape(-1)

    # -- rows -----------------------------------------------------------------------------------

    def times(self, rows: Int64s, field: int) -> Int64s:
        """Return one field of rows."""
        found: Int64s = self.rows[rows * occurrences.ROW + field]
        return found

    def before(self, rows: Int64s, time: int) -> Int64s:
        """Return the rows, which are sorted by end, that end before a time."""
        return rows[: joining.count_before(rows, time, self.rows)]

    def event_times(self, events: Int64s, field: int) -> Int64s:
        """Return one field of events; for negative numbers the value is arbitrary."""
        found: Int64s = self.events[np.maximum(events, 0) * occurrences.EVENT + field]
        return found

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
        self.control[joining.SLOTS_USED] = end = channels.put_in(*given, self.rows, first, used)
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

    def expect(self, count: int) -> None:
        """Reserve space for `count` more events."""
        fields = occurrences.EVENT
        self.events = with_room(self.events, self.event_count * fields, count * fields)

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Add some events of a batch, and return the number of the first."""
        first = self.event_count
        self.expect(len(chosen))
        choosing.keep(chosen, fixed(batch.positions), fixed(batch.starts), fixed(batch.ends), first, self.events)
        self.add_values(batch, chosen)
        return first

    def find_or_add(self, batch: EventBatch) -> Int64s:
        """Return the numbers of events, found by position; events that are not stored are added."""
        known = self.events[: self.event_count * occurrences.EVENT : occurrences.EVENT]
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
        known = self.events[: self.event_count * occurrences.EVENT : occurrences.EVENT]
        return None if not len(known) else int(known[0] if in_order else known.min())

    def add_values(self, batch: EventBatch, chosen: Int64s) -> None:
        """Store the values of some events of a batch whose positions and times are already written."""
        first, count, width = self.event_count, len(chosen), self.width
        self.event_count += count
        self.values = with_room(self.values, first * width, count * width)
        every = count == len(batch)
        values = self.values[first * width : (first + count) * width]
        tag_events(batch, None if every else chosen, self.columns, self.texts, values)


def with_room(array: Int64s, used: int, needed: int) -> Int64s:
    """Return the array, or a larger copy, with space for `needed` more items."""
    if used + needed <= len(array):
        return array
    larger = np.empty(2 * len(array) + needed, array.dtype)
    larger[:used] = array[:used]
    return larger
