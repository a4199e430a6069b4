"""The memory of a graph: rows of occurrences, the events they are made of, and the values conditions read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Like, Matches, Value
from weft.kernels.automaton.conditions import BOOLEAN, TEXT
from weft.kernels.joins import joining, joint, occurrences
from weft.runtime.classify.functions import text_test
from weft.runtime.classify.texts import TextTable
from weft.runtime.events import Column, EventBatch, Int64s

Floats = npt.NDArray[np.float64]
EXACT = 2.0**53
_MANY_TEXTS = 1 << 12  # fewer are not worth a search
Number = TypeVar("Number", np.int64, np.float64)


class Arena:
    """Flat arrays with monotone ids: a row's parts have smaller ids, and so have older events."""

    def __init__(
        self, columns: Sequence[str], constants: Sequence[Value], depth: int, patterns: Sequence[Like | Matches] = ()
    ) -> None:
        self.columns = tuple(columns)
        self.rows: Int64s = np.empty(64 * occurrences.ROW, np.int64)
        self.slots: Int64s = np.empty(64, np.int64)
        self.control = np.zeros(2, np.int64)
        self.event_count = 0
        self.events: Int64s = np.empty(64 * occurrences.EVENT, np.int64)
        self.values: Floats = np.empty(64 * self.width, np.float64)
        self.texts = TextTable()
        self._literals = list(constants)
        self._patterns = [text_test(pattern) for pattern in patterns]
        self._looks = np.empty((0, len(self._patterns)), bool)  # for each text and pattern, as far as known
        self._stack = np.empty(4 * depth + 16)
        self._constants: Floats = np.empty(0)
        self.intern()

    @property
    def width(self) -> int:
        """Numbers for the values of one event."""
        return 2 * len(self.columns)

    @property
    def row_count(self) -> int:
        """Rows made so far and not given up."""
        return int(self.control[joining.ROWS])

    def intern(self) -> None:
        """Make the constants: to be done again when texts have new ids."""
        self._constants = np.array([part for value in self._literals for part in self._pair(value)], np.float64)

    def restore_texts(self, texts: Sequence[str]) -> None:
        """Take the texts of a snapshot."""
        self.texts = TextTable(list(texts))
        self._looks = self._looks[:0]
        self.intern()

    def drop_texts(self) -> bool:
        """Give up texts that no event and no constant has, when they are most; whether the others have new ids."""
        if len(self.texts) < _MANY_TEXTS:
            return False
        used = np.zeros(len(self.texts), bool)
        pairs = [self._constants, self.values[: self.event_count * self.width]]
        places = [np.flatnonzero((part[1::2] == TEXT) & ~np.isnan(part[::2])) for part in pairs]
        for part, where in zip(pairs, places, strict=True):
            used[part[::2][where].astype(np.int64)] = True
        if 2 * np.count_nonzero(used) > len(used):
            return False
        self.texts = self.texts.only(used)
        self._looks = self._looks[used[: len(self._looks)]]
        ids = np.cumsum(used) - 1
        for part, where in zip(pairs, places, strict=True):
            part[::2][where] = ids[part[::2][where].astype(np.int64)]
        return True

    def facts(self) -> joint.Facts:
        """What conditions can read now."""
        pool, offsets = self.texts.buffers
        return joint.Facts(
            self._constants,
            self.events,
            self.values,
            self.width,
            pool,
            offsets,
            self._known_looks(),
            len(self._patterns),
            self._stack,
        )

    def memory(self) -> tuple[joint.Facts, Int64s, Int64s, Int64s, Int64s]:
        """What kernels that join work on: facts, rows, slots, how many of these there are, events."""
        return self.facts(), self.rows, self.slots, self.control, self.events

    def _known_looks(self) -> npt.NDArray[np.bool_]:
        """For each text, and each of the patterns, whether it looks like it: found out once."""
        if self._patterns and len(self._looks) < len(self.texts):
            new = self.texts.texts(len(self._looks))
            found = np.array([[test(text) for test in self._patterns] for text in new], bool)
            self._looks = np.concatenate([self._looks, found])
        return self._looks.reshape(-1)

    def _pair(self, value: Value) -> tuple[float, float]:
        if isinstance(value, bool):
            return float(value), BOOLEAN
        if isinstance(value, str):
            return float(self.texts.ids(pa.array([value], pa.string()), add=True)[0]), TEXT
        if isinstance(value, int):
            try:
                return float(value), float(value - int(float(value)))
            except OverflowError:
                return (np.inf if value > 0 else -np.inf), 0.0
        return value, 0.0

    # -- rows -----------------------------------------------------------------------------------

    def times(self, rows: Int64s, field: int) -> Int64s:
        """A field of rows."""
        found: Int64s = self.rows[rows * occurrences.ROW + field]
        return found

    def event_times(self, events: Int64s, field: int) -> Int64s:
        """A field of events; of any event where the number is negative."""
        found: Int64s = self.events[np.maximum(events, 0) * occurrences.EVENT + field]
        return found

    def add_sources(self, events: Int64s, slots: int) -> Int64s:
        """A row for each of these events, with so many slots, all of which hold it."""
        first = self.row_count
        self._room(len(events), slots)
        joining.add_sources(events, slots, self.rows, self.slots, self.control, self.events)
        return np.arange(first, first + len(events))

    def join(self, lefts: Int64s, rights: Int64s, kind: int, shift: int, spec: Int64s) -> Int64s:
        """A row for each pair; -1: there is nothing on that side."""
        first = self.row_count
        self._room(len(lefts), len(spec) // 3)
        joining.join_all(lefts, rights, kind, shift, spec, self.rows, self.slots, self.control, self.events)
        return np.arange(first, first + len(lefts))

    def satisfied(self, code: Int64s, lefts: Int64s, rights: Int64s) -> npt.NDArray[np.bool_]:
        """For which pairs the conditions hold."""
        if not len(code):
            return np.ones(len(lefts), bool)
        found: npt.NDArray[np.bool_] = joining.satisfied(code, self.facts(), self.rows, self.slots, lefts, rights)
        return found

    def _room(self, rows: int, slots: int) -> None:
        self.rows = with_room(self.rows, self.row_count * occurrences.ROW, rows * occurrences.ROW)
        self.slots = with_room(self.slots, int(self.control[joining.SLOTS_USED]), rows * slots)

    # -- events ---------------------------------------------------------------------------------

    def add(self, batch: EventBatch, chosen: Int64s, truths: Int64s | int = 0) -> int:
        """Remember some events of a batch, and what is true of them; the number of the first."""
        first, count = self.event_count, len(chosen)
        self.event_count += count
        fields, width = occurrences.EVENT, self.width
        self.events = with_room(self.events, first * fields, count * fields)
        block = self.events[first * fields : (first + count) * fields].reshape(count, fields)
        block[:, occurrences.POSITION] = batch.positions[chosen]
        block[:, occurrences.EVENT_START] = batch.starts[chosen]
        block[:, occurrences.EVENT_END] = batch.ends[chosen]
        block[:, occurrences.TRUTHS] = truths
        self.values = with_room(self.values, first * width, count * width)
        values = self.values[first * width : (first + count) * width].reshape(count, width)
        every = count == len(batch)
        for number, name in enumerate(self.columns):
            column = batch.columns.get(name, Column())
            self._encode(column, None if every else chosen, values[:, 2 * number], values[:, 2 * number + 1])
        return first

    def _encode(self, column: Column, chosen: Int64s | None, value: Floats, rest: Floats) -> None:
        """The values of one attribute as pairs of floats; NaN where it is missing."""

        def taken(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
            return array if chosen is None else array[chosen]

        value[:], rest[:] = np.nan, 0.0
        if column.numbers is not None:
            known = _known(column.numbers, taken)
            numbers = taken(np.asarray(column.numbers.fill_null(0) if column.numbers.null_count else column.numbers))
            near = numbers.astype(np.float64)
            value[known] = near[known]
            if numbers.dtype == np.int64 and len(near) and max(-near.min(), near.max()) > EXACT:
                whole = near.clip(-(2.0**63), 2.0**63 - 1024)
                value[known] = whole[known]
                rest[known] = (numbers.astype(np.int64) - whole.astype(np.int64)).astype(np.float64)[known]
        if column.booleans is not None:
            known = _known(column.booleans, taken)
            flags = taken(np.asarray(column.booleans.fill_null(False), bool))
            value[known], rest[known] = flags.astype(np.float64)[known], BOOLEAN
        if column.texts is not None:
            known = _known(column.texts, taken)
            value[known], rest[known] = taken(self._ids(column.texts)).astype(np.float64)[known], TEXT

    def _ids(self, texts: pa.Array) -> npt.NDArray[np.int32]:
        if not pa.types.is_dictionary(texts.type):
            return self.texts.ids(texts, add=True)
        ids = np.append(self.texts.ids(texts.dictionary, add=True), np.int32(-1))
        found: npt.NDArray[np.int32] = ids[np.asarray(texts.indices.fill_null(len(ids) - 1))]
        return found


def _known(array: pa.Array, taken: object) -> npt.NDArray[np.bool_] | slice:
    if not array.null_count:
        return slice(None)
    known: npt.NDArray[np.bool_] = taken(np.asarray(array.is_valid()))  # type: ignore[operator]
    return known


def with_room(array: npt.NDArray[Number], used: int, needed: int) -> npt.NDArray[Number]:
    """The array, or a copy with room for so many more."""
    if used + needed <= len(array):
        return array
    larger = np.empty(2 * len(array) + needed, array.dtype)
    larger[:used] = array[:used]
    return larger
