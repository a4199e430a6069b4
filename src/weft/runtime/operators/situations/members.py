"""The events that a situation stores: their times, and their values for conditions and output fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weft.kernels.joins.occurrences import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.machine.tagged import MISSING, VALUE
from weft.runtime.classify.functions import to_column
from weft.runtime.classify.vectors import evaluate
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import with_digits
from weft.runtime.machine.code import Code
from weft.runtime.machine.values import column_of
from weft.runtime.operators.occurrence_store import Columns, OccurrenceStore
from weft.runtime.store.pages import Pages, text_pages


class Members:
    """Stored events by number, in the order of their places; numbers change when events are released."""

    def __init__(self, columns: Columns, code: Code, shown: Iterable[str] = ()) -> None:
        self._computed = columns.values
        # Shown attributes have a second column with their digits as texts, so that decimals are written unchanged.
        self._digits = {name: f"{name}\0digits" for name in sorted(shown)}
        self.store = OccurrenceStore([*columns.names, *self._digits.values()], code)

    def __len__(self) -> int:
        return self.store.event_count

    @property
    def bytes_of_each(self) -> int:
        """The bytes that an event takes, without its texts."""
        return (EVENT + self.store.width) * self.store.events.itemsize

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Store some events of a batch, and return the number of the first."""
        known = {name: batch.columns.get(name, Column()).exact for name in self._digits}
        digits = {self._digits[name]: Column(texts=exact) for name, exact in known.items() if exact is not None}
        digits |= {name: to_column(evaluate(value, batch), len(batch)) for name, value in self._computed.items()}
        return self.store.add(replace(batch, columns={**batch.columns, **digits}) if digits else batch, chosen)

    # -- attributes of events --------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """Return the starts and ends of events."""
        at = members * EVENT
        return self.store.events[at + EVENT_START], self.store.events[at + EVENT_END]

    @property
    def first(self) -> int:
        """The place of the first stored event."""
        return int(self.store.events[POSITION])

    def places(self, members: Int64s) -> Int64s:
        """Return the places of events in the input of the situation; without derived events these are positions."""
        found: Int64s = self.store.events[members * EVENT + POSITION]
        return found

    def column(self, name: str, members: Int64s) -> Column:
        """Return an attribute of events, missing for negative numbers."""
        if name not in self.store.columns or not len(self):
            return Column()
        at = np.maximum(members, 0) * self.store.width + VALUE * self.store.columns.index(name)
        kinds = np.where(members >= 0, self.store.values[at], MISSING)
        return column_of(kinds, self.store.values[at + 1], self.store.texts)

    def shown(self, name: str, members: Int64s) -> Column:
        """Return an attribute of events with its original digits."""
        column = self.column(name, members)
        digits = self.column(self._digits[name], members).texts
        return column if digits is None else with_digits(column, digits)

    # -- releasing events -----------------------------------------------------------------------

    def keep(self, live: npt.NDArray[np.bool_]) -> Int64s:
        """Release all but the marked events, and return the new number of each."""
        store, kept = self.store, np.flatnonzero(live)
        numbers: Int64s = np.cumsum(live) - 1
        store.events = store.events[: len(live) * EVENT].reshape(-1, EVENT)[kept].ravel()
        if store.width:
            store.values = store.values[: len(live) * store.width].reshape(-1, store.width)[kept].ravel()
        store.event_count = len(kept)
        store.drop_texts()
        return numbers

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """Return the state without texts as arrays."""
        store, count = self.store, len(self)
        return {
            "events": store.events[: count * EVENT],
            "values": store.values[: count * store.width],
        }

    def texts(self) -> dict[str, bytes]:
        """Return the texts as pages."""
        return text_pages("texts", self.store.texts.texts())

    def load(self, pages: Pages) -> None:
        """Restore the state from the pages of arrays and texts."""
        store = self.store
        store.events, store.values = pages.numbers("events"), pages.numbers("values")
        store.event_count = len(store.events) // EVENT
        store.restore_texts(pages.texts("texts"))
