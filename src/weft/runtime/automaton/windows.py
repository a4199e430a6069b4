"""Windows as start keys and horizons: a match may end at an event if its start key is not below the event's horizon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.query import Query, Window
from weft.runtime.events import EventBatch, Int64s

Mask = npt.NDArray[np.bool_]
NEVER = np.iinfo(np.int64).min  # the key of an event at which no match starts or ends


def window_of(query: Query) -> Window | None:
    """The window in which runs are followed: the event that shows that a session goes on may come after the query's."""
    if query.window is None or query.session is None:
        return query.window
    return replace(query.window, amount=query.window.amount + query.session)


class WindowKeys:
    """Turns events into start keys and horizons. Horizons never fall, also from batch to batch."""

    def __init__(self, window: Window | None) -> None:
        self._window = window
        self._horizon = int(NEVER)
        self._largest = int(NEVER)  # of the window attribute, as a key
        self._base: int | None = None  # subtracted from the attribute, so that large integers stay exact

    @property
    def follows_attribute(self) -> bool:
        """Whether events can be out of the window attribute's order."""
        return self._window is not None and self._window.unit == "attribute"

    def keys(self, batch: EventBatch, exists: Mask) -> tuple[Int64s, Int64s, Mask | None]:
        """Keys and horizons of a batch, and which events are out of the window attribute's order (None: none)."""
        window = self._window
        if window is None:
            return batch.starts, np.full(len(batch), NEVER, np.int64), None
        if window.unit == "time":
            return batch.starts, batch.ends - int(window.amount), None
        if window.unit == "events":
            positions = batch.positions if batch.latest is None else batch.latest
            return positions, positions - int(window.amount), None
        return self._attribute_keys(batch, exists, window)

    def _attribute_keys(self, batch: EventBatch, exists: Mask, window: Window) -> tuple[Int64s, Int64s, Mask | None]:
        column = batch.columns.get(window.attribute or "")
        if column is None or column.numbers is None:
            return np.full(len(batch), NEVER, np.int64), np.full(len(batch), self._horizon, np.int64), None
        known = ~np.asarray(column.numbers.is_null()) & exists
        values = self._values(column.numbers, known)
        keys = np.where(known, order_key(values), NEVER)
        before = np.maximum.accumulate(np.concatenate(([self._largest], keys)))
        late = known & (keys < before[:-1])
        lowest = order_key(values - float(window.amount))
        horizons = np.maximum.accumulate(np.concatenate(([self._horizon], np.where(known & ~late, lowest, NEVER))))
        self._largest, self._horizon = int(before[-1]), int(horizons[-1])
        return keys, horizons[1:], late

    def _values(self, numbers: pa.Array, known: Mask) -> npt.NDArray[np.float64]:
        """The attribute relative to the first one seen, where that is an integer too large for a float."""
        values = np.asarray(numbers.fill_null(0))
        if self._base is None and known.any():
            first = values[np.argmax(known)]
            self._base = int(first) if values.dtype == np.int64 and abs(int(first)) > 2**52 else 0
        return np.where(known, values - (self._base or 0), 0).astype(np.float64)

    def snapshot(self) -> tuple[int, int, int | None]:
        """What must be remembered: the horizon, the largest key and the base."""
        return self._horizon, self._largest, self._base

    def restore(self, kept: tuple[int, int, int | None]) -> None:
        """Go on from a snapshot."""
        self._horizon, self._largest, self._base = kept


def order_key(values: npt.NDArray[np.float64]) -> Int64s:
    """Integers in the order of the floats: the bits of positive ones, the complement of negative ones."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-1) ^ (bits & np.int64(0x7FFFFFFFFFFFFFFF)), bits)
