"""Time series from which summaries of rules are computed: which exist, and their arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from weft.kernels.machine.tagged import VALUE
from weft.kernels.rules import series
from weft.kernels.rules import tables as t
from weft.kernels.rules.arrays import new_room
from weft.kernels.rules.summaries import enter_all
from weft.runtime.data.events import Int64s


class SeriesTable:
    """The distinct series that rules need: of a type's events, by the columns of a key, over a column's values."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._types: list[int] = []
        self._columns: list[int] = []
        self._lines: list[list[int]] = []

    def add(
        self,
        type_: int,
        columns: tuple[int, ...],
        column: int,
        floor: int,
        conditions: Hashable,
        tests: Callable[[], tuple[int, int]],
    ) -> int:
        """Return the number of a series of the events from number `floor` on; for a new one, `tests` is called."""
        key = (type_, columns, column, floor, conditions)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            keys_at = len(self._columns)
            self._columns += columns
            self._types.append(type_)
            self._lines.append([*tests(), keys_at, len(self._columns), column, floor])
        return self._numbers[key]

    def lay(self, types: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Write the series of each type into the table of types; return series, columns of keys, and series by type."""
        of_types = np.array(self._types, np.int64)
        table = types.reshape(-1, t.KIND_OF_EVENT)
        order = np.argsort(of_types, kind="stable")
        table[:, t.SERIES_AT] = np.searchsorted(of_types[order], np.arange(len(table)))
        table[:, t.SERIES_END] = np.searchsorted(of_types[order], np.arange(len(table)), side="right")
        lines = np.array(self._lines, np.int64).reshape(-1, t.SERIES)
        return lines.ravel(), np.array(self._columns, np.int64), order

    @property
    def stride(self) -> int:
        """The words for the key of any series."""
        return VALUE * max((line[t.S_KEYS_END] - line[t.S_KEYS_AT] for line in self._lines), default=0)


class Summaries:
    """The series of the stored events: a lane for each value of their keys, with entries in one array."""

    def __init__(self) -> None:
        self._room = new_room()
        self.lanes = self._empty(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), 0, 16, 256)

    def lay(self, table: SeriesTable, types: Int64s) -> None:
        """Add new series; existing ones stay valid."""
        lines, columns, order = table.lay(types)
        old, stride = self.lanes, max(table.stride, self.lanes.stride)
        rows = len(old.lanes) // series.LANE + 1
        keys = np.zeros((rows, stride), np.int64)
        keys[:, : old.stride] = old.keys.reshape(rows, old.stride)
        self.lanes = old._replace(series=lines, columns=columns, order=order, keys=keys.ravel(), stride=stride)

    def rebuild(self, store: t.Store, rules: t.Rules, work: t.Work, now: int) -> None:
        """Rebuild all series from the events, with space for as many more."""
        old = self.lanes
        lanes, room = len(old.lanes) // series.LANE, len(old.times)
        while True:
            self.lanes = self._empty(old.series, old.columns, old.order, old.stride, lanes, room)
            done = enter_all(store, rules, work, self.lanes, now, self._room)
            crowded = 2 * int(self.lanes.counts[t.USED_LANES]) > lanes
            full = 2 * int(self.lanes.counts[t.USED_ROOM]) > room
            if done and not crowded and not full:
                return
            lanes, room = lanes << int(crowded), room << int(full or not crowded)

    def _empty(self, lines: Int64s, columns: Int64s, order: Int64s, stride: int, lanes: int, room: int) -> t.Lanes:
        records = np.zeros(room * series.RECORD, np.int64)
        return t.Lanes(
            lines,
            columns,
            order,
            stride,
            np.zeros(4 * lanes * t.SLOT, np.int64),
            np.zeros((lanes + 1) * stride, np.int64),
            np.array([0, 1], np.int64),
            np.zeros(lanes * series.LANE, np.int64),
            np.zeros(room, np.int64),
            records,
            records.view(np.float64),
        )
